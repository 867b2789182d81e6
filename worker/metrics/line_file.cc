#include "worker/metrics/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strata {

LineFile::~LineFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status LineFile::Failed(int error) const {
  const std::string text = absl::StrCat("cannot write ", path_, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(text);
  return absl::FailedPreconditionError(text);
}

absl::Status LineFile::Open() {
  if (fd_ >= 0) return absl::OkStatus();
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  return fd_ >= 0 ? absl::OkStatus() : Failed(errno);
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
  while (!waiting_.empty()) {
    const std::string& line = waiting_.front();
    const off_t end = lseek(fd_, 0, SEEK_END);
    ssize_t n = 0;
    do {
      n = write(fd_, line.data(), line.size());
    } while (n < 0 && errno == EINTR);
    if (n != static_cast<ssize_t>(line.size())) {
      const int error = n < 0 ? errno : ENOSPC;  // a short write: no room for the rest
      // Whoever reads it meanwhile finds whole lines; where this fails, one that is cut off.
      if (n > 0) (void)!ftruncate(fd_, end);
      return Failed(error);
    }
    waiting_bytes_ -= line.size();
    waiting_.pop_front();
  }
  return absl::OkStatus();
}

}  // namespace strata
