#include "tools/cluster/embedded/scratch_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace strata {
namespace {

constexpr char kLock[] = "/LOCK";
constexpr size_t kDrawn = 6;  // characters that mkdtemp draws

// Held for as long as it is open; -1: it is not there, or another's.
int TakeLock(const std::string& folder, int flags) {
  const int fd = ::open((folder + kLock).c_str(), O_RDWR | O_CLOEXEC | flags, 0600);
  if (fd < 0) return -1;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

}  // namespace

std::string ScratchFolder::Base() {
  const char* base = std::getenv("TMPDIR");
  return base != nullptr && *base != '\0' ? base : "/tmp";
}

bool ScratchFolder::IsName(const std::string& name) {
  for (const char* prefix : {kTrain, kPredict}) {
    const std::string begin = absl::StrCat(prefix, "-");
    if (absl::StartsWith(name, begin) && name.size() == begin.size() + kDrawn) return true;
  }
  return false;
}

bool ScratchFolder::InUse(const std::string& folder) {
  const int fd = TakeLock(folder, 0);
  if (fd >= 0) ::close(fd);
  return fd < 0 && errno == EWOULDBLOCK;
}

absl::Status ScratchFolder::Remove(const std::string& folder) {
  const int fd = TakeLock(folder, 0);
  if (fd < 0 && errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(absl::StrCat(folder, " is in use by another process"));
  }
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  if (fd >= 0) ::close(fd);
  if (!error) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot remove ", folder, ": ", error.message()));
}

absl::StatusOr<ScratchFolder> ScratchFolder::Make(const std::string& prefix) {
  std::string path = absl::StrCat(Base(), "/", prefix, "-XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot make a folder ", path, ": ", std::strerror(errno),
                     "; set TMPDIR to a folder that can be written"));
  }
  const int lock = TakeLock(path, O_CREAT);
  return ScratchFolder(std::move(path), lock);
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::exchange(other.path_, "")), lock_(std::exchange(other.lock_, -1)) {}

ScratchFolder& ScratchFolder::operator=(ScratchFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace strata
