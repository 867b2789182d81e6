#include "proto/runtime/transport/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "proto/core/mutex.h"
#include "proto/runtime/transport/grpc_status.h"

namespace strata {
namespace {

namespace tls = grpc::experimental;

// Owned by gRPC.
class AskingVerifier final : public tls::ExternalCertificateVerifier {
 public:
  explicit AskingVerifier(CheckPeer check) : check_(std::move(check)) {}

  // True: it is decided.
  bool Verify(tls::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* sync_status) override {
    const grpc::string_ref certificate = request->peer_cert();
    const auto caller = check_({certificate.data(), certificate.size()});
    *sync_status = ToGrpc(caller.status());
    return true;
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  const CheckPeer check_;
};

// The library's own ones for C++ read renewed certificates from files alone, whatever lies there;
// those for C ask before each handshake.
class PortCredentials final : public grpc::ServerCredentials {
 public:
  explicit PortCredentials(ShownNow shown) : now_(std::move(shown)) {
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, &Fetch, this));
  }
  ~PortCredentials() override { grpc_server_credentials_release(credentials_); }

  // Callers prove who they are by certificates alone.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* of, grpc_ssl_server_certificate_config** config) {
    return static_cast<PortCredentials*>(of)->Next(config);
  }

  // gRPC, which becomes the owner of what it is given, keeps what it was given last.
  grpc_ssl_certificate_config_reload_status Next(grpc_ssl_server_certificate_config** config) {
    auto mine = now_();
    MutexLock lock(&mu_);
    if (mine == given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {mine->keyed.key.c_str(),
                                             mine->keyed.certificate.c_str()};
    *config = grpc_ssl_server_certificate_config_create(mine->authorities.c_str(), &pair, 1);
    given_ = std::move(mine);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const ShownNow now_;
  grpc_server_credentials* credentials_ = nullptr;
  Mutex mu_;
  std::shared_ptr<const Credentials> given_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> TlsChannelCredentials(const Credentials& mine,
                                                                CheckPeer check) {
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<tls::StaticDataCertificateProvider>(
      mine.authorities,
      std::vector<tls::IdentityKeyCertPair>{{mine.keyed.key, mine.keyed.certificate}}));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<AskingVerifier>(std::move(check)));
  options.set_check_call_host(false);
  return tls::TlsCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> TlsServerCredentials(ShownNow shown) {
  return std::make_shared<PortCredentials>(std::move(shown));
}

}  // namespace strata
