#include "proto/runtime/files/device_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/runtime/files/file_system.h"

namespace strata {
namespace {

// What is there stays, as the shell has it there: what this process has open is written where it
// stands (for /dev/stdout), everything else at its end.
std::FILE* OpenDevice(const std::string& path) {
  int open = -1;
  absl::string_view number = path;
  if (!absl::ConsumePrefix(&number, absl::StrCat("/proc/", getpid(), "/fd/")) ||
      !absl::SimpleAtoi(number, &open)) {
    return std::fopen(path.c_str(), "ae");
  }
  const int copy = fcntl(open, F_DUPFD_CLOEXEC, 0);
  return copy < 0 ? nullptr : fdopen(copy, "w");
}

}  // namespace

DeviceFile::~DeviceFile() {
  if (file_ != nullptr && file_ != stdout) std::fclose(file_);
}

absl::Status DeviceFile::Open(const std::string& path) {
  path_ = path;
  file_ = path_ == "-" ? stdout : OpenDevice(path_);
  return file_ != nullptr ? absl::OkStatus() : ErrnoStatus(errno, "write", path_);
}

absl::Status DeviceFile::Error(int error) {
  reader_left_ = error == EPIPE;
  return absl::InternalError(absl::StrCat(
      "cannot write to ", path_ == "-" ? "standard output" : path_, ": ", std::strerror(error)));
}

absl::Status DeviceFile::Append(absl::string_view text) {
  const bool put =
      std::fwrite(text.data(), 1, text.size(), file_) == text.size() && std::fflush(file_) == 0;
  return put ? absl::OkStatus() : Error(errno);
}

absl::Status DeviceFile::Finish() {
  std::FILE* const file = file_;
  file_ = nullptr;
  if (file == stdout || std::fclose(file) == 0) return absl::OkStatus();
  return Error(errno);
}

}  // namespace strata
