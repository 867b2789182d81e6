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

}  // namespace strata
