#include "proto/runtime/credentials/folder_lock.h"

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "proto/runtime/files/locked_file.h"
#include "proto/runtime/files/plain_file.h"

namespace strata {
namespace {

absl::Status Said(int fd, const std::string& folder) {
  if (fd >= 0) return absl::OkStatus();
  if (fd == -EWOULDBLOCK) {
    return absl::AbortedError(
        absl::StrCat("another `strata certs` changes ", folder, "; try again when it has ended"));
  }
  if (fd == -ENOENT) {
    return absl::NotFoundError(absl::StrCat(
        folder, ": no such folder; make a CA there: strata certs init --dir ", folder));
  }
  return PlainFileError(-fd, "lock", folder);
}

}  // namespace

FolderLock::FolderLock(const std::string& folder, FileSystem& files)
    : files_(files), fd_(LockFolder(folder, files)), status_(Said(fd_, folder)) {}

FolderLock::~FolderLock() {
  if (fd_ >= 0) files_.Close(fd_);
}

}  // namespace strata
