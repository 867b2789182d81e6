#include "proto/runtime/credentials/cipher_suites.h"

#include <openssl/bio.h>
#include <openssl/conf.h>
#include <openssl/ssl.h>

#include <memory>

#include "proto/runtime/credentials/openssl_objects.h"

namespace strata {
namespace {

// In the form of OpenSSL's file of settings, of which each new context reads "system_default".
constexpr char kSettings[] = R"(
openssl_conf = strata
[strata]
ssl_conf = strata_contexts
[strata_contexts]
system_default = strata_tls
[strata_tls]
Ciphersuites = TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256
Options = ServerPreference
)";

struct FreeSettings {
  void operator()(CONF* settings) const { NCONF_free(settings); }
};

}  // namespace

absl::Status PreferAes128() {
  // The machine's own, which would otherwise be read later and take the place of ours.
  if (OPENSSL_init_ssl(OPENSSL_INIT_LOAD_CONFIG, nullptr) != 1) {
    return OpenSslError("start OpenSSL");
  }
  const std::unique_ptr<CONF, FreeSettings> settings(NCONF_new(nullptr));
  const BioPtr text(BIO_new_mem_buf(kSettings, sizeof(kSettings) - 1));
  if (settings == nullptr || text == nullptr ||
      NCONF_load_bio(settings.get(), text.get(), nullptr) != 1 ||
      CONF_modules_load(settings.get(), nullptr, 0) != 1) {
    return OpenSslError("prefer AES-128-GCM in OpenSSL");
  }
  return absl::OkStatus();
}

}  // namespace strata
