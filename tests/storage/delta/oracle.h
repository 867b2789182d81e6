// What a reader of deltas must hold to, whatever the bytes: for the fuzzer and for seeded
// mutations.
#ifndef STRATA_TESTS_STORAGE_DELTA_ORACLE_H_
#define STRATA_TESTS_STORAGE_DELTA_ORACLE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace strata::storage {

// Reads all of `bytes`. Errors are the reader's; INTERNAL: it broke its word (blocks too large,
// keys out of order or twice, counts that differ from what it gave).
absl::Status ReadWholeDelta(std::span<const uint8_t> bytes);

// Sets every checksum that can be found from the front on to what the bytes call for, so that
// mutations get behind them.
void MendChecksums(std::vector<uint8_t>& bytes);

// A small sound delta of two tables, made from a seed.
std::vector<uint8_t> SmallDelta(uint64_t seed);

}  // namespace strata::storage

#endif  // STRATA_TESTS_STORAGE_DELTA_ORACLE_H_
