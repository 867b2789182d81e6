#include "scheduler/store/lock_file.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/runtime/files/file_system.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

namespace fs = std::filesystem;

CheckpointLock Owner(const std::string& uid, uint64_t counter = 1) {
  CheckpointLock lock;
  lock.set_format(1);
  lock.set_cluster_id("c");
  lock.set_job_uid(uid);
  lock.set_counter(counter);
  return lock;
}

std::set<std::string> Names(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

// The nth call that changes or opens something fails; or what a test puts in the way of links.
class Failing : public FileSystem {
 public:
  int fail_at = 0, error = 0;
  std::function<int(const std::string&, const std::string&)> link;

  int Open(const std::string& path, int flags) override {
    return Fails() ? -error : FileSystem::Open(path, flags);
  }
  ssize_t Write(int fd, std::span<const iovec> parts, uint64_t offset) override {
    return Fails() ? -error : FileSystem::Write(fd, parts, offset);
  }
  int Sync(int fd, SyncWhat what) override { return Fails() ? -error : FileSystem::Sync(fd, what); }
  int Rename(const std::string& from, const std::string& to) override {
    return Fails() ? -error : FileSystem::Rename(from, to);
  }
  int Link(const std::string& from, const std::string& to) override {
    if (link) return link(from, to);
    return Fails() ? -error : FileSystem::Link(from, to);
  }
  int List(const std::string& path, std::vector<std::string>& names) override {
    return Fails() ? -error : FileSystem::List(path, names);
  }
  int calls() const { return calls_; }

 private:
  bool Fails() { return ++calls_ == fail_at; }
  int calls_ = 0;
};

TEST_CASE("a number is taken by one alone, and the last number counts", "[lock]") {
  const TempFolder folder;
  const std::string& at = folder.path();
  CHECK(LookAtLock(at)->number == 0);
  CHECK(LookAtLock(at + "/none")->number == 0);
  REQUIRE(*TakeLock(at, 1, Owner("a")));
  CHECK_FALSE(*TakeLock(at, 1, Owner("b")));
  CHECK(*TakeLock(at, 1, Owner("a")));  // its answer was lost the first time
  const auto seen = LookAtLock(at);
  CHECK(seen->number == 1);
  CHECK(seen->lock->job_uid() == "a");
  REQUIRE(*TakeLock(at, 2, Owner("b")));
  CHECK(LookAtLock(at)->lock->job_uid() == "b");
  CHECK(Names(at) == std::set<std::string>{"LOCK.2"});
  // Who found number 0 free long ago finds out.
  CHECK_FALSE(*TakeLock(at, 1, Owner("c")));
  CHECK(Names(at) == std::set<std::string>{"LOCK.2"});
}

TEST_CASE("an owner renews its own number, and never another's", "[lock]") {
  const TempFolder folder;
  const std::string at = folder.path() + "/c";
  fs::create_directory(at);
  REQUIRE(*TakeLock(at, 1, Owner("a")));
  const std::string before = LookAtLock(at)->text;
  auto seen = RenewLock(at, 1, Owner("a", 2));
  CHECK(seen->lock->counter() == 2);
  CHECK(seen->text != before);
  fs::remove_all(at);  // it is made anew
  CHECK(RenewLock(at, 1, Owner("a", 3))->lock->counter() == 3);

  REQUIRE(*TakeLock(at, 2, Owner("b")));
  seen = RenewLock(at, 1, Owner("a", 4));
  CHECK(seen->number == 2);
  CHECK(seen->lock->job_uid() == "b");
  REQUIRE(ReleaseLock(at, 1, Owner("a", 5)).ok());
  CHECK(Names(at) == std::set<std::string>{"LOCK.2"});
  CHECK(LookAtLock(at)->lock->counter() == 1);

  // Somebody removed all locks by hand, and another job began.
  fs::remove(at + "/LOCK.2");
  REQUIRE(*TakeLock(at, 1, Owner("d")));
  CHECK(RenewLock(at, 1, Owner("a", 6))->lock->job_uid() == "d");
}

TEST_CASE("one who takes over while an owner renews is seen by it", "[lock]") {
  const TempFolder folder;
  const std::string& at = folder.path();
  REQUIRE(*TakeLock(at, 1, Owner("a")));
  struct Slow : FileSystem {
    int Rename(const std::string& from, const std::string& to) override {
      if (between) std::exchange(between, nullptr)();
      return FileSystem::Rename(from, to);
    }
    std::function<void()> between;
  } files;
  files.between = [&] { REQUIRE(*TakeLock(at, 2, Owner("b"))); };
  const auto seen = RenewLock(at, 1, Owner("a", 2), files);
  CHECK(seen->number == 2);
  CHECK(Names(at) == std::set<std::string>{"LOCK.2"});
}

CheckpointLock OfTerm(uint64_t term) {
  CheckpointLock lock = Owner("a");
  lock.set_term(term);
  return lock;
}

TEST_CASE("of one job's terms the highest has the lock", "[lock]") {
  const TempFolder folder;
  const std::string& at = folder.path();
  REQUIRE(*TakeLock(at, 1, OfTerm(2)));
  CHECK_FALSE(*TakeLock(at, 1, OfTerm(1)));  // another process of its scheduler has it
  CHECK_FALSE(*TakeLock(at, 1, OfTerm(3)));
  CHECK(RenewLock(at, 1, OfTerm(1))->lock->term() == 2);
  REQUIRE(ReleaseLock(at, 1, Owner("b")).ok());
  CheckpointLock release = OfTerm(1);
  release.set_released(true);
  REQUIRE(ReleaseLock(at, 1, release).ok());
  CHECK(LookAtLock(at)->lock->term() == 2);
  CHECK_FALSE(LookAtLock(at)->lock->released());
  release.set_term(2);
  release.set_start_id("another");
  REQUIRE(ReleaseLock(at, 1, release).ok());
  CHECK(RenewLock(at, 1, release)->lock->start_id().empty());
  CHECK_FALSE(*TakeLock(at, 1, release));
  CHECK_FALSE(LookAtLock(at)->lock->released());
  release.set_start_id("");
  REQUIRE(ReleaseLock(at, 1, release).ok());
  CHECK(LookAtLock(at)->lock->released());
}

TEST_CASE("a number that no scheduler makes is refused by name", "[lock]") {
  for (const char* name : {"LOCK.18446744073709551615", "LOCK.99999999999999999999999"}) {
    const TempFolder folder;
    const std::string path = folder.path() + "/" + name;
    std::ofstream(path) << "somebody's";
    const absl::Status refused = LookAtLock(folder.path()).status();
    INFO(refused);
    CHECK(absl::IsFailedPrecondition(refused));
    CHECK(absl::StrContains(refused.message(), path));
    CHECK(absl::StrContains(refused.message(), "remove it"));
    CHECK(absl::IsFailedPrecondition(RenewLock(folder.path(), 1, Owner("a")).status()));
    CHECK(Names(folder.path()) == std::set<std::string>{name});
  }
}

TEST_CASE("where a file system has no links, a new file does", "[lock]") {
  const TempFolder folder;
  const std::string& at = folder.path();
  Failing files;
  files.link = [](const std::string&, const std::string&) { return -EPERM; };
  REQUIRE(*TakeLock(at, 1, Owner("a"), files));
  CHECK(LookAtLock(at)->lock->job_uid() == "a");
  CHECK_FALSE(*TakeLock(at, 1, Owner("b"), files));
  CHECK(Names(at) == std::set<std::string>{"LOCK.1"});
  files.link = [](const std::string&, const std::string&) { return -EIO; };
  const absl::Status failed = TakeLock(at, 2, Owner("b"), files).status();
  CHECK(absl::StrContains(failed.message(), at + "/LOCK.2"));
}

TEST_CASE("a call that fails is an error with a path, and leaves the lock as it was or taken",
          "[lock]") {
  for (int nth = 1;; ++nth) {
    CAPTURE(nth);
    const TempFolder folder;
    const std::string& at = folder.path();
    REQUIRE(*TakeLock(at, 1, Owner("a")));
    Failing files;
    files.fail_at = nth;
    files.error = ENOSPC;
    const auto taken = TakeLock(at, 2, Owner("b"), files);
    const auto now = LookAtLock(at);
    REQUIRE(now.ok());
    REQUIRE(now->lock);
    if (!taken.ok()) {
      CHECK(absl::StrContains(taken.status().message(), at));
      CHECK(*TakeLock(at, 2, Owner("b")));  // tried again
    }
    CHECK(LookAtLock(at)->lock->job_uid() == "b");
    // Lower ones go where that can be done; nothing else is left.
    std::set<std::string> names = Names(at);
    if (files.calls() >= nth) names.erase("LOCK.1");
    CHECK(names == std::set<std::string>{"LOCK.2"});
    if (files.calls() < nth) break;
  }
  for (int nth = 1;; ++nth) {
    CAPTURE(nth);
    const TempFolder folder;
    const std::string& at = folder.path();
    REQUIRE(*TakeLock(at, 1, Owner("a")));
    Failing files;
    files.fail_at = nth;
    files.error = EIO;
    const auto renewed = RenewLock(at, 1, Owner("a", 2), files);
    CHECK(LookAtLock(at)->lock->job_uid() == "a");
    if (!renewed.ok()) CHECK(absl::StrContains(renewed.status().message(), at));
    CHECK(RenewLock(at, 1, Owner("a", 3))->lock->counter() == 3);
    if (files.calls() < nth) break;
  }
}

TEST_CASE("a lock that cannot be read is a lock", "[lock]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/LOCK.3";
  std::ofstream(path) << "torn";
  const auto seen = LookAtLock(folder.path());
  REQUIRE(seen.ok());
  CHECK(seen->number == 3);
  CHECK(seen->text == "torn");
  CHECK_FALSE(seen->lock);
  std::ofstream(folder.path() + "/LOCK.4.tmp") << "on the way";
  std::ofstream(folder.path() + "/LOCKS") << "a user's";
  CHECK(LookAtLock(folder.path())->number == 3);
  REQUIRE(*TakeLock(folder.path(), 5, Owner("a")));
  CHECK(Names(folder.path()) == std::set<std::string>{"LOCK.5", "LOCKS"});
}

}  // namespace
}  // namespace strata::scheduler
