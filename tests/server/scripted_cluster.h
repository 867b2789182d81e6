// A server beside a scheduler that a test speaks for.
#ifndef STRATA_TESTS_SERVER_SCRIPTED_CLUSTER_H_
#define STRATA_TESTS_SERVER_SCRIPTED_CLUSTER_H_

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/inproc_transport.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "server/server.h"
#include "tests/proto/runtime/transport/unanswered_scheduler.h"
#include "tests/server/one_shard_job.h"
#include "tests/temp_folder.h"

namespace strata::server {

// A scheduler that says what the test wants, and tells it what servers report.
class ScriptedScheduler : public testing::UnansweredScheduler {
 public:
  absl::StatusOr<NodeDirective> Sync(const NodeReport& report, absl::Duration) override {
    absl::MutexLock lock(&mu_);
    ++calls_;
    last_ = report;
    if (fence_) {
      fence_ = false;
      return absl::UnauthenticatedError("fenced");
    }
    if (!reachable_) return absl::UnavailableError("no scheduler");
    NodeDirective d = directive_;
    if (report.session() == 0) ++session_;
    d.set_session(session_);
    d.set_lease_ms(1000);
    if (d.cluster_id().empty()) d.set_cluster_id(kIdentity.cluster.text());
    return d;
  }

  void Say(NodeDirective directive) {
    absl::MutexLock lock(&mu_);
    directive_ = std::move(directive);
  }
  void Fence() {
    absl::MutexLock lock(&mu_);
    fence_ = true;
  }
  void SetReachable(bool reachable) {
    absl::MutexLock lock(&mu_);
    reachable_ = reachable;
  }
  // Waits for a report that `want` likes; fails the test after a minute.
  NodeReport Await(const std::function<bool(const NodeReport&)>& want) {
    absl::MutexLock lock(&mu_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return want(last_); };
    REQUIRE(mu_.AwaitWithTimeout(absl::Condition(&there), absl::Minutes(1)));
    return last_;
  }
  void AwaitCalls(uint64_t more) {
    absl::MutexLock lock(&mu_);
    const uint64_t target = calls_ + more;
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return calls_ >= target; };
    REQUIRE(mu_.AwaitWithTimeout(absl::Condition(&there), absl::Minutes(1)));
  }

 private:
  absl::Mutex mu_;
  NodeReport last_ ABSL_GUARDED_BY(mu_);
  NodeDirective directive_ ABSL_GUARDED_BY(mu_);
  uint64_t session_ ABSL_GUARDED_BY(mu_) = 10;
  uint64_t calls_ ABSL_GUARDED_BY(mu_) = 0;
  bool fence_ ABSL_GUARDED_BY(mu_) = false;
  bool reachable_ ABSL_GUARDED_BY(mu_) = true;
};

// Whether it is the only job, in that state.
bool HasState(const NodeReport& r, ServerJobReport::State state);

absl::Status OpenSession(DataTransport& transport, const std::string& address);

struct ScriptedCluster {
  TempFolder folder;
  ScriptedScheduler scheduler;
  std::unique_ptr<DataTransport> transport = MakeInProcTransport();
  ServerOptions Options() {
    ServerOptions o;
    o.name = "s";
    o.scheduler = &scheduler;
    o.transport = transport.get();
    o.listen_address = "s";
    o.directory = folder.path() + "/s";
    o.threads = 2;
    return o;
  }
};

}  // namespace strata::server

#endif  // STRATA_TESTS_SERVER_SCRIPTED_CLUSTER_H_
