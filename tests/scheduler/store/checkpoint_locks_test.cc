#include "scheduler/store/checkpoint_locks.h"

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_clock.h"
#include "proto/runtime/files/file_system.h"
#include "scheduler/store/lock_file.h"
#include "tests/scheduler/store/locks_of_cluster.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

using Kind = LockNews::Kind;
using May = CheckpointLockMachine::May;
using Phase = CheckpointLockMachine::Phase;

// Nothing can be written, once `fail` is set.
class NoRenewals : public FileSystem {
 public:
  int Open(const std::string& path, int flags) override {
    return fail && (flags & O_ACCMODE) != O_RDONLY ? -EACCES : FileSystem::Open(path, flags);
  }
  bool fail = false;
};

TEST_CASE("two clusters, one directory: the one that is silent loses it, and finds out", "[lock]") {
  const TempFolder folder;
  ManualClock clock;
  Cluster a("a", &clock), b("b", &clock);
  const std::vector<LockedJob> of_a = {JobIn(folder.path(), "ja")};
  const std::vector<LockedJob> of_b = {JobIn(folder.path(), "jb")};
  a.Run(of_a);
  REQUIRE(a.locks.MayWrite(1) == May::kYes);
  CHECK(b.locks.MayWrite(1) == May::kNotNow);  // also while nobody asked for the lock
  b.Run(of_b);
  CHECK(b.locks.MayWrite(1) == May::kNotNow);
  REQUIRE(b.news.size() == 1);
  CHECK(b.news[0].kind == Kind::kWaits);
  CHECK(absl::StrContains(b.news[0].text, "of cluster a"));

  const absl::Time silent = clock.Now();
  while (clock.Now() < silent + 2 * kLease) {
    // At no moment may both write.
    CHECK_FALSE(b.locks.MayWrite(1) == May::kYes);
    clock.Advance(kLease / 12);
    b.Run(of_b);
  }
  CHECK(b.locks.MayWrite(1) == May::kYes);
  CHECK(b.news.back().kind == Kind::kHeld);
  CHECK(a.locks.MayWrite(1) == May::kNotNow);
  a.Run(of_a);
  CHECK(a.locks.MayWrite(1) == May::kNever);
  CHECK(a.news.back().kind == Kind::kLost);
  CHECK(absl::StrContains(a.news.back().text, "was taken over by job day (jb) of cluster b"));
  CHECK(LookAtLock(folder.path())->lock->cluster_id() == "b");
  const size_t told = a.news.size();
  a.Run(of_a);
  CHECK(a.news.size() == told);
}

TEST_CASE("two schedulers of one cluster: the job's lock is with the later term", "[lock]") {
  const TempFolder folder;
  ManualClock clock;
  Cluster old("a", &clock), restored("a", &clock);
  const std::vector<LockedJob> jobs = {JobIn(folder.path(), "ja")};
  old.Run(jobs);
  REQUIRE(old.locks.MayWrite(1) == May::kYes);
  restored.locks.SetTerm(7, {});
  restored.Run(jobs);
  CHECK(restored.locks.MayWrite(1) == May::kYes);
  CHECK(LookAtLock(folder.path())->number == 2);
  // What the old one gives back is not the later one's.
  SECTION("a release") { old.Run({}); }
  SECTION("a renewal") {
    clock.Advance(kLease / 3);
    old.Run(jobs);
    CHECK(old.news.back().kind == Kind::kStalls);
  }
  SECTION("a look") { CHECK(*old.locks.LookAgain(1) == May::kNotNow); }
  CHECK(LookAtLock(folder.path())->lock->term() == 7);
  CHECK_FALSE(LookAtLock(folder.path())->lock->released());
  CHECK(*restored.locks.LookAgain(1) == May::kYes);
  CHECK_FALSE(old.locks.MayWrite(1) == May::kYes);
}

