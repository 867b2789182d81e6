#include "ops/cpu_features.h"

#include <atomic>

namespace strata::ops {
namespace {

IsaLevel Detect() {
  __builtin_cpu_init();
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? IsaLevel::kV4 : IsaLevel::kV3;
}

// Constant-initialised, so that kernels may run during other static initialisation. 0: not
// detected.
std::atomic<uint8_t> active{0};

}  // namespace

IsaLevel SupportedIsaLevel() {
  static const IsaLevel level = Detect();
  return level;
}

IsaLevel ActiveIsaLevel() {
  const uint8_t level = active.load(std::memory_order_relaxed);
  return level != 0 ? static_cast<IsaLevel>(level) : SupportedIsaLevel();
}

IsaLevel SetActiveIsaLevel(IsaLevel level) {
  const IsaLevel before = ActiveIsaLevel();
  active.store(static_cast<uint8_t>(level), std::memory_order_relaxed);
  return before;
}

}  // namespace strata::ops
