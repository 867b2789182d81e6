// Directories that hang or cannot be written, and the locks there.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/job_work.h"
#include "proto/runtime/base/manual_clock.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/file_system.h"
#include "scheduler/store/checkpoint_locks.h"
#include "tests/scheduler/store/locks_of_cluster.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

using Kind = LockNews::Kind;
using May = CheckpointLockMachine::May;

TEST_CASE("a directory that hangs or is full holds up its own job alone", "[lock]") {
  const TempFolder folder;
  ManualClock clock;
  struct Slow : FileSystem {
    explicit Slow(std::string path) : slow(std::move(path)) {}
    int List(const std::string& path, std::vector<std::string>& names) override {
      if (path == slow && !go.HasBeenNotified()) {
        stuck.Notify();
        go.WaitForNotification();
      }
      return FileSystem::List(path, names);
    }
    int Rename(const std::string& from, const std::string& to) override {
      return full && absl::StartsWith(to, slow) ? -ENOSPC : FileSystem::Rename(from, to);
    }
    const std::string slow;
    bool full = false;
    absl::Notification stuck, go;
  } files(folder.path() + "/a");
  FileSystem::Kernel().MakeFolder(files.slow);
  FileSystem::Kernel().MakeFolder(folder.path() + "/b");
  Cluster c("c", &clock, &files);
  const std::vector<LockedJob> jobs = {JobIn(files.slow, "j1", 1),
                                       JobIn(folder.path() + "/b", "j2", 2)};
  c.locks.Want(jobs);
  std::thread first([&] { c.locks.Work(); });
  files.stuck.WaitForNotification();
  c.Run(jobs);
  CHECK(c.locks.MayWrite(2) == May::kYes);
  CHECK(c.locks.MayWrite(1) == May::kNotNow);
  files.go.Notify();
  first.join();
  c.Run(jobs);
  CHECK(c.locks.MayWrite(1) == May::kYes);

  files.full = true;
  clock.Advance(kLease);
  c.Run(jobs);
  CHECK(c.locks.MayWrite(1) == May::kNotNow);
  CHECK(c.locks.MayWrite(2) == May::kYes);
  const auto stalls = std::find_if(c.news.begin(), c.news.end(),
                                   [](const LockNews& n) { return n.kind == Kind::kStalls; });
  REQUIRE(stalls != c.news.end());
  CHECK(stalls->job == 1);
  CHECK(absl::StrContains(stalls->text, "LOCK.2"));
  files.full = false;
  clock.Advance(kLease);
  c.Run(jobs);
  CHECK(c.locks.MayWrite(1) == May::kYes);
}

// Lists of one folder that wait to be let through, one by one.
class Gate : public FileSystem {
 public:
  explicit Gate(std::string path) : path_(std::move(path)) {}
  int List(const std::string& path, std::vector<std::string>& names) override {
    if (path == path_) {
      MutexLock lock(&mu_);
      ++waiting_;
      const auto may = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return let_through_ > 0; };
      mu_.Await(absl::Condition(&may));
      --let_through_;
      --waiting_;
    }
    return FileSystem::List(path, names);
  }
  void Let(int through) {
    MutexLock lock(&mu_);
    let_through_ += through;
  }
  // Returns when all that may has passed, and a list waits.
  void AwaitWaiting() {
    MutexLock lock(&mu_);
    const auto waits = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return let_through_ == 0 && waiting_ > 0;
    };
    mu_.Await(absl::Condition(&waits));
  }

 private:
  const std::string path_;
  Mutex mu_;
  int let_through_ ABSL_GUARDED_BY(mu_) = 0;
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;
};

constexpr int kListsOfTaking = 3;    // look, take, and the removal of lower ones
constexpr int kListsOfRenewing = 2;  // before and after

TEST_CASE("a lock that stalled and was renewed in time after all is told to be held", "[lock]") {
  const TempFolder folder;
  ManualClock clock;
  struct Files : FileSystem {
    int Rename(const std::string& from, const std::string& to) override {
      if (full) return -ENOSPC;
      if (between) std::exchange(between, nullptr)();
      return FileSystem::Rename(from, to);
    }
    bool full = false;
    std::function<void()> between;
  } files;
  Cluster c("c", &clock, &files);
  const std::vector<LockedJob> jobs = {JobIn(folder.path(), "j1")};
  c.Run(jobs);
  files.full = true;
  clock.Advance(kLease * 3 / 4);
  c.Run(jobs);  // it fails, and is begun again a little before the lock lapses
  files.full = false;
  files.between = [&] {
    clock.Advance(kLease / 4);
    for (LockNews& n : c.locks.TakeNews()) c.news.push_back(std::move(n));
  };
  clock.Advance(kLease / 8);
  c.Run(jobs);
  CHECK(c.locks.MayWrite(1) == May::kYes);
  REQUIRE(c.news.size() == 3);
  CHECK(c.news[1].kind == Kind::kStalls);
  CHECK(c.news[2].kind == Kind::kHeld);
  CHECK(c.news[2].number == 1);
}

TEST_CASE("a renewal that hangs keeps nobody, is told, and counts from when it was begun",
          "[lock]") {
  const TempFolder folder;
  ManualTimer timer;
  Gate files(folder.path() + "/a");
  FileSystem::Kernel().MakeFolder(folder.path() + "/a");
  FileSystem::Kernel().MakeFolder(folder.path() + "/b");
  std::vector<LockNews> news;
  JobWork work(&timer);
  CheckpointLocks locks({.cluster_id = "c",
                         .term = 1,
                         .lease = kLease,
                         .clock = &timer,
                         .work = &work,
                         .files = &files});
  const std::vector<LockedJob> jobs = {JobIn(folder.path() + "/a", "j1", 1),
                                       JobIn(folder.path() + "/b", "j2", 2)};
  const auto work_now = [&] {
    locks.Want(jobs);
    locks.Work();
    for (LockNews& n : locks.TakeNews()) {
      // The other's thread may be slow: its lock lapses, and is held again.
      if (n.job == 1) news.push_back(std::move(n));
    }
  };
  const auto await = [&](uint64_t job, May may) {
    while (locks.MayWrite(job) != may) std::this_thread::yield();
  };
  files.Let(kListsOfTaking);
  work_now();
  await(1, May::kYes);
  await(2, May::kYes);
  work_now();
  CHECK(news.size() == 1);  // it is held

  timer.Advance(kLease / 2);  // both renew; one does not come back
  work_now();
  files.AwaitWaiting();
  for (int i = 0; i < 6; ++i) {
    timer.Advance(kLease / 4);
    work_now();
    await(2, May::kYes);
  }
  CHECK(locks.MayWrite(1) == May::kNotNow);
  REQUIRE(news.size() == 2);
  CHECK(news[1].kind == Kind::kStalls);
  CHECK(absl::StrContains(news[1].text, "spec.checkpoint.directory " + folder.path() +
                                            "/a cannot be locked: it did not answer for 9s"));
  // It comes back after a lease and a half: by then it says nothing.
  files.Let(kListsOfRenewing);
  files.AwaitWaiting();  // the next one
  CHECK(locks.MayWrite(1) == May::kNotNow);
  files.Let(kListsOfTaking);
  await(1, May::kYes);
}

}  // namespace
}  // namespace strata::scheduler
