#include "proto/runtime/files/folders.h"

#include <fcntl.h>

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

// Makes what was made just now durable: its name is in the folder above it. One that this process
// may not read, or that lies outside of its data roots, is left to whoever manages that place.
int SyncAbove(const std::string& path, FileSystem& files) {
  const std::string above = Above(path);
  const bool from_root = !path.empty() && path.front() == '/';
  const int fd = files.Open(!above.empty() ? above : from_root ? "/" : ".", O_RDONLY | O_DIRECTORY);
  if (fd == -EACCES || fd == -EPERM || fd == -kOutsideRoots) return 0;
  if (fd < 0) return fd;
  const int synced = files.Sync(fd, SyncWhat::kAll);
  files.Close(fd);
  return synced == -EINVAL ? 0 : synced;  // that file system keeps no folder back
}

// A folder whose name may not last is not left behind: the next try would find it, and take it for
// durable.
int MakeDurable(const std::string& path, FileSystem& files) {
  const int made = files.MakeFolder(path);
  if (made != 0) return made;
  const int synced = SyncAbove(path, files);
  if (synced < 0) files.RemoveFolder(path);
  return synced;
}

using MakeOne = int (*)(const std::string& path, FileSystem& files);

int MakeAny(const std::string& path, FileSystem& files) { return files.MakeFolder(path); }

int TryOnce(const std::string& path, MakeOne make, FileSystem& files) {
  // From the longest name whose parent is there, down again.
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  std::vector<std::string> missing;
  for (;;) {
    int made = make(name, files);
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
    int made = make(missing.back(), files);
    if (made != 0) made = UnlessThere(missing.back(), made, files);
    if (made != 0) return made;
  }
  return 0;
}

int TryOften(const std::string& path, MakeOne make, FileSystem& files) {
  // Whoever has done with an empty folder removes it, also one that was made just now for another.
  constexpr int kTries = 8;
  int made = TryOnce(path, make, files);
  for (int i = 1; i < kTries && (made == -ENOENT || made == -EEXIST); ++i) {
    made = TryOnce(path, make, files);
  }
  return made;
}

absl::Status Said(int made, const std::string& path) {
  return made < 0 ? ErrnoStatus(-made, "make folder", path) : absl::OkStatus();
}

}  // namespace

int TryMakeFolders(const std::string& path, FileSystem& files) {
  return TryOften(path, MakeAny, files);
}

absl::Status MakeFolders(const std::string& path, FileSystem& files) {
  return Said(TryMakeFolders(path, files), path);
}

int TryMakeDurableFolders(const std::string& path, FileSystem& files) {
  return TryOften(path, MakeDurable, files);
}

absl::Status MakeDurableFolders(const std::string& path, FileSystem& files) {
  return Said(TryMakeDurableFolders(path, files), path);
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
  if (looked < 0 && STRATA_MUTATION("paths.error_is_absence")) return false;
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
