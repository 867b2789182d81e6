// The folder of an export: nothing of an export is visible in it until all of it is.
//
//   NAME.partial               a file that is being written; gets its name when all are
//   .strata-export.json        names of what is being written, to clean up after a kill
//   index.json, model.safetensors.index.json
//                              written last; a folder without one is no export
#ifndef STRATA_TOOLS_CLUSTER_EXPORT_FOLDER_H_
#define STRATA_TOOLS_CLUSTER_EXPORT_FOLDER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

inline constexpr char kNpyIndexName[] = "index.json";
inline constexpr char kSafetensorsIndexName[] = "model.safetensors.index.json";
// "format" of the object in an index that names an export's files.
inline constexpr char kExportMark[] = "strata-export";

struct ExportFolderOptions {
  std::string path;
  std::vector<std::string> files;  // that will be written
  std::string index;               // one of the two names above
  // A folder that is not empty is taken too. What an index of an export there names is replaced,
  // and only that.
  bool overwrite = false;
  FileSystem* system = &FileSystem::Kernel();  // outlives the folder
};

// One thread.
class ExportFolder {
 public:
  // Makes the folder where it is missing. FAILED_PRECONDITION: another export writes there; it is
  // not empty; or, with overwrite, a file that no export's index names is in the way.
  // PERMISSION_DENIED, RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<ExportFolder>> Open(const ExportFolderOptions& options);

  // Before Publish succeeded: removes what was being written. An earlier export stays if Publish
  // was not called.
  virtual ~ExportFolder() = default;

  // Where to write a file until Publish.
  virtual std::string PartialPath(absl::string_view file) const = 0;

  // REQUIRES: every file is complete and synced. 1 the old index goes, then the files it names;
  // 2 the new files get their names; 3 the index. Durable when it returns OK. After an error there
  // is no index, so no export, except where only the folder's last fsync failed.
  virtual absl::Status Publish(const std::string& index_text) = 0;
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_EXPORT_FOLDER_H_
