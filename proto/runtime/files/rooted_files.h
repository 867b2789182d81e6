// The kernel's files below some folders, and none beside them.
#ifndef STRATA_PROTO_RUNTIME_FILES_ROOTED_FILES_H_
#define STRATA_PROTO_RUNTIME_FILES_ROOTED_FILES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/path_policy.h"

namespace strata {

// What is beneath PathPolicy::Check: links inside of the folders that a job may name are followed
// no further out than these (a shard's file that is a link to one elsewhere). Each call that is
// given a path outside is refused with kOutsideRoots. A link that is changed between the look and
// the call is followed: keep those who may make links below a root from being anybody.
class RootedFiles : public FileSystem {
 public:
  // `allowed`: the data roots, and what the process itself keeps (its --dir, TMPDIR).
  explicit RootedFiles(PathPolicy allowed) : allowed_(std::move(allowed)) {}

  int Open(const std::string& path, int flags) override;
  int Rename(const std::string& from, const std::string& to) override;
  int Link(const std::string& from, const std::string& to) override;
  int Remove(const std::string& path) override;
  int Look(const std::string& path, FileInfo& out) override;
  int LookAtLink(const std::string& path, FileInfo& out) override;
  int MayChange(const std::string& folder) override;
  int MakeFolder(const std::string& path) override;
  int RemoveFolder(const std::string& path) override;
  int List(const std::string& path, std::vector<std::string>& names) override;
  std::string WhyOutside(absl::string_view path) override;

 private:
  // 0, or the negative errno.
  int Refuse(const std::string& path);
  // Of a name, whatever it is a link to: its folder decides.
  int RefuseName(const std::string& path);

  const PathPolicy allowed_;
};

// Has FileSystem::Kernel() of this process refuse what lies neither below a root of `policy` nor
// below `own` folders, which are made, nor below TMPDIR. Nothing where the policy has no roots.
// Before threads use files; for good.
absl::Status RestrictFiles(const PathPolicy& policy, const std::vector<std::string>& own);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_ROOTED_FILES_H_
