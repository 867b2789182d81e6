#include "tests/proto/runtime/metrics/scraper.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <memory>

#include "absl/strings/match.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/openssl_objects.h"

namespace strata::testing {
namespace {

// OpenSSL writes to sockets whose other end may have gone.
[[maybe_unused]] const bool kIgnored = std::signal(SIGPIPE, SIG_IGN) != SIG_ERR;

int Connect(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0) return fd;
  close(fd);
  return -1;
}

std::string WhyNot() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(code);
  return reason == nullptr ? "the connection ended" : reason;
}

std::string SerialOfServer(SSL* connection) {
  const X509Ptr shown(SSL_get1_peer_certificate(connection));
  if (shown == nullptr) return "";
  const auto pem = CertificatePem(*shown);
  const auto facts = ReadCertificate(*pem);
  return facts.ok() ? facts->serial : "";
}

}  // namespace

bool IsOk(const std::string& answer) { return absl::StartsWith(answer, "HTTP/1.1 200 "); }

Connected::Connected(uint16_t port) : socket_(Connect(port)) {}

Connected::~Connected() {
  if (socket_ >= 0) close(socket_);
}

void Connected::Send(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the server has ended
    text.remove_prefix(static_cast<size_t>(sent));
  }
}

std::string Connected::Receive() {
  std::string text;
  char bytes[4096];
  for (ssize_t n; (n = recv(socket_, bytes, sizeof(bytes), 0)) > 0;) {
    text.append(bytes, static_cast<size_t>(n));
  }
  return text;
}

TlsAnswer ScrapeByTls(uint16_t port, const TlsClient& client) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  if (client.tls12) SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
  if (!client.folder.empty()) {
    const auto mine = LoadCredentials(client.folder);
    const auto certificate = ParseCertificate(mine->keyed.certificate);
    const auto key = ParseKey(mine->keyed.key);
    SSL_CTX_use_certificate(context.get(), certificate->get());
    SSL_CTX_use_PrivateKey(context.get(), key->get());
  }
  const Connected connected(port);
  const std::unique_ptr<SSL, decltype(&SSL_free)> tls(SSL_new(context.get()), &SSL_free);
  SSL_set_fd(tls.get(), connected.socket());
  if (!client.ca_file.empty()) {
    SSL_CTX_load_verify_file(context.get(), client.ca_file.c_str());
    SSL_set_verify(tls.get(), SSL_VERIFY_PEER, nullptr);
    SSL_set1_host(tls.get(), client.host.c_str());
    X509_VERIFY_PARAM_set_time(SSL_get0_param(tls.get()), client.time);
  }
  TlsAnswer answer;
  if (SSL_connect(tls.get()) != 1) {
    answer.error = WhyNot();
    return answer;
  }
  answer.serial = SerialOfServer(tls.get());
  // The server looks at the client's certificate now.
  SSL_write(tls.get(), client.request.data(), static_cast<int>(client.request.size()));
  char bytes[4096];
  for (int n; (n = SSL_read(tls.get(), bytes, sizeof(bytes))) > 0;) {
    answer.text.append(bytes, static_cast<size_t>(n));
  }
  answer.error = answer.text.empty() ? WhyNot() : "";
  const SSL_SESSION* const session = SSL_get0_session(tls.get());
  answer.resumable = session != nullptr && SSL_SESSION_is_resumable(session) == 1;
  ERR_clear_error();
  return answer;
}

}  // namespace strata::testing
