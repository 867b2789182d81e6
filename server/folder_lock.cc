#include "server/folder_lock.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/locked_file.h"

namespace strata::server {
namespace {

constexpr char kLock[] = "/server.lock";

}  // namespace

absl::StatusOr<bool> FolderLock::WasTaken(const std::string& folder) {
  return IsThere(absl::StrCat(folder, kLock));
}

absl::StatusOr<FolderLock> FolderLock::Take(const std::string& folder) {
  if (const int made = TryMakeDurableFolders(folder); made < 0) {
    return absl::PermissionDeniedError(absl::StrCat("cannot make folder ", folder, ": ",
                                                    std::strerror(-made), "; give another --dir"));
  }
  const std::string path = absl::StrCat(folder, kLock);
  FolderLock lock;
  lock.fd_ = OpenLocked(path);
  if (lock.fd_ >= 0) return lock;
  if (lock.fd_ == -EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder, " is in use by another server; stop it, or give another --dir"));
  }
  return absl::PermissionDeniedError(
      absl::StrCat("cannot write ", path, ": ", std::strerror(-lock.fd_), "; give another --dir"));
}

FolderLock::FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FolderLock::~FolderLock() {
  if (fd_ >= 0) FileSystem::Kernel().Close(fd_);
}

}  // namespace strata::server
