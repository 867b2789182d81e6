// When a disk is called slow, and since when.
#include "server/protocol/slow_disk.h"

#include <catch2/catch.hpp>

#include "absl/time/time.h"

namespace strata::server {
namespace {

// Writes one after the other, `each` long, for `span`.
class Disk {
 public:
  void Write(absl::Duration each, absl::Duration span) {
    for (const absl::Time end = now_ + span; now_ < end;) {
      watch_.Began(now_);
      now_ += each;
      watch_.Ended(each, now_);
    }
  }
  SlowDisk& watch() { return watch_; }
  absl::Time now() const { return now_; }
  void Pass(absl::Duration d) { now_ += d; }
  auto Look() const { return watch_.Look(now_); }

 private:
  SlowDisk watch_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
};

TEST_CASE("a disk that takes ten times as long is slow, until it takes less than five times",
          "[slow_disk]") {
  Disk disk;
  disk.Write(absl::Milliseconds(1), absl::Minutes(1));
  CHECK_FALSE(disk.Look());
  const absl::Time turned = disk.now();
  disk.Write(absl::Milliseconds(12), absl::Seconds(11));
  REQUIRE(disk.Look());
  CHECK(disk.Look()->usual == absl::Milliseconds(1));
  CHECK(disk.Look()->now > absl::Milliseconds(11));
  CHECK(disk.Look()->since >= turned - SlowDisk::kSpan);
  CHECK(disk.Look()->since <= turned + SlowDisk::kSpan);
  const absl::Time since = disk.Look()->since;
  disk.Write(absl::Milliseconds(7), absl::Minutes(3));  // slower than usual all the while
  REQUIRE(disk.Look());
  CHECK(disk.Look()->since == since);
  CHECK(disk.Look()->usual == absl::Milliseconds(1));
  disk.Write(absl::Milliseconds(1), absl::Seconds(11));
  CHECK_FALSE(disk.Look());
}

TEST_CASE("what is fast still is not slow, and what is new has no usual time", "[slow_disk]") {
  Disk fast;
  fast.Write(absl::Microseconds(20), absl::Seconds(30));
  fast.Write(absl::Milliseconds(4), absl::Seconds(30));
  CHECK_FALSE(fast.Look());
  Disk fresh;
  fresh.Write(absl::Milliseconds(1), absl::Seconds(6));
  fresh.Write(absl::Milliseconds(100), absl::Seconds(6));
  CHECK_FALSE(fresh.Look());
}

TEST_CASE("a write that does not end is told", "[slow_disk]") {
  Disk disk;
  disk.Write(absl::Milliseconds(2), absl::Seconds(30));
  const absl::Time began = disk.now();
  disk.watch().Began(began);
  disk.Pass(absl::Seconds(2));
  CHECK_FALSE(disk.Look());
  disk.Pass(absl::Seconds(20));
  REQUIRE(disk.Look());
  CHECK(disk.Look()->since == began);
  CHECK(disk.Look()->now == absl::Seconds(22));
}

TEST_CASE("a disk that nobody writes to is not slow", "[slow_disk]") {
  Disk disk;
  disk.Write(absl::Milliseconds(2), absl::Seconds(30));
  disk.Pass(absl::Hours(1));
  CHECK_FALSE(disk.Look());
}

}  // namespace
}  // namespace strata::server
