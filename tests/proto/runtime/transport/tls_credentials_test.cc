// Real handshakes over loopback: mutual TLS 1.3 with certificates of ours, and each refusal.
#include "proto/runtime/transport/tls_credentials.h"

#include <arpa/inet.h>
#include <grpc/support/log.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/peer_verifier.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/credentials/revocations.h"
#include "proto/runtime/transport/grpc_deadline.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/buffer.h"
#include "tests/proto/runtime/transport/tls_peers.h"

namespace strata::testing {
namespace {

// Before gRPC looks, and before there are threads: as a main program does it.
[[maybe_unused]] const bool kAllowed = (AllowTls13Alone(), true);

// The client or TLS itself refuses: no call arrives.
struct Refusal {
  const Gate& client;
  std::string client_folder;
  std::string server_folder;
};

grpc::Status CheckRefused(const Refusal& r) {
  const Listening listening(r.server_folder);
  const grpc::Status status = CallAs(r.client_folder, r.client, listening.port());
  INFO(status.error_code() << ": " << status.error_message());
  INFO("client: " << r.client.said());
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(listening.calls() == 0);
  return status;
}

TEST_CASE("both ends of a connection prove who they are", "[tls]") {
  const Certs certs;
  const Gate client(certs.Expect({Role::kServer}, "alpha"));
  const Listening listening(certs.Issue(Role::kServer, "alpha"));
  const grpc::Status status = CallAs(certs.Issue(Role::kWorker, "w"), client, listening.port());
  INFO(status.error_message());
  CHECK(status.error_code() == kArrived);
  CHECK(status.error_message() == IdentityUri({kTlsCluster, Role::kWorker, "w"}));
  CHECK(listening.calls() == 1);
  CHECK(client.said() == "server/alpha");
}

TEST_CASE("a port shows what it has when a handshake begins", "[tls]") {
  const Certs certs;
  const std::string worker = certs.Issue(Role::kWorker, "w");
  certs.Issue(Role::kServer, "beta");
  Mutex mu;
  std::shared_ptr<const Credentials> shown = Loaded(certs.Issue(Role::kServer, "alpha"));
  const auto credentials = TlsServerCredentials([&] {
    MutexLock lock(&mu);
    return shown;
  });
  WhoCalls service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", credentials, &port);
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  REQUIRE(server != nullptr);
  for (const std::string name : {"alpha", "beta", "beta", "alpha"}) {
    {
      auto next = Loaded(CurrentFolder(certs.folder(), Role::kServer, name));
      MutexLock lock(&mu);
      shown = std::move(next);
    }
    const Gate client(certs.Expect({Role::kServer}, name));
    const grpc::Status status = CallAs(worker, client, port);
    INFO(name << ": " << status.error_message());
    CHECK(status.error_code() == kArrived);
    CHECK(client.said() == "server/" + name);
  }
  server->Shutdown(GrpcDeadline(absl::Seconds(10)));
}

// Of a client that takes every server of the authority, and shows nothing.
std::shared_ptr<grpc::ChannelCredentials> Nobody(const std::string& authority) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<grpc::experimental::StaticDataCertificateProvider>(authority));
  options.watch_root_certs();
  options.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  options.set_check_call_host(false);
  return grpc::experimental::TlsCredentials(options);
}

TEST_CASE("who shows no certificate does not arrive", "[tls]") {
  const Certs certs;
  const Listening listening(certs.Issue(Role::kServer, "alpha"));
  for (const auto& credentials :
       {Nobody(ReadAuthority(certs.folder())->pem), grpc::InsecureChannelCredentials()}) {
    const grpc::Status status = Call(listening.port(), credentials);
    INFO(status.error_message());
    CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  }
  CHECK(listening.calls() == 0);
}

TEST_CASE("another cluster's authority is refused at both ends", "[tls]") {
  const Certs certs, other(kOtherTlsCluster), same_name(kTlsCluster);
  for (const Certs* strange : {&other, &same_name}) {
    const std::string server_folder = strange == &other ? certs.Issue(Role::kServer, "alpha")
                                                        : certs.folder() + "/server/alpha/current";
    const std::string strange_worker = strange->Issue(Role::kWorker, "w");
    {  // The server knows the worker's authority not; nor does the worker the server's.
      const Gate client(certs.Expect({Role::kServer}));
      CheckRefused({client, strange_worker, server_folder});
    }
    {  // The worker trusts both, the server its own.
      std::ofstream(strange_worker + "/ca.crt")
          << ReadAuthority(certs.folder())->pem << ReadAuthority(strange->folder())->pem;
      const Gate client(certs.Expect({Role::kServer}));
      CheckRefused({client, strange_worker, server_folder});
    }
  }
}

