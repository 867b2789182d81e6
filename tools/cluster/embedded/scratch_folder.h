// A folder that goes away with its owner.
// Tested by tests/e2e/job_features_test.cc
#ifndef STRATA_TOOLS_CLUSTER_EMBEDDED_SCRATCH_FOLDER_H_
#define STRATA_TOOLS_CLUSTER_EMBEDDED_SCRATCH_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"

namespace strata {

// Movable. The destructor removes the folder with all that is in it.
class ScratchFolder {
 public:
  // Under $TMPDIR, else /tmp. The error names the folder and what to set.
  static absl::StatusOr<ScratchFolder> Make(const std::string& prefix);

  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&& other) noexcept;
  ~ScratchFolder();

  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_EMBEDDED_SCRATCH_FOLDER_H_
