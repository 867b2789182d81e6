// Who waits for room on the disk, and until when. The files themselves are tested through the tier
// (tier_test.cc).
#include "storage/rocks/files.h"

#include <catch2/catch.hpp>
#include <latch>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"

namespace strata::storage {
namespace {

// An operation that finds no room.
struct Operation {
  explicit Operation(RoomWatch* watch)
      : thread([this, watch] {
          RoomWatch::Shortage shortage(watch);
          again = shortage.Await("no room");
          returned.count_down();
          done.wait();  // it lacks room until then
        }) {}
  void Join() {
    done.count_down();
    thread.join();
  }

  bool again = false;
  std::latch returned{1}, done{1};  // ThreadSanitizer sees them
  std::thread thread;
};

TEST_CASE("what lacks room is tried again after a second of the timer", "[tier]") {
  ManualTimer timer;
  RoomWatch watch(&timer);
  watch.Open();
  const absl::Time start = timer.Now();
  Operation operation(&watch);
  timer.AwaitAlarms(1);
  CHECK(timer.next() == start + RoomWatch::kRetry);
  CHECK_FALSE(operation.returned.try_wait());
  timer.AdvanceTo(timer.next());
  operation.returned.wait();
  CHECK(operation.again);
  operation.Join();
}

TEST_CASE("it is tried at once when somebody waits, who gets its trouble in the end", "[tier]") {
  ManualTimer timer;
  RoomWatch watch(&timer);
  watch.Open();
  Operation operation(&watch);
  timer.AwaitAlarms(1);
  std::string trouble;
  std::thread writer([&] { trouble = watch.TryAgain(absl::Seconds(5)); });
  operation.returned.wait();  // no time has passed
  CHECK(operation.again);
  timer.AwaitAlarms(1);
  timer.Advance(absl::Seconds(5));
  writer.join();
  CHECK(trouble == "no room");
  operation.Join();
  CHECK(watch.TryAgain(absl::Seconds(5)).empty());
}

TEST_CASE("a writer waits for a change, or for its time", "[tier]") {
  ManualTimer timer;
  RoomWatch watch(&timer);
  watch.Open();
  bool changed = true;
  std::thread late([&] { changed = watch.AwaitChange(watch.changes(), absl::Seconds(2)); });
  timer.AwaitAlarms(1);
  timer.Advance(absl::Seconds(2));
  late.join();
  CHECK_FALSE(changed);
  std::thread met([&] { changed = watch.AwaitChange(watch.changes(), absl::Seconds(2)); });
  timer.AwaitAlarms(1);
  watch.Progress();
  met.join();
  CHECK(changed);
}

TEST_CASE("nobody waits for a tier that is closed", "[tier]") {
  ManualTimer timer;
  RoomWatch watch(&timer);
  watch.Open();
  Operation operation(&watch);
  timer.AwaitAlarms(1);
  watch.Close();
  // What had begun to wait is not held for longer than until its next look.
  operation.returned.wait();
  CHECK_FALSE(operation.again);
  operation.Join();
  RoomWatch::Shortage after(&watch);
  CHECK_FALSE(after.Await("no room"));
}

}  // namespace
}  // namespace strata::storage
