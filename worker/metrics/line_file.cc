#include "worker/metrics/line_file.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

LineFile::~LineFile() {
  if (fd_ >= 0) FileSystem::Kernel().Close(fd_);
}

absl::Status LineFile::Failed(int error) const {
  if (error == kOutsideRoots) return ErrnoStatus(error, "write", path_);
  const std::string text = absl::StrCat("cannot write ", path_, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(text);
  return absl::FailedPreconditionError(text);
}

absl::Status LineFile::Open() {
  if (fd_ >= 0) return absl::OkStatus();
  fd_ = FileSystem::Kernel().Open(path_, O_WRONLY | O_CREAT | O_APPEND);
  return fd_ >= 0 ? absl::OkStatus() : Failed(-fd_);
}

absl::Status LineFile::Append(absl::string_view line) {
  waiting_.push_back(absl::StrCat(line, "\n"));
  waiting_bytes_ += waiting_.back().size();
  absl::Status written = WriteWaiting();
  while (waiting_bytes_ > kMaxWaitingBytes) {
    waiting_bytes_ -= waiting_.front().size();
    waiting_.pop_front();
    ++lost_;
  }
  return written;
}

absl::Status LineFile::WriteWaiting() {
  if (absl::Status s = Open(); !s.ok()) return s;
  FileSystem& files = FileSystem::Kernel();
  while (!waiting_.empty()) {
    const std::string& line = waiting_.front();
    FileInfo info;
    if (const int result = files.Info(fd_, info); result < 0) return Failed(-result);
    const iovec part = {const_cast<char*>(line.data()), line.size()};
    const ssize_t n = files.Write(fd_, {&part, 1}, info.bytes);
    if (n != static_cast<ssize_t>(line.size())) {
      // A short write: no room for the rest.
      const int error = n < 0 ? static_cast<int>(-n) : ENOSPC;
      // Whoever reads it meanwhile finds whole lines; where this fails, one that is cut off.
      if (n > 0) files.Truncate(fd_, info.bytes);
      return Failed(error);
    }
    waiting_bytes_ -= line.size();
    waiting_.pop_front();
  }
  return absl::OkStatus();
}

}  // namespace strata