TEST_CASE("two starts of one term: the job's lock stays with the one that has it", "[lock]") {
  const TempFolder folder;
  ManualClock clock;
  Cluster real("a", &clock), copy("a", &clock);
  const std::vector<LockedJob> jobs = {JobIn(folder.path(), "ja")};
  real.locks.SetTerm(4, {{4, "true"}});
  real.Run(jobs);
  REQUIRE(real.locks.MayWrite(1) == May::kYes);
  SECTION("of that term") { copy.locks.SetTerm(4, {{4, "copy"}}); }
  SECTION("that has started again since") { copy.locks.SetTerm(6, {{4, "copy"}, {6, "again"}}); }
  for (int i = 0; i < 40; ++i) {  // also where the true one is gone: nobody knows that
    copy.Run(jobs);
    CHECK(copy.locks.MayWrite(1) == May::kNotNow);
    clock.Advance(kLease / 12);
  }
  REQUIRE(copy.news.size() == 1);
  CHECK(copy.news[0].kind == Kind::kStalls);
  CHECK(absl::StrContains(copy.news[0].text, "(start true)"));
  CHECK(LookAtLock(folder.path())->lock->start_id() == "true");
  // And that one comes back, under a term of its own.
  Cluster next("a", &clock);
  next.locks.SetTerm(5, {{4, "true"}, {5, "next"}});
  next.Run(jobs);
  CHECK(next.locks.MayWrite(1) == May::kYes);
  CHECK(LookAtLock(folder.path())->number == 2);
}

TEST_CASE("a lock that lapsed is held again under the next number, and that is told", "[lock]") {
  const TempFolder folder;
  ManualClock clock;
  Cluster c("c", &clock);
  const std::vector<LockedJob> jobs = {JobIn(folder.path(), "j1")};
  c.Run(jobs);
  REQUIRE(c.news.size() == 1);
  CHECK(c.news[0].number == 1);
  clock.Advance(kLease / 2);
  c.Run(jobs);
  CHECK(c.news.size() == 1);  // renewed
  clock.Advance(kLease);      // the process stood still
  CHECK(c.locks.MayWrite(1) == May::kNotNow);
  c.Run(jobs);
  CHECK(c.locks.MayWrite(1) == May::kYes);
  REQUIRE(c.news.size() == 2);
  CHECK(c.news[1].kind == Kind::kHeld);
  CHECK(c.news[1].number == 2);
  CHECK(c.locks.Of("j1").number == 2);
  CHECK(LookAtLock(folder.path())->number == 2);
}

TEST_CASE("an owner that lives keeps it, and the other is refused", "[lock]") {
  const TempFolder folder;
  ManualClock clock;
  Cluster a("a", &clock), b("b", &clock);
  a.Run({JobIn(folder.path(), "ja")});
  for (int i = 0; i < 12 && b.locks.Of("jb").phase != Phase::kRefused; ++i) {
    b.Run({JobIn(folder.path(), "jb")});
    clock.Advance(kLease / 12);
    a.Run({JobIn(folder.path(), "ja")});
  }
  REQUIRE(b.news.size() == 2);
  CHECK(b.news[1].kind == Kind::kRefused);
  CHECK(a.locks.MayWrite(1) == May::kYes);
  // Given back, it is free at once.
  a.Run({});
  CHECK(a.locks.MayWrite(1) == May::kNever);
  Cluster c("c", &clock);
  c.Run({JobIn(folder.path(), "jc")});
  CHECK(c.locks.MayWrite(1) == May::kYes);
}

TEST_CASE("jobs of one cluster: a live one is known at once, one that is over as well", "[lock]") {
  const TempFolder folder;
  ManualClock clock;
  Cluster a("a", &clock);
  a.Run({JobIn(folder.path(), "j1", 1)});
  a.locks.Ask(JobIn(folder.path(), "j2", 0));
  a.locks.Work();
  CHECK(a.locks.Of("j2").phase == Phase::kRefused);
  a.locks.Settle("j2");
  a.Run({JobIn(folder.path(), "j1", 1)});
  CHECK(a.locks.Of("j2").phase == Phase::kReleased);  // forgotten

  Cluster restarted("a", &clock);  // and the job is over
  restarted.locks.Ask(JobIn(folder.path(), "j3", 0));
  restarted.locks.Work();
  CHECK(restarted.locks.Of("j3").phase == Phase::kHeld);
  restarted.Run({});  // a submission under way is not given back
  CHECK(restarted.locks.Of("j3").phase == Phase::kHeld);
  restarted.locks.Settle("j3");
  restarted.Run({});
  CHECK(LookAtLock(folder.path())->lock->released());
}

