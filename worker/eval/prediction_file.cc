#include "worker/eval/prediction_file.h"

#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/runtime/files/durable_name.h"
#include "proto/runtime/files/locked_file.h"
#include "proto/runtime/files/prediction_names.h"

namespace strata {

PredictionFile::~PredictionFile() {
  if (begun_) files_.Remove(temporary_);
  Close();
}

absl::Status PredictionFile::Open(const std::string& path) {
  path_ = path;
  if (path.empty()) return absl::OkStatus();
  return Begin(OpenUnfinished(NextPredictions(path), files_));
}

absl::Status PredictionFile::OpenAlone(const std::string& path) {
  path_ = path;
  if (path.empty()) return absl::OkStatus();
  const std::string name = UnfinishedPredictions(path);
  return Begin({.path = name, .fd = strata::OpenAlone(name, files_)});
}

absl::Status PredictionFile::Begin(UnfinishedFile file) {
  if (file.fd == -EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        absl::StrCat("predictions: another process writes ", path_,
                     " now; wait for its end, or name another file"));
  }
  temporary_ = std::move(file.path);
  fd_ = file.fd;
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
  const int named = NameDurably(fd_, temporary_, path_, files_);
  if (named < 0) return Error("complete", named);
  begun_ = false;
  Close();
  return absl::OkStatus();
}

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
