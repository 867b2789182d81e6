#include "proto/runtime/files/folders.h"

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"

namespace strata {
namespace {

// A folder is there, whatever its making said: 0, or `error`.
int UnlessThere(const std::string& path, int error, FileSystem& files) {
  FileInfo info;
  const int looked = files.Look(path, info);
  if (looked == 0 && info.kind == FileKind::kFolder) return 0;
  if (error != -EEXIST) return error;
  return looked == 0 ? -ENOTDIR : looked == -ENOENT ? -EEXIST : looked;
}

// What is above it; "" where that is the root, or the working folder.
std::string Above(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return "";
  const size_t last = path.find_last_not_of('/', slash);
  return last == std::string::npos ? "" : path.substr(0, last + 1);
}

}  // namespace

int TryMakeFolders(const std::string& path, FileSystem& files) {
  // From the longest name whose parent is there, down again.
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  std::vector<std::string> missing;
  for (;;) {
    int made = files.MakeFolder(name);
    if (made == 0) break;
    const std::string above = Above(name);
    if (made == -ENOENT && !above.empty()) {
      missing.push_back(name);
      name = above;
      continue;
    }
    made = UnlessThere(name, made, files);
    if (made != 0) return made;
    break;
  }
  for (; !missing.empty(); missing.pop_back()) {
    int made = files.MakeFolder(missing.back());
    if (made != 0) made = UnlessThere(missing.back(), made, files);
    if (made != 0) return made;
  }
  return 0;
}

absl::Status MakeFolders(const std::string& path, FileSystem& files) {
  const int made = TryMakeFolders(path, files);
  return made < 0 ? ErrnoStatus(-made, "make folder", path) : absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path, FileSystem& files) {
  std::vector<std::string> names;
  const int listed = files.List(path, names);
  if (listed < 0) return ErrnoStatus(-listed, "list", path);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status RemoveTree(const std::string& path, FileSystem& files) {
  FileInfo info;
  const int looked = STRATA_MUTATION("paths.removes_behind_links") ? files.Look(path, info)
                                                                   : files.LookAtLink(path, info);
  if (looked == -ENOENT || looked == -ENOTDIR) return absl::OkStatus();
  if (looked < 0) return ErrnoStatus(-looked, "remove", path);
  int removed = 0;
  if (info.kind == FileKind::kFolder) {
    auto names = ListFolder(path, files);
    if (absl::IsNotFound(names.status())) return absl::OkStatus();
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) {
      if (absl::Status s = RemoveTree(absl::StrCat(path, "/", name), files); !s.ok()) return s;
    }
    removed = files.RemoveFolder(path);
  } else {
    removed = files.Remove(path);
  }
  return removed < 0 && removed != -ENOENT ? ErrnoStatus(-removed, "remove", path)
                                           : absl::OkStatus();
}

absl::StatusOr<bool> IsThere(const std::string& path, FileSystem& files) {
  FileInfo info;
  const int looked = files.Look(path, info);
  if (looked == -ENOENT || looked == -ENOTDIR) return false;
  if (looked < 0) return ErrnoStatus(-looked, "look for", path);
  return true;
}

absl::StatusOr<uint64_t> FileBytes(const std::string& path, FileSystem& files) {
  FileInfo info;
  const int looked = files.Look(path, info);
  if (looked < 0) return ErrnoStatus(-looked, "look up the size of", path);
  return info.bytes;
}

}  // namespace strata
