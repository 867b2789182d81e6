#include "tools/cluster/embedded/score_output.h"

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

ScoreOutput::~ScoreOutput() {
  if (device_ != nullptr && device_ != stdout) std::fclose(device_);
}

absl::Status ScoreOutput::Open(const PredictionsPlace& place) {
  path_ = place.path;
  if (!place.device) return file_.OpenAlone(path_);
  device_ = path_ == "-" ? stdout : OpenDevice(path_);
  return device_ != nullptr ? absl::OkStatus() : ErrnoStatus(errno, "write", path_);
}

absl::Status ScoreOutput::DeviceError(int error) {
  reader_left_ = error == EPIPE;
  return absl::InternalError(absl::StrCat(
      "cannot write to ", path_ == "-" ? "standard output" : path_, ": ", std::strerror(error)));
}

absl::Status ScoreOutput::Append(absl::string_view text) {
  if (device_ == nullptr) return file_.Append(text);
  const bool put =
      std::fwrite(text.data(), 1, text.size(), device_) == text.size() && std::fflush(device_) == 0;
  return put ? absl::OkStatus() : DeviceError(errno);
}

absl::Status ScoreOutput::Finish() {
  if (device_ == nullptr) return file_.Finish();
  std::FILE* const device = device_;
  device_ = nullptr;
  if (device == stdout || std::fclose(device) == 0) return absl::OkStatus();
  return DeviceError(errno);
}

}  // namespace strata
