// Work that hangs, and what goes on beside it. Time moves by hand; what hangs does so until the
// test lets it go.
#include "proto/runtime/base/job_work.h"

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"

namespace strata {
namespace {

using Begins = JobWork::Begins;

// A call that does not come back before it is let go, or, where nobody can let it go, before the
// test has failed.
struct Hung {
  static constexpr absl::Duration kAtMost = absl::Seconds(20);
  absl::Notification begun, go, ended;
  std::function<void()> work() {
    return [this] {
      begun.Notify();
      go.WaitForNotificationWithTimeout(kAtMost);
      ended.Notify();
    };
  }
};

TEST_CASE("pieces of a job run one after the other, those of others beside them", "[work]") {
  ManualTimer timer;
  Hung a;
  absl::Notification b;
  std::string order;
  JobWork work(&timer);
  work.Post("a", Begins::kInOrder, a.work());
  work.Post("a", Begins::kInOrder, [&] { order += "2"; });
  work.Post("a", Begins::kPassing, [&] { order += "3"; });
  work.Post("b", Begins::kInOrder, [&] { b.Notify(); });
  b.WaitForNotification();
  a.begun.WaitForNotification();
  CHECK(work.Of("a").running == 1);
  CHECK(work.Of("a").waiting == 2);
  a.go.Notify();
  work.Drain();
  CHECK(order == "23");
  CHECK(work.Sum().running == 0);
  CHECK(work.Sum().waiting == 0);
}

TEST_CASE("what hangs is passed when patience ends, not before, and by what may", "[work]") {
  ManualTimer timer;
  Hung first, second;
  std::atomic<bool> third{false};
  JobWork work(&timer);
  work.Post("a", Begins::kInOrder, first.work());
  first.begun.WaitForNotification();
  timer.Advance(JobWork::kPatience);
  work.Post("a", Begins::kPassing, second.work());
  work.Post("a", Begins::kInOrder, [&] { third = true; });
  timer.Advance(JobWork::kPatience - absl::Milliseconds(1));
  work.Pump();
  CHECK(work.Of("a").running == 1);
  CHECK_FALSE(work.Of("a").held);
  timer.Advance(absl::Milliseconds(1));
  CHECK(work.Of("a").held);
  work.Pump();
  second.begun.WaitForNotification();
  CHECK(work.Of("a").running == 2);
  CHECK(work.Of("a").passed == 1);
  CHECK(work.Of("a").waiting == 1);  // in its order, however long that takes
  timer.Advance(JobWork::kPatience);
  second.go.Notify();
  second.ended.WaitForNotification();
  work.Pump();
  CHECK(work.Of("a").waiting == 1);
  CHECK_FALSE(third);
  first.go.Notify();
  work.Drain();
  CHECK(third);
}

TEST_CASE("a job has four threads at most, and goes on with the first that comes back", "[work]") {
  ManualTimer timer;
  std::array<Hung, JobWork::kMostThreads + 1> hung;
  JobWork work(&timer);
  for (Hung& h : hung) {
    work.Post("a", Begins::kPassing, h.work());
    timer.Advance(JobWork::kPatience);
    work.Pump();
  }
  for (size_t i = 0; i < JobWork::kMostThreads; ++i) hung[i].begun.WaitForNotification();
  CHECK(work.Of("a").running == JobWork::kMostThreads);
  CHECK(work.Of("a").waiting == 1);
  CHECK(work.Of("a").held);
  hung[2].go.Notify();
  hung.back().begun.WaitForNotification();
  for (size_t i = 0; i < hung.size(); ++i) {
    if (i != 2) hung[i].go.Notify();
  }
  work.Drain();
}

TEST_CASE("what nobody wants any more stands in nobody's way", "[work]") {
  ManualTimer timer;
  Hung hung;
  JobWork work(&timer);
  work.Post("a", Begins::kInOrder, hung.work());
  const auto cancelled = std::make_shared<std::atomic<bool>>(false);
  std::atomic<bool> unwanted{false};
  absl::Notification passes;
  work.Post(
      "a", Begins::kInOrder, [&] { unwanted = true; }, cancelled);
  work.Post("a", Begins::kPassing, [&] { passes.Notify(); });
  timer.Advance(JobWork::kPatience);
  work.Pump();
  CHECK(work.Of("a").waiting == 2);
  *cancelled = true;
  work.Pump();
  passes.WaitForNotification();
  hung.go.Notify();
  work.Drain();
  CHECK_FALSE(unwanted);
  work.Post(
      "a", Begins::kInOrder, [&] { unwanted = true; }, cancelled);
  CHECK(work.Of("a").waiting == 0);
  CHECK_FALSE(unwanted);
}

TEST_CASE("work may post more, which is waited for as well", "[work]") {
  ManualTimer timer;
  std::string order;
  {
    JobWork work(&timer);
    work.Post("a", Begins::kInOrder, [&] {
      order += "1";
      work.Post("a", Begins::kInOrder, [&] { order += "2"; });
    });
  }
  CHECK(order == "12");
}

}  // namespace
}  // namespace strata
