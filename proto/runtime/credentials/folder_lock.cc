#include "proto/runtime/credentials/folder_lock.h"

#include <fcntl.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
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
  const absl::Status s = PlainFileError(-fd, "lock", folder);
  if (fd != -ENOLCK) return s;
  return absl::FailedPreconditionError(absl::StrCat(
      s.message(),
      "; keep certificates on a file system that locks folders, and name it by --dir"));
}

int Lock(const std::string& folder, FileSystem& files) {
  // Without a lock.
  if (STRATA_MUTATION("certs.lock_not_taken")) return files.Open(folder, O_RDONLY | O_DIRECTORY);
  return LockFolderSurely(folder, files);
}

}  // namespace

FolderLock::FolderLock(const std::string& folder, FileSystem& files)
    : files_(files), fd_(Lock(folder, files)), status_(Said(fd_, folder)) {}

FolderLock::~FolderLock() {
  if (fd_ >= 0) files_.Close(fd_);
}

}  // namespace strata
