// The folder of an import: one process writes there at a time, and what a killed one left goes.
//
//   .strata-import    open and locked (flock) by who writes; what a dead one left has a free lock
//
// Tested by tests/tools/cluster/import/import_faults_test.cc
#ifndef STRATA_TOOLS_CLUSTER_IMPORT_OUTPUT_FOLDER_H_
#define STRATA_TOOLS_CLUSTER_IMPORT_OUTPUT_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata {

// Movable. Errors name the folder.
class ImportFolder {
 public:
  static constexpr char kMark[] = ".strata-import";

  // Makes the folder where it is missing. `file`: the one that will be written there, beside the
  // manifest. FAILED_PRECONDITION: another import writes there, or something is in it that no dead
  // import left.
  static absl::StatusOr<ImportFolder> Take(const std::string& path, const std::string& file);

  ImportFolder(ImportFolder&& other) noexcept;
  ImportFolder& operator=(ImportFolder&&) = delete;
  // Frees the folder; one that was made here and in which nothing is goes.
  ~ImportFolder();

 private:
  ImportFolder(std::string path, int lock, bool made)
      : path_(std::move(path)), lock_(lock), made_(made) {}

  std::string path_;
  int lock_ = -1;  // a descriptor; -1: moved from
  bool made_ = false;
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_IMPORT_OUTPUT_FOLDER_H_
