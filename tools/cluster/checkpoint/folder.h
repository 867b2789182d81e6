// Which checkpoint a user means by a folder.
#ifndef STRATA_TOOLS_CLUSTER_CHECKPOINT_FOLDER_H_
#define STRATA_TOOLS_CLUSTER_CHECKPOINT_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata {

struct FoundCheckpoint {
  std::string folder;
  Manifest manifest;
};

// `directory` itself where it holds a manifest, else the newest checkpoint in it. NOT_FOUND says
// what was looked for; DATA_LOSS names a damaged manifest, UNIMPLEMENTED one of another format: an
// older checkpoint never stands in for a newer one without a word.
absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& directory);

// `damage` of the checkpoint `folder`, with what to use instead: the newest other checkpoint in the
// same directory whose files all check (they are read to the end), or that there is none.
absl::Status WithWholeOne(const absl::Status& damage, const std::string& folder);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_CHECKPOINT_FOLDER_H_
