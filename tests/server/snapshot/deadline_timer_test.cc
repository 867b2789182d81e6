#include "server/snapshot/deadline_timer.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace strata::server {
namespace {

TEST_CASE("callbacks come in order of time, and may ask for more", "[timer]") {
  auto timer = MakeDeadlineTimer();
  absl::Notification done;
  std::string order;
  const absl::Time now = timer->Now();
  const int owner = 0;
  timer->At(now + absl::Milliseconds(6), &owner, [&] {
    order += "b";
    timer->At(now, &owner, [&] {
      order += "c";
      done.Notify();
    });
  });
  timer->At(now + absl::Milliseconds(3), &owner, [&] { order += "a"; });
  REQUIRE(done.WaitForNotificationWithTimeout(absl::Minutes(1)));
  REQUIRE(order == "abc");
}

TEST_CASE("after Cancel nothing of the owner runs, others do", "[timer]") {
  auto timer = MakeDeadlineTimer();
  const int mine = 0, other = 0;
  std::atomic<bool> cancelled{false}, late{false};
  absl::Notification last;
  const absl::Time soon = timer->Now() + absl::Milliseconds(5);
  for (int i = 0; i < 100; ++i) {
    timer->At(soon, &mine, [&] { late = late || cancelled; });
  }
  timer->At(soon + absl::Milliseconds(1), &other, [&] { last.Notify(); });
  timer->Cancel(&mine);  // waits for the one that runs, if any
  cancelled = true;
  REQUIRE(last.WaitForNotificationWithTimeout(absl::Minutes(1)));
  REQUIRE_FALSE(late);
}

TEST_CASE("Cancel waits for the callback that runs", "[timer]") {
  auto timer = MakeDeadlineTimer();
  const int owner = 0;
  absl::Notification begun, returned;
  std::atomic<bool> late{false};
  timer->At(timer->Now(), &owner, [&] {
    begun.Notify();
    // Long enough for a Cancel that does not wait to come back while this runs.
    late = returned.WaitForNotificationWithTimeout(absl::Milliseconds(200));
  });
  begun.WaitForNotification();
  timer->Cancel(&owner);
  returned.Notify();
  REQUIRE_FALSE(late);
  timer.reset();  // waits for it in any case
  REQUIRE_FALSE(late);
}

}  // namespace
}  // namespace strata::server
