#include "worker/eval/prediction_file.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/runtime/files/locked_file.h"
#include "proto/runtime/files/prediction_names.h"

namespace strata {

PredictionFile::~PredictionFile() {
  if (begun_) files_.Remove(TemporaryName());
  Close();
}

absl::Status PredictionFile::Open(const std::string& path) {
  path_ = path;
  if (path.empty()) return absl::OkStatus();
  return Begin(files_.Open(TemporaryName(), O_WRONLY | O_CREAT | O_TRUNC));
}

absl::Status PredictionFile::OpenAlone(const std::string& path) {
  path_ = path;
  if (path.empty()) return absl::OkStatus();
  const int fd = strata::OpenAlone(TemporaryName(), files_);
  if (fd != -EWOULDBLOCK) return Begin(fd);
  return absl::FailedPreconditionError(
      absl::StrCat("predictions: another process writes ", path,
                   " now; wait for its end, or name another file"));
}

absl::Status PredictionFile::Begin(int fd) {
  fd_ = fd;
  begun_ = fd_ >= 0;
  return begun_ ? absl::OkStatus() : Error("open", fd_);
}

absl::Status PredictionFile::Append(absl::string_view text) {
  if (fd_ < 0) return absl::OkStatus();
  while (!text.empty()) {
    const iovec part = {const_cast<char*>(text.data()), text.size()};
    const ssize_t n = files_.Write(fd_, {&part, 1}, bytes_);
    if (n < 0) return Error("write", n);
    bytes_ += static_cast<uint64_t>(n);
    text.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status PredictionFile::Finish() {
  if (fd_ < 0) return absl::OkStatus();
  const int renamed = files_.Rename(TemporaryName(), path_);
  if (renamed < 0) return Error("rename", renamed);
  begun_ = false;
  Close();
  return absl::OkStatus();
}

std::string PredictionFile::TemporaryName() const { return UnfinishedPredictions(path_); }

void PredictionFile::Close() {
  if (fd_ >= 0) files_.Close(fd_);
  fd_ = -1;
}

absl::Status PredictionFile::Error(const char* what, ssize_t result) const {
  const int error = static_cast<int>(-result);
  if (error == kOutsideRoots) return ErrnoStatus(error, what, path_);
  return absl::FailedPreconditionError(
      absl::StrCat("predictions: cannot ", what, " ", path_, ": ", std::strerror(error)));
}

}  // namespace strata
