// Which checkpoint a user means by a folder.
#ifndef STRATA_TOOLS_CLUSTER_CHECKPOINT_FOLDER_H_
#define STRATA_TOOLS_CLUSTER_CHECKPOINT_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata {

struct FoundCheckpoint {
  std::string folder;
  Manifest manifest;
};

// `directory` itself where it holds a manifest, else the newest complete checkpoint in it.
// NOT_FOUND says what was looked for; DATA_LOSS names a damaged manifest.
absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& directory);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_CHECKPOINT_FOLDER_H_
