#include "proto/runtime/files/path_policy.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/core/mutation.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as of the kernel

bool LiesIn(absl::string_view path, absl::string_view root) {
  return root == "/" || path == root || (absl::StartsWith(path, root) && path[root.size()] == '/');
}

absl::Status CannotResolve(const std::string& path, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("cannot resolve ", path, ": ", why));
}

}  // namespace

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  if (path.empty() || path.front() == '/') return path;
  const fs::path absolute = fs::absolute(path, error);
  return error ? path : absolute.string();
}

absl::StatusOr<std::string> ResolvePath(const std::string& path, FileSystem& files) {
  if (!absl::StartsWith(path, "/")) return CannotResolve(path, "it is not absolute");
  std::deque<std::string> left = absl::StrSplit(path, '/', absl::SkipEmpty());
  std::string done;  // exists, unless `missing`, and has no link in it
  bool missing = false;
  int links = 0;
  while (!left.empty()) {
    const std::string name = std::move(left.front());
    left.pop_front();
    if (name == ".") continue;
    if (name == "..") {
      if (missing) {
        return CannotResolve(path, absl::StrCat("\"..\" behind ", done, ", which is not there"));
      }
      done.resize(done.find_last_of('/') == std::string::npos ? 0 : done.find_last_of('/'));
      continue;
    }
    absl::StrAppend(&done, "/", name);
    if (missing) continue;
    std::string target;
    const int read = files.ReadLink(done, target);
    if (read == -EINVAL || (read >= 0 && STRATA_MUTATION("paths.links_not_followed"))) continue;
    if (read == -ENOENT) {
      missing = true;
      continue;
    }
    if (read < 0) return ErrnoStatus(-read, "resolve", path);
    if (++links > kMostLinks) return ErrnoStatus(ELOOP, "resolve", path);
    done.resize(absl::StartsWith(target, "/") ? 0 : done.find_last_of('/'));
    std::vector<std::string> names = absl::StrSplit(target, '/', absl::SkipEmpty());
    left.insert(left.begin(), names.begin(), names.end());
  }
  return done.empty() ? "/" : done;
}

absl::StatusOr<PathPolicy> PathPolicy::Make(const std::vector<std::string>& roots,
                                            FileSystem& files) {
  PathPolicy policy;
  for (const std::string& root : roots) {
    std::error_code error;
    const std::string absolute = root.empty() ? "" : fs::absolute(root, error).string();
    auto resolved = ResolvePath(absolute, files);
    FileInfo info;
    if (!resolved.ok() || files.Look(*resolved, info) < 0 || info.kind != FileKind::kFolder) {
      return absl::InvalidArgumentError(
          absl::StrCat("--data-root ", root.empty() ? "\"\"" : root,
                       " is no folder that is there; make it, or name another"));
    }
    policy.roots_.push_back(*std::move(resolved));
  }
  return policy;
}

absl::Status PathPolicy::CheckPath(const std::string& path, FileSystem& files) const {
  if (roots_.empty() || path.empty()) return absl::OkStatus();
  auto resolved = ResolvePath(path, files);
  if (!resolved.ok()) return resolved.status();
  const auto holds = [&](const std::string& root) { return LiesIn(*resolved, root); };
  if (std::any_of(roots_.begin(), roots_.end(), holds)) return absl::OkStatus();
  if (STRATA_MUTATION("paths.outside_of_roots")) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      path, *resolved == path ? "" : absl::StrCat(" leads to ", *resolved, ", which"),
      " lies outside of where jobs may read and write here: ", absl::StrJoin(roots_, ", "),
      " (--data-root)"));
}

absl::Status PathPolicy::Check(absl::string_view field, const std::string& path,
                               FileSystem& files) const {
  const absl::Status s = CheckPath(path, files);
  return s.ok() ? s : absl::Status(s.code(), absl::StrCat(field, ": ", s.message()));
}

}  // namespace strata
