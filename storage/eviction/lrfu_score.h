// Scores of LRFU: values in forward time, as their logarithm (lrfu_policy.h says why). Shared by
// the DRAM tier's policy and by the GPU table, on hosts and devices.
// Tested by tests/storage/gpu/bucket_test.cc
// Tested by tests/storage/eviction/lrfu_policy_test.cc
#ifndef STRATA_STORAGE_EVICTION_LRFU_SCORE_H_
#define STRATA_STORAGE_EVICTION_LRFU_SCORE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/inline.h"

namespace strata::storage {

inline constexpr size_t kLrfuHalfLife = 16;
// A score is 1 + kLrfuUnit * log2(value) in forward time: a reference is worth one unit more for
// every kLrfuHalfLife / kLrfuUnit times the tier's rows references that came before it.
inline constexpr uint32_t kLrfuUnit = 256;
// Scores that differ by more add nothing to each other: log2(1 + 2^-10) is less than half a unit.
inline constexpr uint32_t kLrfuFar = 10 * kLrfuUnit;
// Time is set back before it comes nearer than this to the greatest score, since no score is more
// than kLrfuFar + kLrfuUnit above it.
inline constexpr uint32_t kLrfuMostTime = 0xffff - kLrfuFar - kLrfuUnit;

// What the larger of two scores gains when the values are added, by their distance.
using LrfuGains = std::array<uint16_t, kLrfuFar>;
const LrfuGains& LrfuGainTable();

// References that make up one unit of time, of a tier of `capacity` rows.
constexpr size_t LrfuReferencesPerUnit(size_t capacity) {
  const size_t references = capacity * kLrfuHalfLife / kLrfuUnit;
  return references == 0 ? 1 : references;
}

// The score of the sum of two values. gains: LrfuGainTable, or a copy in the device's memory.
STRATA_HD uint16_t LrfuSum(uint16_t a, uint16_t b, const uint16_t* gains) {
  const uint32_t high = a < b ? b : a;
  const uint32_t distance = high - (a < b ? a : b);
  return static_cast<uint16_t>(distance < kLrfuFar ? high + gains[distance] : high);
}

}  // namespace strata::storage

#endif  // STRATA_STORAGE_EVICTION_LRFU_SCORE_H_
