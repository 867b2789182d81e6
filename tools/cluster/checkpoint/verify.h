// Checks a checkpoint to its last byte.
// Tested by tests/tools/cluster/checkpoint/checkpoint_test.cc
#ifndef STRATA_TOOLS_CLUSTER_CHECKPOINT_VERIFY_H_
#define STRATA_TOOLS_CLUSTER_CHECKPOINT_VERIFY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace strata {

struct CheckpointSummary {
  std::string directory;
  uint64_t step = 0;
  std::string model_hash;  // computed from the rows, 32 hexadecimal digits
  uint64_t rows = 0;
  uint64_t bytes = 0;
  uint32_t files = 0;
  uint32_t increments = 0;  // of the files
};

// `directory`: one checkpoint's folder, or a folder of them: the newest. Reads every file, checks
// every checksum and computes the model hash anew. DATA_LOSS names the file, what is wrong, and the
// newest checkpoint beside it that is whole; NOT_FOUND.
absl::StatusOr<CheckpointSummary> VerifyCheckpoint(const std::string& directory);

// The same of exactly this checkpoint's folder, and nothing said of others.
absl::StatusOr<CheckpointSummary> VerifyFolder(const std::string& folder);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_CHECKPOINT_VERIFY_H_
