#include "tools/generate/part_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace strata {
namespace {

absl::Status Error(const char* what, const std::string& path) {
  const std::string text =
      absl::StrCat("output file ", path, " ", what, ": ", std::strerror(errno));
  if (errno == ENOSPC || errno == EDQUOT) return absl::ResourceExhaustedError(text);
  if (errno == EACCES || errno == EPERM) return absl::PermissionDeniedError(text);
  if (errno == ENOENT) return absl::NotFoundError(text);
  return absl::UnavailableError(text);
}

}  // namespace

PartFile::~PartFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(part_.c_str());
}

absl::Status PartFile::Open() {
  fd_ = open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  return fd_ < 0 ? Error("cannot be made", part_) : absl::OkStatus();
}

absl::Status PartFile::Write(const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(fd_, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error("cannot be written", part_);
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status PartFile::Finish() {
  const int fd = fd_;
  fd_ = -1;
  if (close(fd) != 0 || rename(part_.c_str(), path_.c_str()) != 0) {
    const absl::Status s = Error("cannot be completed", path_);
    unlink(part_.c_str());
    return s;
  }
  return absl::OkStatus();
}

}  // namespace strata
