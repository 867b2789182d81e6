// What a tier below the rows in DRAM holds, for the formulas of its memory (`strata estimate`).
// Tested by tests/tools/cli/data/estimate_memory_test.cc
#ifndef STRATA_STORAGE_TIER_LOAD_H_
#define STRATA_STORAGE_TIER_LOAD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/memory_part.h"

namespace strata::storage {

struct TierLoad {
  uint64_t rows = 0;  // below
  size_t row_bytes = 0;
  uint32_t threads = 1;  // that read and write at once

  uint64_t bytes() const { return rows * row_bytes; }
};

// A buffer of `bytes`, of which a tier that holds less takes what it holds.
inline MemoryPart TierBuffer(std::string name, uint64_t bytes, const TierLoad& load) {
  return {std::move(name), std::min(bytes, load.bytes()),
          absl::StrCat("min(", bytes, ", bytes of rows below)")};
}

}  // namespace strata::storage

#endif  // STRATA_STORAGE_TIER_LOAD_H_
