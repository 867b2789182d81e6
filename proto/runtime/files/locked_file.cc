#include "proto/runtime/files/locked_file.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strata {

int OpenLocked(const std::string& path, FileSystem& files) {
  const int fd = files.Open(path, O_RDWR | O_CREAT);
  if (fd < 0 || ::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  const int error = errno;
  files.Close(fd);
  return -error;
}

int OpenAlone(const std::string& path, FileSystem& files) {
  while (true) {
    const int fd = OpenLocked(path, files);
    if (fd < 0) return fd;
    FileInfo opened, named;
    int result = files.Info(fd, opened);
    if (result >= 0) result = files.Look(path, named);
    const bool there = result >= 0 && opened.device == named.device && opened.inode == named.inode;
    if (there) result = files.Truncate(fd, 0);
    if (there && result >= 0) return fd;
    files.Close(fd);
    // Its writer renamed or removed it after it was opened here.
    if (result < 0 && result != -ENOENT) return result;
  }
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
    file.fd = OpenAlone(file.path, files);
    if (file.fd == -ENOLCK || file.fd == -EOPNOTSUPP || file.fd == -ENOSYS) {
      file.fd = files.Open(file.path, O_RDWR | O_CREAT | O_TRUNC);
    }
    if (file.fd != -EWOULDBLOCK) break;
  }
  return file;
}

int LockFolder(const std::string& path, FileSystem& files) {
  const int fd = files.Open(path, O_RDONLY | O_DIRECTORY);
  if (fd < 0 || ::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return fd;
  files.Close(fd);
  return -EWOULDBLOCK;
}

}  // namespace strata
