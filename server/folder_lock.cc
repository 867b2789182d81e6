#include "server/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/folders.h"

namespace strata::server {

absl::StatusOr<FolderLock> FolderLock::Take(const std::string& folder) {
  if (const int made = TryMakeFolders(folder); made < 0) {
    return absl::PermissionDeniedError(absl::StrCat("cannot make folder ", folder, ": ",
                                                    std::strerror(-made), "; give another --dir"));
  }
  const std::string path = absl::StrCat(folder, "/server.lock");
  FolderLock lock;
  lock.fd_ = FileSystem::Kernel().Open(path, O_RDWR | O_CREAT);
  if (lock.fd_ < 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        "cannot write ", path, ": ", std::strerror(-lock.fd_), "; give another --dir"));
  }
  if (::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder, " is in use by another server; stop it, or give another --dir"));
  }
  return lock;
}

FolderLock::FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FolderLock::~FolderLock() {
  if (fd_ >= 0) FileSystem::Kernel().Close(fd_);
}

}  // namespace strata::server
