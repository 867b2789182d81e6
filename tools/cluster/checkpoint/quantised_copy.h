// What a quantised copy of a checkpoint (quantise.h) must hold: its index, and whether all of it is
// as it was written.
// Tested by tests/tools/cluster/checkpoint/checkpoint_test.cc
#ifndef STRATA_TOOLS_CLUSTER_CHECKPOINT_QUANTISED_COPY_H_
#define STRATA_TOOLS_CLUSTER_CHECKPOINT_QUANTISED_COPY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace strata {

inline constexpr char kQuantisedIndexName[] = "index.json";
inline constexpr char kQuantisedFormat[] = "strata-quantised";
inline constexpr uint64_t kQuantisedVersion = 2;  // 1 had no checksums

// The index's text as it is written: `json`, an object in lines, with its own checksum as the last
// member (FORMAT.md).
std::string SealQuantisedIndex(absl::string_view json);

struct QuantisedCopy {
  std::string folder;
  std::string type;        // fp16, int8
  std::string checkpoint;  // folder that it was made from
  std::string model_hash;
  uint64_t step = 0;
  uint64_t files = 0;  // and their bytes; without the index
  uint64_t bytes = 0;
};

// Whether `folder` has an index of a quantised copy, whole or not.
bool IsQuantisedCopy(const std::string& folder);

// Reads every byte of the copy in `folder`. DATA_LOSS names the file and what is wrong with it;
// NOT_FOUND: no index; UNIMPLEMENTED: an index of another version.
absl::StatusOr<QuantisedCopy> VerifyQuantised(const std::string& folder);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_CHECKPOINT_QUANTISED_COPY_H_