TEST_CASE("who waits for a job that is over hears what that still does", "[lock]") {
  const TempFolder folder;
  ManualClock clock;
  Cluster a("a", &clock);
  LockedJob over = JobIn(folder.path(), "j1", 1);
  const LockedJob next = JobIn(folder.path(), "j2", 2);
  a.Run({over});
  over.over = true;
  over.does = "waiting for its servers to close it";
  a.Run({over, next});
  a.Run({over, next});
  CHECK(a.news.back().kind == Kind::kWaits);
  CHECK(a.news.back().job == 2);
  CHECK(absl::StrContains(a.news.back().text, "now it is waiting for its servers to close it"));
  over.does = "emptying /mount/m.jsonl";
  const size_t told = a.news.size();
  for (int i = 0; i < 3; ++i) {
    clock.Advance(kLease / 12);
    a.Run({over, next});
  }
  REQUIRE(a.news.size() == told + 1);  // once
  CHECK(absl::StrContains(a.news.back().text, "now it is emptying /mount/m.jsonl"));
  CHECK(absl::StrContains(a.locks.Of("j2").why, "now it is emptying /mount/m.jsonl"));
  for (int i = 0; i < 3; ++i) {
    clock.Advance(kLease / 12);
    a.Run({next});
  }
  CHECK(a.locks.MayWrite(2) == May::kYes);
}

TEST_CASE("who waits for a job that is over hears why that has not got its lock", "[lock]") {
  const TempFolder folder;
  ManualClock clock;
  NoRenewals files;
  Cluster a("a", &clock, &files);
  LockedJob over = JobIn(folder.path(), "j1", 1);
  a.Run({over});
  over.over = true;
  over.does = "removing /c/4";
  files.fail = true;
  clock.Advance(kLease / 3);
  a.Run({over, JobIn(folder.path(), "j2", 2)});
  a.Run({over, JobIn(folder.path(), "j2", 2)});
  const std::string why = a.locks.Of("j2").why;
  INFO(why);
  CHECK(absl::StrContains(why, "now it is removing /c/4: spec.checkpoint.directory"));
  CHECK(absl::StrContains(why, "cannot be locked: cannot"));
}

// Its scheduler was stopped after that, and before it was recorded.
TEST_CASE("a job that is over and finds its lock given back takes it again", "[lock]") {
  const TempFolder folder;
  ManualClock clock;
  Cluster before("a", &clock);
  LockedJob job = JobIn(folder.path(), "j1", 1);
  before.Run({job});
  before.Run({});
  REQUIRE(LookAtLock(folder.path())->lock->released());
  job.began = true;
  job.over = GENERATE(true, false);
  Cluster after("a", &clock);
  after.locks.SetTerm(2, {});
  after.Run({job});
  CHECK(after.locks.MayWrite(1) == (job.over ? May::kYes : May::kNotNow));
  CHECK(LookAtLock(folder.path())->number == (job.over ? 2 : 1));
  if (job.over) CHECK(after.locks.Of("j1").first_cut == 0);
}

// It has nothing to do there but to clean up, and may harm who has the directory now.
TEST_CASE("a job that is over takes nobody else's lock", "[lock]") {
  const TempFolder folder;
  ManualClock clock;
  Cluster a("a", &clock), b("b", &clock);
  LockedJob over = JobIn(folder.path(), "j1", 1);
  const LockedJob next = JobIn(folder.path(), "j2", 1);
  a.Run({over});
  while (b.locks.MayWrite(1) != May::kYes) {
    b.Run({next});
    clock.Advance(kLease / 12);
  }
  const bool released = GENERATE(false, true);
  CAPTURE(released);
  if (released) b.Run({});
  over.began = true;
  over.over = true;
  Cluster again("a", &clock);
  again.locks.SetTerm(2, {});
  for (int i = 0; i < 36; ++i) {  // its owner is silent
    again.Run({over});
    clock.Advance(kLease / 12);
  }
  CHECK(again.locks.Of("j1").phase == Phase::kLost);
  CHECK(again.locks.MayWrite(1) == May::kNever);
  CHECK(LookAtLock(folder.path())->number == 2);
  CHECK(LookAtLock(folder.path())->lock->job_uid() == "j2");
  if (released) return;
  b.Run({next});
  b.Run({next});
  CHECK(b.locks.MayWrite(1) == May::kYes);
}

}  // namespace
}  // namespace strata::scheduler