TEST_CASE("certificates whose time is over, or has not come, are refused", "[tls]") {
  const absl::Duration day = absl::Hours(24);
  const Certs certs(kTlsCluster, absl::Now() - 30 * day);
  const std::string alpha = certs.Issue(Role::kServer, "alpha");
  const std::string w = certs.Issue(Role::kWorker, "w");
  for (const absl::Duration made : {-20 * day, 20 * day}) {
    const std::string name = made < absl::ZeroDuration() ? "old" : "early";
    const std::string bad_worker = certs.Issue(Role::kWorker, name, absl::Now() + made, 10);
    const std::string bad_server = certs.Issue(Role::kServer, name, absl::Now() + made, 10);
    INFO(name);
    {
      const Gate client(certs.Expect({Role::kServer}));
      CheckRefused({client, bad_worker, alpha});
    }
    {
      const Gate client(certs.Expect({Role::kServer}));
      CheckRefused({client, w, bad_server});
    }
  }
}

TEST_CASE("a client tells what it expected and whom it met", "[tls]") {
  const Certs certs;
  const std::string alpha = certs.Issue(Role::kServer, "alpha");
  const std::string w = certs.Issue(Role::kWorker, "w");
  Revocations revocations;
  revocations.Add(LoadCredentials(alpha)->certificate.facts.serial, {"server/alpha", absl::Now()});
  PeerExpectations other_cluster = certs.Expect({Role::kServer});
  other_cluster.cluster = kOtherTlsCluster;
  const std::vector<std::pair<PeerExpectations, std::string>> cases = {
      {certs.Expect({Role::kScheduler}), "only role scheduler may do this"},
      {certs.Expect({Role::kServer}, "beta"), "only 'beta' may do this"},
      {other_cluster, "it is of cluster"},
      {certs.Expect({Role::kServer}), "it was revoked"}};
  for (const auto& [expected, says] : cases) {
    const Gate client(expected, says == "it was revoked" ? revocations : Revocations());
    const grpc::Status status = CheckRefused({client, w, alpha});
    CHECK(absl::StrContains(client.said(), says));
    for (const std::string& part : {says, std::string("O=strata,OU=server,CN=alpha, expires 2")}) {
      INFO(status.error_message());
      CHECK(absl::StrContains(status.error_message(), part));
    }
  }
}

TEST_CASE("who may only call is no server", "[tls]") {
  const Certs certs;
  const Gate client(certs.Expect({Role::kReader}));
  // Though the client would take its role: its certificate says that it listens nowhere.
  CheckRefused({client, certs.Issue(Role::kWorker, "w"), certs.Issue(Role::kReader, "r")});
}

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

using Connection = std::unique_ptr<SSL, Freed<SSL_free>>;

// A client of OpenSSL's own, with the files of a folder.
class PlainClient {
 public:
  PlainClient(const std::string& folder, int port) : context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX* const c = context_.get();
    REQUIRE(SSL_CTX_load_verify_locations(c, (folder + "/ca.crt").c_str(), nullptr) == 1);
    REQUIRE(SSL_CTX_use_certificate_chain_file(c, (folder + "/tls.crt").c_str()) == 1);
    REQUIRE(SSL_CTX_use_PrivateKey_file(c, (folder + "/tls.key").c_str(), SSL_FILETYPE_PEM) == 1);
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER, nullptr);
    const unsigned char protocols[] = {2, 'h', '2'};
    REQUIRE(SSL_CTX_set_alpn_protos(c, protocols, sizeof protocols) == 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~PlainClient() { close(fd_); }
  PlainClient(const PlainClient&) = delete;
  PlainClient& operator=(const PlainClient&) = delete;

  // Not shaken hands yet.
  Connection Begin(int most_version) {
    SSL_CTX_set_max_proto_version(context_.get(), most_version);
    Connection connection(SSL_new(context_.get()));
    REQUIRE(SSL_set_fd(connection.get(), fd_) == 1);
    return connection;
  }

 private:
  const std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context_;
  const int fd_ = socket(AF_INET, SOCK_STREAM, 0);
};

TEST_CASE("the connection is TLS 1.3, with keys of P-256", "[tls]") {
  const Certs certs;
  const Listening listening(certs.Issue(Role::kServer, "alpha"));
  PlainClient client(certs.Issue(Role::kWorker, "w"), listening.port());
  const Connection connection = client.Begin(TLS1_3_VERSION);
  REQUIRE(SSL_connect(connection.get()) == 1);
  CHECK(SSL_version(connection.get()) == TLS1_3_VERSION);
  CHECK(SSL_get_verify_result(connection.get()) == X509_V_OK);
  const std::unique_ptr<X509, Freed<X509_free>> peer(SSL_get1_peer_certificate(connection.get()));
  REQUIRE(peer != nullptr);
  CHECK(EVP_PKEY_get_base_id(X509_get0_pubkey(peer.get())) == EVP_PKEY_EC);
  CHECK(EVP_PKEY_get_bits(X509_get0_pubkey(peer.get())) == 256);
  // The server has taken the client's certificate: its first bytes of HTTP/2 arrive.
  char first = 0;
  CHECK(SSL_read(connection.get(), &first, 1) == 1);
}

// Longer keys first, as OpenSSL has it.
constexpr char kLongKeysFirst[] = "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256";

