// Which of a kernel's builds runs on this machine (EXACT.md rule 9).
// Tested by tests/ops/optimizer_golden_test.cc
// Tested by tests/ops/initializer_test.cc
#ifndef STRATA_OPS_CPU_FEATURES_H_
#define STRATA_OPS_CPU_FEATURES_H_

#include <cstdint>

namespace strata::ops {

// Levels of the x86-64 psABI that kernels are built for. Their results have the same bits.
enum class IsaLevel : uint8_t {
  kV3 = 3,  // AVX2, FMA, BMI2: the least that Strata runs on
  kV4 = 4,  // AVX-512 F, BW, CD, DQ, VL
};

// The highest level that the processor and the operating system support. Any thread.
IsaLevel SupportedIsaLevel();

// The level that kernels use: SupportedIsaLevel() unless overridden. Any thread.
IsaLevel ActiveIsaLevel();

// Makes kernels use `level`; for tests and benchmarks. REQUIRES: level <= SupportedIsaLevel().
// Returns the level that was active.
IsaLevel SetActiveIsaLevel(IsaLevel level);

}  // namespace strata::ops

#endif  // STRATA_OPS_CPU_FEATURES_H_
