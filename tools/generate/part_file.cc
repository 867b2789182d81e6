#include "tools/generate/part_file.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/durable_name.h"
#include "proto/runtime/files/locked_file.h"
#include "proto/runtime/files/prediction_names.h"

namespace strata {
namespace {

absl::Status Error(int error, const char* what, const std::string& path) {
  const std::string text =
      absl::StrCat("output file ", path, " ", what, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT) {
    return absl::ResourceExhaustedError(absl::StrCat(text, "; free disk space"));
  }
  const std::string elsewhere = absl::StrCat(text, "; name another place");
  if (error == EACCES || error == EPERM || error == EROFS) {
    return absl::PermissionDeniedError(elsewhere);
  }
  if (error == EIO) return absl::InternalError(elsewhere);
  return absl::FailedPreconditionError(elsewhere);
}

// Some network file systems tell of a full disk when a descriptor is closed. 0, or an errno.
int ErrorOfClosing(int fd) {
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  return copy < 0 || close(copy) != 0 ? errno : 0;
}

}  // namespace

PartFile::~PartFile() {
  if (fd_ < 0) return;
  files_.Remove(part_);
  files_.Close(fd_);
}

absl::Status PartFile::Open() {
  const auto place = PlaceOfOutput("output file", path_, files_);
  if (!place.ok()) return place.status();
  path_ = place->path;
  if (place->device) return device_.Open(path_);
  part_ = path_ + ".part";
  fd_ = OpenAlone(part_, files_);
  if (fd_ >= 0) return absl::OkStatus();
  if (fd_ != -EWOULDBLOCK) return Error(-fd_, "cannot be made", part_);
  return absl::FailedPreconditionError(
      absl::StrCat("output file ", path_,
                   " is being written by another process; wait for its end, or name another file"));
}

absl::Status PartFile::Write(const std::string& text) {
  if (to_device()) return device_.Append(text);
  for (absl::string_view rest = text; !rest.empty();) {
    const iovec part = {const_cast<char*>(rest.data()), rest.size()};
    const ssize_t n = files_.Write(fd_, {&part, 1}, bytes_);
    if (n < 0) return Error(static_cast<int>(-n), "cannot be written", part_);
    bytes_ += static_cast<uint64_t>(n);
    rest.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status PartFile::RemoveOld() {
  const int removed = files_.Remove(path_);
  if (removed >= 0 || removed == -ENOENT) return absl::OkStatus();
  return Error(-removed, "cannot be removed", path_);
}

absl::Status PartFile::Finish() {
  if (to_device()) return device_.Finish();
  int error = ErrorOfClosing(fd_);
  if (error == 0) error = -NameDurably(fd_, part_, path_, files_);
  if (error != 0) return Error(error, "cannot be completed", path_);
  files_.Close(fd_);
  fd_ = -1;
  return absl::OkStatus();
}

}  // namespace strata
