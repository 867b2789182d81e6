// A folder that goes away with its owner.
// Tested by tests/e2e/job_features_test.cc
#ifndef STRATA_TOOLS_CLUSTER_EMBEDDED_SCRATCH_FOLDER_H_
#define STRATA_TOOLS_CLUSTER_EMBEDDED_SCRATCH_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata {

// Movable. The destructor removes the folder with all that is in it. While it lives, `LOCK` in it
// is held: what a killed process leaves has a free one.
class ScratchFolder {
 public:
  // What begins the names of folders of programs.
  static constexpr char kTrain[] = "strata-train";
  static constexpr char kPredict[] = "strata-predict";
  // Whether a folder has the name of one of those.
  static bool IsName(const std::string& name);
  static bool InUse(const std::string& folder);
  // Of a process that is gone. FAILED_PRECONDITION: it is in use.
  static absl::Status Remove(const std::string& folder);
  // Where they are made: $TMPDIR, else /tmp.
  static std::string Base();

  // Under $TMPDIR, else /tmp. The error names the folder and what to set.
  static absl::StatusOr<ScratchFolder> Make(const std::string& prefix);

  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&& other) noexcept;
  ~ScratchFolder();

  const std::string& path() const { return path_; }

 private:
  ScratchFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::string path_;
  int lock_ = -1;
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_EMBEDDED_SCRATCH_FOLDER_H_
