#include "proto/runtime/files/locked_file.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

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

int LockFolder(const std::string& path, FileSystem& files) {
  const int fd = files.Open(path, O_RDONLY | O_DIRECTORY);
  if (fd < 0 || ::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return fd;
  files.Close(fd);
  return -EWOULDBLOCK;
}

}  // namespace strata