TEST_CASE(
    "a server takes AES with keys of 128 bits from a client that would rather have longer ones",
    "[tls]") {
  const Certs certs;
  const Listening listening(certs.Issue(Role::kServer, "alpha"));
  const std::string w = certs.Issue(Role::kWorker, "w");
  const auto taken = [&](const char* offered) {
    PlainClient client(w, listening.port());
    const Connection connection = client.Begin(TLS1_3_VERSION);
    REQUIRE(SSL_set_ciphersuites(connection.get(), offered) == 1);
    REQUIRE(SSL_connect(connection.get()) == 1);
    return std::string(SSL_get_cipher_name(connection.get()));
  };
  CHECK(taken(kLongKeysFirst) == "TLS_AES_128_GCM_SHA256");
  // Who knows no other one is not turned away.
  CHECK(taken("TLS_AES_256_GCM_SHA384") == "TLS_AES_256_GCM_SHA384");
}

// A server of OpenSSL's own that takes what the client would rather have, of one connection.
std::string TakenByPlainServer(const std::string& folder, const std::function<void(int)>& call) {
  const std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const c = context.get();
  REQUIRE(SSL_CTX_use_certificate_chain_file(c, (folder + "/tls.crt").c_str()) == 1);
  REQUIRE(SSL_CTX_use_PrivateKey_file(c, (folder + "/tls.key").c_str(), SSL_FILETYPE_PEM) == 1);
  REQUIRE(SSL_CTX_set_ciphersuites(c, kLongKeysFirst) == 1);
  SSL_CTX_clear_options(c, SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_num_tickets(c, 0);  // a client that speaks no more would have them raise SIGPIPE
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  REQUIRE(listen(fd, 1) == 0);
  REQUIRE(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  std::thread caller([&] { call(ntohs(address.sin_port)); });
  const int accepted = accept(fd, nullptr, nullptr);
  std::string taken = "none";
  {
    const Connection connection(SSL_new(c));
    SSL_set_fd(connection.get(), accepted);
    if (SSL_accept(connection.get()) == 1) taken = SSL_get_cipher_name(connection.get());
  }
  close(accepted);
  close(fd);
  caller.join();
  return taken;
}

TEST_CASE("a client would rather have AES with keys of 128 bits", "[tls]") {
  const Certs certs;
  const std::string w = certs.Issue(Role::kWorker, "w");
  Gate client(certs.Expect({Role::kServer}));
  const std::string taken = TakenByPlainServer(certs.Issue(Role::kServer, "alpha"), [&](int port) {
    CHECK(CallAs(w, client, port).error_code() == grpc::StatusCode::UNAVAILABLE);
  });
  CHECK(taken == "TLS_AES_128_GCM_SHA256");
}

TEST_CASE("a client that knows no TLS 1.3 is refused", "[tls]") {
  const Certs certs;
  const Listening listening(certs.Issue(Role::kServer, "alpha"));
  PlainClient client(certs.Issue(Role::kWorker, "w"), listening.port());
  const Connection connection = client.Begin(TLS1_2_VERSION);
  CHECK(SSL_connect(connection.get()) != 1);
  CHECK(listening.calls() == 0);
}

// What gRPC says of its own accord in this process, while there is one of these.
class Heard {
 public:
  Heard() {
    lines().clear();
    gpr_set_log_function([](gpr_log_func_args* said) {
      MutexLock lock(&mu());
      lines().emplace_back(said->message);
    });
  }
  ~Heard() { gpr_set_log_function(nullptr); }
  static std::vector<std::string> all() {
    MutexLock lock(&mu());
    return lines();
  }

 private:
  static Mutex& mu() {
    static Mutex* const mu = new Mutex;
    return *mu;
  }
  static std::vector<std::string>& lines() {
    static auto* const lines = new std::vector<std::string>;
    return *lines;
  }
};

struct Replies : public DataHandler {
  void Handle(const Caller&, DataMethod, Buffer, DataReply reply) override { reply(Buffer()); }
};

TEST_CASE("a connection by a host's name is nothing that gRPC logs", "[tls]") {
  const Certs certs;
  const auto open = [&](Role role, const std::string& name) {
    auto tls = ProcessTls::Open({.folder = certs.Issue(role, name)});
    REQUIRE(tls.ok());
    return *std::move(tls);
  };
  const auto server = open(Role::kServer, "alpha"), worker = open(Role::kWorker, "w");
  Replies handler;
  const auto serving = MakeGrpcTransport({.tls = server});
  const auto listener = serving->Listen("localhost:0", &handler);
  REQUIRE(listener.ok());
  REQUIRE(absl::StartsWith((*listener)->address(), "localhost:"));
  const Heard heard;
  const auto call = [&](const std::string& name) {
    return MakeGrpcTransport({.tls = worker})
        ->Connect({(*listener)->address(), name}, SelfOf(worker))
        ->CallAndWait(DataMethod::kPull, Buffer(), absl::Seconds(60))
        .status();
  };
  CHECK(call("alpha").ok());
  CHECK(heard.all() == std::vector<std::string>());
  // The name in the cluster decides, as ever: the host's is the same.
  const absl::Status refused = call("beta");
  INFO(refused);
  CHECK(absl::IsUnavailable(refused));
  CHECK(absl::StrContains(refused.message(), "only 'beta' may do this"));
}

}  // namespace
}  // namespace strata::testing
