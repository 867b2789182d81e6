// Names of base images in a job's folder.
// Tested by tests/server/job/damaged_image_test.cc
#ifndef STRATA_SERVER_SNAPSHOT_IMAGE_FILES_H_
#define STRATA_SERVER_SNAPSHOT_IMAGE_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/ids.h"

namespace strata::server {

struct ImageName {
  ShardId shard;
  Step clock;  // async: applied windows
  friend bool operator==(const ImageName&, const ImageName&) = default;
};

// "image-<shard>-<clock>.strata", clock with 20 digits.
std::string ImageFileName(const ImageName& name);

// Images in `folder`, by shard, newest first. Other files are ignored; a folder that is not there
// has none.
absl::StatusOr<std::vector<ImageName>> ListImages(const std::string& folder);

// Removes all images of every shard but the newest one.
void RemoveOldImages(const std::string& folder);

}  // namespace strata::server

#endif  // STRATA_SERVER_SNAPSHOT_IMAGE_FILES_H_
