#include "proto/runtime/transport/caller_limits.h"

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_clock.h"

namespace strata {
namespace {

using Admitted = std::shared_ptr<CallerLimits::Admitted>;

const Caller kOne = {.name = "a", .role = Role::kWorker};
const Caller kOther = {.name = "b", .role = Role::kWorker};

std::shared_ptr<CallerLimits> Limits(ManualClock* clock) {
  return std::make_shared<CallerLimits>(CallerLimitsOptions{
      .calls_in_flight = 3, .bytes_in_flight = 100, .calls_a_second = 5, .clock = clock});
}

void CheckBeyond(const absl::Status& s, const char* limit) {
  INFO(s);
  CHECK(absl::IsResourceExhausted(s));
  CHECK(absl::StrContains(s.message(), "worker/a"));
  CHECK(absl::StrContains(s.message(), limit));
}

TEST_CASE("a caller has so many calls in flight, and others have theirs", "[limits]") {
  ManualClock clock;
  const auto limits = Limits(&clock);
  std::vector<Admitted> open;
  for (int i = 0; i < 3; ++i) open.push_back(*limits->Begin(kOne, 1));
  CheckBeyond(limits->Begin(kOne, 1).status(), "3 calls in flight");
  CHECK(limits->Begin(kOther, 1).ok());
  open.pop_back();
  CHECK(limits->Begin(kOne, 1).ok());
}

TEST_CASE("a caller has so many bytes in flight, and one call however long", "[limits]") {
  ManualClock clock;
  const auto limits = Limits(&clock);
  Admitted longest = *limits->Begin(kOne, 1000);
  CheckBeyond(limits->Begin(kOne, 1).status(), "100 bytes of requests and replies in flight");
  longest.reset();
  const Admitted half = *limits->Begin(kOne, 50);
  const Admitted rest = *limits->Begin(kOne, 50);
  CheckBeyond(limits->Begin(kOne, 1).status(), "100 bytes of requests and replies in flight");
}

TEST_CASE("a reply takes the place of its request until it is written", "[limits]") {
  ManualClock clock;
  const auto limits = Limits(&clock);
  // One is taken, however long it is.
  Admitted first = *limits->Begin(kOne, 10);
  CHECK(first->Reply(5000).ok());
  CheckBeyond(limits->Begin(kOne, 1).status(), "100 bytes of requests and replies in flight");
  CHECK(limits->Begin(kOther, 1).ok());
  first.reset();
  first = *limits->Begin(kOne, 90);
  const Admitted second = *limits->Begin(kOne, 10);
  CHECK(first->Reply(30).ok());
  CheckBeyond(second->Reply(5000), "100 bytes of requests and replies in flight");
  // That something was done is always told.
  CHECK(second->Reply(CallerLimits::kShortReply).ok());
  CheckBeyond(limits->Begin(kOne, 1).status(), "100 bytes of requests and replies in flight");
}

TEST_CASE("a caller makes so many calls a second, and twice as many at once", "[limits]") {
  ManualClock clock;
  const auto limits = Limits(&clock);
  for (int i = 0; i < 10; ++i) CHECK(limits->Begin(kOne, 1).ok());
  CheckBeyond(limits->Begin(kOne, 1).status(), "5 calls a second");
  clock.Advance(absl::Milliseconds(200));
  CHECK(limits->Begin(kOne, 1).ok());
  CheckBeyond(limits->Begin(kOne, 1).status(), "5 calls a second");
  clock.Advance(absl::Hours(1));
  for (int i = 0; i < 10; ++i) CHECK(limits->Begin(kOne, 1).ok());
  CheckBeyond(limits->Begin(kOne, 1).status(), "5 calls a second");
}

TEST_CASE("whom nobody asked is not limited", "[limits]") {
  ManualClock clock;
  const auto limits = Limits(&clock);
  for (int i = 0; i < 100; ++i) CHECK(*limits->Begin(Caller::Nobody(), 1000) == nullptr);
}

}  // namespace
}  // namespace strata
