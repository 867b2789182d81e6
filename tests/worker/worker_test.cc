// A worker and its scheduler: sessions, and the pauses while there is none. Its jobs are tested in
// tests/e2e.
#include "worker/worker.h"

#include <catch2/catch.hpp>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/node_cluster.h"
#include "proto/strata/control.pb.h"
#include "tests/proto/runtime/transport/unanswered_scheduler.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

// Answers Sync with what the test says, in turn; a call without an answer waits for one.
class ScriptedScheduler : public testing::UnansweredScheduler {
 public:
  absl::StatusOr<NodeDirective> Sync(const NodeReport& report, absl::Duration) override {
    absl::MutexLock lock(&mu_);
    sessions_.push_back(report.session());
    const auto said = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !answers_.empty(); };
    mu_.Await(absl::Condition(&said));
    auto answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }

  void Say(absl::StatusOr<NodeDirective> answer) {
    absl::MutexLock lock(&mu_);
    answers_.push_back(std::move(answer));
  }
  void SaySession(uint64_t session, uint64_t term = 0) {
    NodeDirective directive;
    directive.set_term(term);
    directive.set_session(session);
    directive.set_cluster_id(ClusterId{0, 1}.text());
    Say(directive);
  }
  // The sessions of the first `n` reports, once there are that many.
  std::vector<uint64_t> Sessions(size_t n) {
    absl::MutexLock lock(&mu_);
    const auto there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return sessions_.size() >= n; };
    REQUIRE(mu_.AwaitWithTimeout(absl::Condition(&there), absl::Minutes(1)));
    return sessions_;
  }

 private:
  absl::Mutex mu_;
  std::deque<absl::StatusOr<NodeDirective>> answers_ ABSL_GUARDED_BY(mu_);
  std::vector<uint64_t> sessions_ ABSL_GUARDED_BY(mu_);
};

TEST_CASE("a worker tries its scheduler again after pauses of the timer", "[worker]") {
  ManualTimer timer;
  ScriptedScheduler scheduler;
  auto worker =
      Worker::Start({.name = "w", .scheduler = &scheduler, .timer = &timer, .random = nullptr});
  REQUIRE(worker.ok());
  scheduler.SaySession(7);
  CHECK(scheduler.Sessions(2) == std::vector<uint64_t>{0, 7});
  CHECK((*worker)->Counters().registered);
  for (const int pause : {10, 20, 40, 80, 160, 320, 640, 1000, 1000}) {
    scheduler.Say(absl::UnavailableError("no scheduler"));
    timer.AwaitAlarms(1);
    CHECK(timer.next() - timer.Now() == absl::Milliseconds(pause));
    timer.AdvanceTo(timer.next());
  }
  scheduler.SaySession(7);  // there it is: the next pause is a short one
  scheduler.Say(absl::UnauthenticatedError("fenced"));
  timer.AwaitAlarms(1);
  CHECK(timer.next() - timer.Now() == absl::Milliseconds(10));
  CHECK_FALSE((*worker)->Counters().registered);
  scheduler.SaySession(8);
  timer.AdvanceTo(timer.next());
  CHECK(scheduler.Sessions(14) == std::vector<uint64_t>{0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0, 8});
  scheduler.Say(absl::UnavailableError("no scheduler"));
  timer.AwaitAlarms(1);
  worker->reset();  // waits for no pause
  CHECK(timer.alarms() == 0);
}

TEST_CASE("a worker whose folder was removed follows a later start of its scheduler", "[worker]") {
  const TempFolder folder;
  const std::string own = folder.path() + "/w";
  std::filesystem::create_directory(own);
  ManualTimer timer;
  ScriptedScheduler scheduler;
  auto worker = Worker::Start(
      {.name = "w", .scheduler = &scheduler, .timer = &timer, .random = nullptr, .directory = own});
  REQUIRE(worker.ok());
  scheduler.SaySession(7, 1);
  CHECK(scheduler.Sessions(2) == std::vector<uint64_t>{0, 7});
  std::filesystem::remove_all(own);
  scheduler.SaySession(8, 2);
  CHECK(scheduler.Sessions(3) == std::vector<uint64_t>{0, 7, 8});
  // Back in its place, it is written to.
  std::filesystem::create_directory(own);
  timer.AdvanceTo(timer.Now() + absl::Seconds(2));
  scheduler.SaySession(8, 2);
  scheduler.SaySession(8, 2);
  CHECK(scheduler.Sessions(5).back() == 8);
  CHECK(NodeCluster::Open(own)->term() == 2);
  scheduler.Say(absl::UnavailableError("no scheduler"));
  timer.AwaitAlarms(1);
}

}  // namespace
}  // namespace strata
