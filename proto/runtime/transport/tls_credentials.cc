#include "proto/runtime/transport/tls_credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/runtime/credentials/places.h"
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

// What both ends want.
void Fill(CheckPeer check, tls::TlsCredentialsOptions& options) {
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<AskingVerifier>(std::move(check)));
  options.set_check_call_host(false);
}

}  // namespace

absl::StatusOr<TlsProvider> WatchTlsFiles(const TlsFiles& files) {
  if (const auto now = LoadCredentials(files.folder); !now.ok()) return now.status();
  const auto path = [&](const char* name) { return absl::StrCat(files.folder, "/", name); };
  return std::make_shared<tls::FileWatcherCertificateProvider>(
      path(kKeyFile), path(kCertificateFile), path(kAuthorityCertificateFile),
      files.refresh_seconds);
}

TlsProvider ProvideTls(const Credentials& credentials) {
  const tls::IdentityKeyCertPair own{credentials.keyed.key, credentials.keyed.certificate};
  return std::make_shared<tls::StaticDataCertificateProvider>(
      credentials.authorities, std::vector<tls::IdentityKeyCertPair>{own});
}

std::shared_ptr<grpc::ChannelCredentials> TlsChannelCredentials(const TlsProvider& provider,
                                                                CheckPeer check) {
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider);
  Fill(std::move(check), options);
  return tls::TlsCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> TlsServerCredentials(const TlsProvider& provider,
                                                              CheckPeer check) {
  tls::TlsServerCredentialsOptions options(provider);
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  Fill(std::move(check), options);
  return tls::TlsServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> TlsChannelCredentials(
    const TlsFiles& files, CheckPeer check) {
  const auto provider = WatchTlsFiles(files);
  if (!provider.ok()) return provider.status();
  return TlsChannelCredentials(*provider, std::move(check));
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsServerCredentials(const TlsFiles& files,
                                                                              CheckPeer check) {
  const auto provider = WatchTlsFiles(files);
  if (!provider.ok()) return provider.status();
  return TlsServerCredentials(*provider, std::move(check));
}

}  // namespace strata
