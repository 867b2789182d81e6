// Duplicate keys of a batch: from keys to unique keys with the sums of their gradients.
// Tested by tests/tools/gpu/bars/bars_test.cc
#ifndef STRATA_TOOLS_GPU_BARS_COALESCE_BAR_H_
#define STRATA_TOOLS_GPU_BARS_COALESCE_BAR_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "tools/gpu/bars/bar.h"

namespace strata::gpu_check {

// Two lines, for rows of 64 floats: 30 % duplicates within 0.5 ms, and one key that has half of the
// batch within 1 ms, of 10^6 keys. Counted are the keys and gradients that are read and the sums
// that are written; the probe reads the same gradients in the same order and writes as many rows.
// A wrong number of unique keys is an error. Waits.
absl::Status CoalesceBar(const BarContext& context);

// (n) keys in random order. Of the first: `unique` different ones, the rest repeats them at random.
// Of the second: one of them n / 2 times, the others once.
std::vector<uint64_t> DuplicatedKeys(uint32_t n, uint32_t unique, uint64_t seed);
std::vector<uint64_t> HalfOneKey(uint32_t n, uint64_t seed);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_BARS_COALESCE_BAR_H_
