// Who makes a call, as its handler sees it, and as who a process makes its own.
// Tested by tests/proto/runtime/transport/transport_conformance.cc
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_CALLER_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_CALLER_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "proto/core/mutex.h"
#include "proto/runtime/credentials/identity.h"

namespace strata {

// The session credential that goes with calls: bytes that the scheduler signed
// (session_credential.h), or none. Who makes calls replaces it before it expires, while calls are
// made. Thread-safe.
class HeldSession {
 public:
  HeldSession() = default;
  explicit HeldSession(std::string credential) : credential_(std::move(credential)) {}

  void Set(std::string credential) {
    MutexLock lock(&mu_);
    credential_ = std::move(credential);
  }
  // Empty: there is none.
  std::string Get() const {
    MutexLock lock(&mu_);
    return credential_;
  }

 private:
  mutable Mutex mu_;
  std::string credential_ ABSL_GUARDED_BY(mu_);
};

// Name and role are proven by the caller's certificate; inside one process they are as given.
//
//   transport->Connect({address, "alpha"}, {.name = "w", .role = Role::kWorker, .jobs = session});
struct Caller {
  std::string name;
  Role role = Role::kReader;
  // Came, or goes, with each call; null: nothing.
  std::shared_ptr<const HeldSession> jobs = nullptr;
  // False: nobody was asked who he is (--insecure), and everybody may do everything. Name and role
  // say nothing then.
  bool asked = true;

  static const Caller& Nobody() {
    static const Caller* const nobody =
        new Caller{.name = "", .role = Role::kReader, .jobs = nullptr, .asked = false};
    return *nobody;
  }

  friend bool operator==(const Caller&, const Caller&) = default;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_CALLER_H_
