// Two ends of a connection with certificates of ours: a server that answers every call with the
// caller's name, and calls to it.
#ifndef STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_TLS_PEERS_H_
#define STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_TLS_PEERS_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/peer_verifier.h"
#include "proto/runtime/credentials/revocations.h"
#include "proto/runtime/transport/grpc_deadline.h"
#include "proto/runtime/transport/tls_credentials.h"
#include "tests/proto/runtime/transport/test_certs.h"

namespace strata::testing {

// What a call that arrived is answered.
inline constexpr grpc::StatusCode kArrived = grpc::StatusCode::ABORTED;

// Asks VerifyPeer, and remembers what it said.
class Gate {
 public:
  explicit Gate(PeerExpectations expected, Revocations revocations = {})
      : state_(std::make_shared<State>(std::move(expected), std::move(revocations))) {}

  // Lives as long as gRPC wants it.
  CheckPeer check() const {
    return [state = state_](absl::string_view certificate) {
      auto caller = VerifyPeer(certificate, state->expected, absl::Now(), state->revocations);
      MutexLock lock(&state->mu);
      state->asked += 1;
      state->said = caller.ok() ? absl::StrCat(RoleName(caller->role), "/", caller->name)
                                : std::string(caller.status().message());
      return caller;
    };
  }
  int asked() const {
    MutexLock lock(&state_->mu);
    return state_->asked;
  }
  std::string said() const {
    MutexLock lock(&state_->mu);
    return state_->said;
  }

 private:
  struct State {
    State(PeerExpectations e, Revocations r) : expected(std::move(e)), revocations(std::move(r)) {}

    const PeerExpectations expected;
    const Revocations revocations;
    Mutex mu;
    int asked ABSL_GUARDED_BY(mu) = 0;
    std::string said ABSL_GUARDED_BY(mu);
  };
  const std::shared_ptr<State> state_;
};

// Answers every call with the name on the certificate that gRPC shows its handler.
class WhoCalls : public grpc::CallbackGenericService {
 public:
  int calls() const { return calls_; }

 private:
  class Answer : public grpc::ServerGenericBidiReactor {
   public:
    explicit Answer(const std::string& text) { Finish(grpc::Status(kArrived, text)); }
    void OnDone() override { delete this; }
  };

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    ++calls_;
    const auto shown =
        context->auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
    if (shown.size() != 1) return new Answer("no certificate");
    const auto facts = ReadCertificate({shown[0].data(), shown[0].size()});
    return new Answer(facts.ok() && facts->uris.size() == 1 ? facts->uris[0] : "unreadable");
  }

  std::atomic<int> calls_{0};
};

// What a folder has by now.
inline std::shared_ptr<const Credentials> Loaded(const std::string& folder) {
  const auto loaded = LoadCredentials(folder);
  INFO(loaded.status());
  REQUIRE(loaded.ok());
  return std::make_shared<const Credentials>(*loaded);
}

class Listening {
 public:
  explicit Listening(const std::string& folder)
      : credentials_(TlsServerCredentials([shown = Loaded(folder)] { return shown; })) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", credentials_, &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
    REQUIRE(port_ != 0);
  }
  ~Listening() { server_->Shutdown(GrpcDeadline(absl::Seconds(10))); }

  int port() const { return port_; }
  int calls() const { return service_.calls(); }

 private:
  const std::shared_ptr<grpc::ServerCredentials> credentials_;  // outlives the server
  WhoCalls service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

inline grpc::Status Call(int port, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::GenericStub stub(grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), credentials));
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(absl::Seconds(60)));
  const grpc::Slice byte("x");
  const grpc::ByteBuffer request(&byte, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  absl::Notification done;
  stub.UnaryCall(&context, "/strata.test/Who", grpc::StubOptions(), &request, &response,
                 [&](grpc::Status s) {
                   status = std::move(s);
                   done.Notify();
                 });
  done.WaitForNotification();
  return status;
}

inline grpc::Status CallAs(const std::string& folder, const Gate& gate, int port) {
  return Call(port, TlsChannelCredentials(*Loaded(folder), gate.check()));
}

}  // namespace strata::testing

#endif  // STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_TLS_PEERS_H_
