#include "worker/metrics/stage_times.h"

#include <catch2/catch.hpp>
#include <chrono>

namespace strata {
namespace {

using Clock = StageTimes::Clock;

// Returns when the clock has moved on by `d`.
void Spend(Clock::duration d) {
  const Clock::time_point until = Clock::now() + d;
  while (Clock::now() < until) {
  }
}

double Sum(const StageSeconds& s) {
  double sum = 0;
  for (const double x : s.path) sum += x;
  return sum;
}

constexpr auto kBit = std::chrono::milliseconds(2);
size_t At(Stage s) { return static_cast<size_t>(s); }

TEST_CASE("stages add up to the time of the thread", "[stage_times]") {
  StageTimes times;
  const Clock::time_point before = Clock::now();
  Clock::time_point inside, inside_end;
  {
    StageClock clock(&times);
    inside = Clock::now();
    {
      const InStage pull(&clock, Stage::kPull);
      Spend(kBit);
      const InStage read(&clock, Stage::kRead);
      Spend(3 * kBit);
    }
    CHECK(clock.Enter(Stage::kPush) == Stage::kOther);  // the blocks gave back what was before
    Spend(kBit);
    inside_end = Clock::now();
  }
  const Clock::time_point after = Clock::now();
  const StageSeconds s = times.Seconds();
  CHECK(Sum(s) <= std::chrono::duration<double>(after - before).count());
  CHECK(Sum(s) >= std::chrono::duration<double>(inside_end - inside).count());
  CHECK(s.path[At(Stage::kRead)] >= 0.006);
  CHECK(s.path[At(Stage::kPull)] >= 0.002);
  CHECK(s.path[At(Stage::kPush)] >= 0.002);
  CHECK(s.path[At(Stage::kForward)] == 0);
}

TEST_CASE("passes share the blocks' time; what follows is backward", "[stage_times]") {
  StageTimes times;
  {
    StageClock clock(&times);
    const InStage forward(&clock, Stage::kForward);
    Spend(4 * kBit);
    const Clock::time_point blocks_done = Clock::now();
    Spend(2 * kBit);
    clock.EndPasses(blocks_done, 300, 100);  // of two threads, say
  }
  const StageSeconds s = times.Seconds();
  const double forward = s.path[At(Stage::kForward)], backward = s.path[At(Stage::kBackward)];
  CHECK(forward >= 0.006);
  CHECK(backward >= 0.002 + 0.004);
  CHECK(forward + backward >= 0.012);
  CHECK(forward + backward <= 1.001 * Sum(s));
}

TEST_CASE("what is done ahead is told apart, and sums add", "[stage_times]") {
  StageTimes times;
  times.AddAhead(Stage::kRead, std::chrono::milliseconds(5));
  times.AddAhead(Stage::kRead, std::chrono::milliseconds(6));
  StageSeconds s = times.Seconds();
  CHECK(s.ahead[At(Stage::kRead)] == Approx(0.011));
  CHECK(Sum(s) == 0);
  s += s;
  CHECK(s.ahead[At(Stage::kRead)] == Approx(0.022));
}

}  // namespace
}  // namespace strata
