// What a run streamed out of the rows that its life cycle removed, in an order of its own.
#ifndef STRATA_TESTS_E2E_CLUSTER_REMOVED_KEYS_H_
#define STRATA_TESTS_E2E_CLUSTER_REMOVED_KEYS_H_

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "storage/delta/removed_stream.h"

namespace strata::testing {

// (step, key) of every removal that counts, ascending; a pair that is there twice is twice.
inline std::vector<std::pair<uint64_t, uint64_t>> RemovedKeysIn(const std::string& folder) {
  std::vector<std::pair<uint64_t, uint64_t>> all;
  const absl::Status s = storage::ReadRemoved(folder, [&](const storage::RemovedKeys& removed) {
    for (const uint64_t key : removed.keys) all.emplace_back(removed.step, key);
    return absl::OkStatus();
  });
  if (!s.ok()) throw std::runtime_error(s.ToString());
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_CLUSTER_REMOVED_KEYS_H_
