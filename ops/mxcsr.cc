#include "ops/mxcsr.h"

#include <immintrin.h>

namespace strata::ops {
namespace {

constexpr uint32_t kDenormalsAreZero = 1u << 6;
constexpr uint32_t kTrapMasks = 0x3fu << 7;  // set: that exception does not trap
constexpr uint32_t kRounding = 3u << 13;     // 0: to nearest even
constexpr uint32_t kFlushToZero = 1u << 15;
constexpr uint32_t kControl = kDenormalsAreZero | kTrapMasks | kRounding | kFlushToZero;

}  // namespace

bool FloatStateIsExact() { return (_mm_getcsr() & kControl) == kTrapMasks; }

bool RestoreExactFloatState() {
  const bool exact = FloatStateIsExact();
  if (!exact) _mm_setcsr((_mm_getcsr() & ~kControl) | kTrapMasks);
  return exact;
}

ExactFloatScope::ExactFloatScope() : before_(_mm_getcsr()) { RestoreExactFloatState(); }

// What was flagged meanwhile stays flagged.
ExactFloatScope::~ExactFloatScope() {
  const uint32_t now = _mm_getcsr();
  if ((now & kControl) != (before_ & kControl)) {
    _mm_setcsr((now & ~kControl) | (before_ & kControl));
  }
}

}  // namespace strata::ops
