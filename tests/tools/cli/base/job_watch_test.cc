#include "tools/cli/base/job_watch.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_clock.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/runtime/transport/unanswered_scheduler.h"

namespace strata {
namespace {

// Answers GetJob from a list, the last one again and again.
class ScriptedScheduler : public testing::UnansweredScheduler {
 public:
  std::vector<absl::StatusOr<JobStatus>> answers;
  size_t asked = 0;

  absl::StatusOr<JobStatus> GetJob(const JobRef&, absl::Duration) override {
    return answers[std::min(asked++, answers.size() - 1)];
  }
};

JobStatus In(JobState state) {
  JobStatus s;
  s.set_name("j");
  s.set_state(state);
  return s;
}

struct Fixture {
  ScriptedScheduler scheduler;
  ManualClock clock;
  std::vector<std::string> messages;
  std::atomic<bool> interrupted{false};

  absl::StatusOr<JobStatus> Watch(absl::Duration timeout = absl::InfiniteDuration()) {
    WatchOptions options;
    options.clock = &clock;
    options.timeout = timeout;
    options.interrupted = &interrupted;
    options.sleep = [this](absl::Duration d) { clock.Advance(d); };
    options.on_message = [this](const std::string& m) { messages.push_back(m); };
    return WatchJob(scheduler, JobRef(), options);
  }
};

TEST_CASE("a job is named by number or by name", "[job_watch]") {
  CHECK(ParseJobRef("17").job() == 17);
  CHECK(ParseJobRef("17").name().empty());
  CHECK(ParseJobRef("run-17").name() == "run-17");
  CHECK(ParseJobRef("99999999999999999999").name() == "99999999999999999999");
}

TEST_CASE("the watch ends with the job, however it ends", "[job_watch]") {
  for (const JobState end : {SUCCEEDED, FAILED, CANCELLED}) {
    Fixture f;
    f.scheduler.answers = {In(PENDING), In(RUNNING), In(SUSPENDED), In(RUNNING), In(end)};
    absl::StatusOr<JobStatus> status = f.Watch();
    REQUIRE(status.ok());
    CHECK(status->state() == end);
    CHECK(f.scheduler.asked == 5);
  }
}

TEST_CASE("a scheduler that comes back is waited for, and told of once", "[job_watch]") {
  Fixture f;
  const absl::Status gone = absl::UnavailableError("no scheduler answers");
  f.scheduler.answers = {In(RUNNING), gone,         gone, absl::DeadlineExceededError("slow"),
                         In(RUNNING), In(SUCCEEDED)};
  REQUIRE(f.Watch().ok());
  REQUIRE(f.messages.size() == 2);
  CHECK(f.messages[0] ==
        "the scheduler does not answer (no scheduler answers); the job goes on, and this waits up "
        "to 1:00 for it");
  CHECK(f.messages[1] == "the scheduler answers again");
}

TEST_CASE("a scheduler that stays away ends the watch", "[job_watch]") {
  Fixture f;
  f.scheduler.answers = {In(RUNNING), absl::UnavailableError("nobody at h:1")};
  const absl::Status status = f.Watch().status();
  CHECK(absl::IsUnavailable(status));
  CHECK(status.message() == "the scheduler was gone for 1:00: nobody at h:1");
}

TEST_CASE("absences do not add up", "[job_watch]") {
  Fixture f;
  const std::vector<absl::StatusOr<JobStatus>> gone(150, absl::UnavailableError("nobody"));
  for (int absence = 0; absence < 4; ++absence) {  // each shorter than the limit, together longer
    f.scheduler.answers.insert(f.scheduler.answers.end(), gone.begin(), gone.end());
    f.scheduler.answers.push_back(In(RUNNING));
  }
  f.scheduler.answers.push_back(In(SUCCEEDED));
  CHECK(f.Watch().ok());
  CHECK(f.clock.Now() - Fixture().clock.Now() > absl::Minutes(1));
}

TEST_CASE("time runs out, Ctrl-C detaches, other errors end at once", "[job_watch]") {
  Fixture slow;
  slow.scheduler.answers = {In(RUNNING)};
  const absl::Status late = slow.Watch(absl::Seconds(5)).status();
  CHECK(absl::IsDeadlineExceeded(late));
  CHECK(late.message() == "the job is not at its end after 5.0 s");
  Fixture stopped;
  stopped.scheduler.answers = {In(RUNNING)};
  stopped.interrupted = true;
  CHECK(absl::IsCancelled(stopped.Watch().status()));
  CHECK(stopped.scheduler.asked == 1);
  Fixture unknown;
  unknown.scheduler.answers = {absl::NotFoundError("no job 'x'")};
  CHECK(absl::IsNotFound(unknown.Watch().status()));
  CHECK(unknown.scheduler.asked == 1);
}

}  // namespace
}  // namespace strata
