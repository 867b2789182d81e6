#include "ops/schedule.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace strata::ops {
namespace {

// The equations of schedule.h by libm, in double.
double Reference(const ScheduleConfig& c, uint64_t t) {
  if (t < c.warmup_steps) return double(t + 1) / double(c.warmup_steps);
  const uint64_t u = t - c.warmup_steps;
  const double x = double(std::min(u, c.decay_steps)) / double(c.decay_steps);
  const double last = c.final_factor;
  switch (c.kind) {
    case ScheduleKind::kConstant:
      return 1;
    case ScheduleKind::kStep:
      return std::pow(double(c.gamma), std::floor(double(u / c.decay_steps)));
    case ScheduleKind::kCosine:
      return last + (1 - last) * (1 + std::cos(M_PI * x)) / 2;
    case ScheduleKind::kPoly:
      return last + (1 - last) * std::pow(1 - x, double(c.power));
  }
  return -1;
}

std::vector<ScheduleConfig> Configs() {
  std::vector<ScheduleConfig> all;
  for (uint64_t warmup : {0ull, 1ull, 7ull}) {
    all.push_back({.kind = ScheduleKind::kConstant, .warmup_steps = warmup});
    for (uint64_t steps : {1ull, 2ull, 10ull, 1000ull, 999983ull}) {
      for (float gamma : {0.1f, 0.5f, 0.97f, 1.0f}) {
        all.push_back({ScheduleKind::kStep, warmup, steps, gamma});
      }
      for (float last : {0.0f, 0.01f, 1.0f}) {
        all.push_back({.kind = ScheduleKind::kCosine,
                       .warmup_steps = warmup,
                       .decay_steps = steps,
                       .final_factor = last});
        for (float power : {0.01f, 0.5f, 0.9f, 1.0f, 1.5f, 2.0f, 3.7f, 10.0f, 99.9f}) {
          all.push_back({ScheduleKind::kPoly, warmup, steps, 0.1f, power, last});
        }
      }
    }
  }
  return all;
}

// Steps that matter: the first, those around every edge, and some between.
std::vector<uint64_t> Steps(const ScheduleConfig& c) {
  std::vector<uint64_t> steps;
  for (uint64_t at : {uint64_t{0}, c.warmup_steps, c.warmup_steps + c.decay_steps,
                      c.warmup_steps + 3 * c.decay_steps, c.warmup_steps + 40 * c.decay_steps}) {
    for (uint64_t t = at < 3 ? 0 : at - 3; t < at + 4; ++t) steps.push_back(t);
  }
  for (uint64_t i = 0; i <= 100; ++i) steps.push_back(c.warmup_steps + c.decay_steps * i / 100);
  return steps;
}

TEST_CASE("factors follow their equations", "[ops][schedule]") {
  for (const ScheduleConfig& c : Configs()) {
    for (uint64_t t : Steps(c)) {
      const double is = ScheduleFactor(c, t), should = Reference(c, t);
      INFO("kind " << static_cast<int>(c.kind) << " warm-up " << c.warmup_steps << " decay "
                   << c.decay_steps << " power " << c.power << " t " << t);
      REQUIRE(is == Approx(should).epsilon(1e-12).margin(1e-13));
      REQUIRE(is >= 0.0);
      REQUIRE(is <= 1.0);
    }
  }
}

TEST_CASE("ends of the descent are exact", "[ops][schedule]") {
  for (ScheduleKind kind : {ScheduleKind::kCosine, ScheduleKind::kPoly}) {
    for (float power : {0.3f, 1.0f, 2.0f}) {
      const ScheduleConfig c = {kind, 5, 20, 0.1f, power, 0.125f};
      CHECK(ScheduleFactor(c, 4) == 1.0);
      CHECK(ScheduleFactor(c, 5) == 1.0);
      CHECK(ScheduleFactor(c, 25) == 0.125);
      CHECK(ScheduleFactor(c, 26) == 0.125);
      CHECK(ScheduleFactor(c, ~uint64_t{0}) == 0.125);
      for (uint64_t t = 5; t < 25; ++t) CHECK(ScheduleFactor(c, t + 1) < ScheduleFactor(c, t));
    }
  }
  CHECK(ScheduleFactor({.kind = ScheduleKind::kConstant, .warmup_steps = 4}, 0) == 0.25);
  CHECK(ScheduleFactor({.kind = ScheduleKind::kConstant, .warmup_steps = 4}, 3) == 1.0);
  const ScheduleConfig step = {ScheduleKind::kStep, 2, 10, 0.5f};
  CHECK(ScheduleFactor(step, 11) == 1.0);
  CHECK(ScheduleFactor(step, 12) == 0.5);
  CHECK(ScheduleFactor(step, 22) == 0.25);
  // Very late steps: no overflow, nothing negative.
  CHECK(ScheduleFactor(step, ~uint64_t{0}) == 0.0);
  CHECK(ScheduleFactor({ScheduleKind::kStep, 0, 1, 1.0f}, ~uint64_t{0}) == 1.0);
}

TEST_CASE("golden bits of factors", "[ops][schedule][exact]") {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const ScheduleConfig& c : Configs()) {
    for (uint64_t t : Steps(c)) {
      const double factor = ScheduleFactor(c, t);
      uint64_t bits;
      std::memcpy(&bits, &factor, 8);
      hash = (hash ^ bits) * 0x100000001b3ull;
    }
  }
  CHECK(hash == 0xa8d758a98b8ec1ab);
}

}  // namespace
}  // namespace strata::ops
