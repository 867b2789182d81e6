#include "proto/runtime/files/locked_file.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strata {

namespace {

int Locked(const std::string& path, FileSystem& files, bool& opened) {
  const int fd = files.Open(path, O_RDWR | O_CREAT);
  opened = fd >= 0;
  if (fd < 0 || ::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  const int error = errno;
  files.Close(fd);
  return -error;
}

// As OpenAlone. `opened`: what failed, if anything, came after the file was opened.
int Alone(const std::string& path, FileSystem& files, bool& opened) {
  while (true) {
    const int fd = Locked(path, files, opened);
    if (fd < 0) return fd;
    FileInfo locked, named;
    int result = files.Info(fd, locked);
    if (result >= 0) result = files.Look(path, named);
    const bool there = result >= 0 && locked.device == named.device && locked.inode == named.inode;
    if (there) result = files.Truncate(fd, 0);
    if (there && result >= 0) return fd;
    files.Close(fd);
    // Its writer renamed or removed it after it was opened here.
    if (result < 0 && result != -ENOENT) return result;
  }
}

}  // namespace

int OpenLocked(const std::string& path, FileSystem& files) {
  bool opened = false;
  return Locked(path, files, opened);
}

int OpenAlone(const std::string& path, FileSystem& files) {
  bool opened = false;
  return Alone(path, files, opened);
}

std::vector<std::string> UnfinishedNames(const std::string& name) {
  constexpr int kMostWriters = 4;
  std::vector<std::string> names = {absl::StrCat(name, ".tmp")};
  for (int i = 1; i < kMostWriters; ++i) names.push_back(absl::StrCat(name, ".", i, ".tmp"));
  return names;
}

UnfinishedFile OpenUnfinished(const std::string& name, FileSystem& files) {
  UnfinishedFile file;
  for (std::string& path : UnfinishedNames(name)) {
    file.path = std::move(path);
    bool opened = false;
    file.fd = Alone(file.path, files, opened);
    if (file.fd == -EWOULDBLOCK) continue;
    if (file.fd < 0 && opened) file.fd = files.Open(file.path, O_RDWR | O_CREAT | O_TRUNC);
    break;
  }
  return file;
}

int LockFolderSurely(const std::string& path, FileSystem& files) {
  const int fd = files.Open(path, O_RDONLY | O_DIRECTORY);
  if (fd < 0 || ::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  const int error = errno;
  files.Close(fd);
  return -error;
}

int LockFolder(const std::string& path, FileSystem& files) {
  const int fd = files.Open(path, O_RDONLY | O_DIRECTORY);
  if (fd < 0 || ::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return fd;
  files.Close(fd);
  return -EWOULDBLOCK;
}

}  // namespace strata
