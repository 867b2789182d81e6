// The corpus of delta_fuzz, as the writer of deltas makes it.
#ifndef STRATA_TESTS_FUZZ_DELTA_SEEDS_H_
#define STRATA_TESTS_FUZZ_DELTA_SEEDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace strata::storage {

// Inputs of delta_fuzz by file name. Writes each delta to a file in `folder` on its way; throws
// std::runtime_error where that fails.
std::map<std::string, std::vector<uint8_t>> DeltaSeeds(const std::string& folder);

}  // namespace strata::storage

#endif  // STRATA_TESTS_FUZZ_DELTA_SEEDS_H_
