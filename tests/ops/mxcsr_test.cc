#include "ops/mxcsr.h"

#include <immintrin.h>

#include <catch2/catch.hpp>
#include <thread>

namespace strata::ops {
namespace {

TEST_CASE("a thread is born with the exact state", "[ops][exact]") {
  CHECK(FloatStateIsExact());
  bool exact = false;
  std::thread([&] { exact = FloatStateIsExact(); }).join();
  CHECK(exact);
}

TEST_CASE("each departure is seen and undone", "[ops][exact]") {
  const unsigned born = _mm_getcsr();
  // Denormals are zero, flush to zero, each rounding mode, a trap that is not masked.
  for (const unsigned change : {0x40u, 0x8000u, 0x2000u, 0x4000u, 0x6000u, 0x1000u}) {
    _mm_setcsr(born ^ change);
    const bool seen = !FloatStateIsExact();
    const bool before = RestoreExactFloatState();
    const bool after = FloatStateIsExact();
    _mm_setcsr(born);
    INFO("change " << change);
    CHECK(seen);
    CHECK_FALSE(before);
    CHECK(after);
  }
  // Flags of past exceptions are no departure.
  _mm_setcsr(born | 0x3fu);
  const bool exact = FloatStateIsExact();
  _mm_setcsr(born);
  CHECK(exact);
  CHECK(RestoreExactFloatState());
}

TEST_CASE("denormals survive arithmetic in this binary", "[ops][exact]") {
  volatile float least_normal = 0x1p-126f;
  volatile float half = least_normal * 0.5f;
  CHECK(half == 0x1p-127f);
  CHECK(half != 0.0f);
  volatile float again = half + half;
  CHECK(again == 0x1p-126f);
}

}  // namespace
}  // namespace strata::ops
