// Where jobs may read and write on this machine: below the data roots (--data-root), wherever links
// lead.
#ifndef STRATA_PROTO_RUNTIME_FILES_PATH_POLICY_H_
#define STRATA_PROTO_RUNTIME_FILES_PATH_POLICY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

// As a program was given it, maybe relative to its folder. As it is where that folder is gone.
std::string AbsolutePath(const std::string& path);

// The absolute path without links, "." and ".." to which `path`, an absolute one, leads now. What
// does not exist yet is below the longest part that does. FAILED_PRECONDITION: a circle of links,
// a relative path, or ".." behind what does not exist; others as of ErrnoStatus.
absl::StatusOr<std::string> ResolvePath(const std::string& path, FileSystem& files);

// What a program says of its option --data-root.
inline constexpr char kDataRootHelp[] =
    "Folder below which jobs may read and write, links resolved; may be given again. Default: "
    "anywhere";

// A value; the roots stay those of Make, whatever becomes of the links on their ways. It decides of
// the moment when it is asked: who may make links below a root can change them afterwards, so that
// RootedFiles asks once more at each call.
class PathPolicy {
 public:
  // Everything is allowed.
  PathPolicy() = default;
  // INVALID_ARGUMENT: one is no folder; names it. No root: everything is allowed.
  static absl::StatusOr<PathPolicy> Make(const std::vector<std::string>& roots,
                                         FileSystem& files = FileSystem::Kernel());

  bool restricts() const { return !roots_.empty(); }
  const std::vector<std::string>& roots() const { return roots_; }

  // PERMISSION_DENIED: it lies outside; names field, path, where it leads, and the roots. An empty
  // path is one that nobody gave.
  absl::Status Check(absl::string_view field, const std::string& path,
                     FileSystem& files = FileSystem::Kernel()) const;
  // The same without a field.
  absl::Status CheckPath(const std::string& path, FileSystem& files = FileSystem::Kernel()) const;

 private:
  std::vector<std::string> roots_;  // resolved
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_PATH_POLICY_H_
