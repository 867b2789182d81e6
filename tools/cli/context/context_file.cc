#include "tools/cli/context/context_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/locked_file.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/runtime/files/private_files.h"

namespace strata {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 20;
constexpr absl::Duration kLockLimit = absl::Seconds(10);
constexpr absl::Duration kLockPause = absl::Milliseconds(10);

std::string FolderOf(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

// PERMISSION_DENIED unless it is this user's, and gives nobody else these rights.
absl::Status CheckMine(const std::string& path, mode_t nobody, absl::string_view close) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return PlainFileError(errno, "look at", path);
  if (info.st_uid != geteuid()) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, " belongs to user ", info.st_uid, ", and this is user ", geteuid(),
                     "; move it away, or set XDG_CONFIG_HOME to a folder of yours"));
  }
  if ((info.st_mode & nobody) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(path, " is open to others (mode ", absl::StrFormat("%04o", info.st_mode & 07777),
                   "), who may have led commands to another cluster; look at it, then: chmod ",
                   close, " ", path));
}

absl::StatusOr<Contexts> ReadFrom(const std::string& path) {
  FileInfo info;
  const int looked = FileSystem::Kernel().LookAtLink(path, info);
  if (looked == -ENOENT || looked == -ENOTDIR) return Contexts{};
  absl::Status s = CheckMine(FolderOf(path), S_IWGRP | S_IWOTH, "700");
  if (s.ok()) s = CheckMine(path, S_IRWXG | S_IRWXO, "600");
  if (!s.ok()) return s;
  const auto text = ReadPlainFile(path, kMostBytes);
  if (!text.ok()) return text.status();
  return ParseContexts(*text, path);
}

// The folder of the file, this user's and closed to others.
absl::Status MakeFolder(const std::string& folder) {
  absl::Status s = MakeDurableFolders(FolderOf(folder));
  // At no moment open to others: another process may look meanwhile.
  if (s.ok() && mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    s = PlainFileError(errno, "make folder", folder);
  }
  if (s.ok()) s = CheckMine(folder, S_IWGRP | S_IWOTH, "700");
  // Earlier versions made it readable.
  if (s.ok() && chmod(folder.c_str(), S_IRWXU) != 0) {
    s = PlainFileError(errno, "close to others", folder);
  }
  return s;
}

// Held from construction to destruction, if status() is OK.
class Lock {
 public:
  explicit Lock(const std::string& folder) {
    const absl::Time deadline = Clock::Real()->Now() + kLockLimit;
    while ((fd_ = LockFolder(folder)) == -EWOULDBLOCK && Clock::Real()->Now() < deadline) {
      absl::SleepFor(kLockPause);
    }
    if (fd_ == -EWOULDBLOCK) {
      status_ = absl::AbortedError(absl::StrCat("another `strata` has been changing ", folder,
                                                " for ", absl::FormatDuration(kLockLimit),
                                                "; try again when it has ended"));
    } else if (fd_ < 0) {
      status_ = PlainFileError(-fd_, "lock", folder);
    }
  }
  ~Lock() {
    if (fd_ >= 0) FileSystem::Kernel().Close(fd_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  const absl::Status& status() const { return status_; }

 private:
  int fd_ = -1;
  absl::Status status_;
};

// The caller has the lock.
absl::Status Replace(const std::string& path, const std::string& text) {
  FileSystem& files = FileSystem::Kernel();
  const std::string temporary = absl::StrCat(path, ".tmp");
  absl::Status s = RemovePlainFile(temporary);  // of one that was killed
  if (s.ok()) s = WritePrivateFile(temporary, text);
  if (!s.ok()) return s;
  if (const int renamed = files.Rename(temporary, path); renamed < 0) {
    RemovePlainFile(temporary).IgnoreError();
    return PlainFileError(-renamed, "rename", temporary);
  }
  return SyncPlainFolder(FolderOf(path));
}

}  // namespace

std::string ContextsPath() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && *config != '\0') return absl::StrCat(config, "/strata/contexts.yaml");
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return "";
  return absl::StrCat(home, "/.config/strata/contexts.yaml");
}

absl::StatusOr<Contexts> ReadContexts() {
  const std::string path = ContextsPath();
  return path.empty() ? Contexts{} : ReadFrom(path);
}

absl::Status ChangeContexts(const std::function<absl::Status(Contexts&)>& change) {
  const std::string path = ContextsPath();
  if (path.empty()) {
    return absl::FailedPreconditionError(
        "neither HOME nor XDG_CONFIG_HOME is set, so that contexts have no place; set one of them");
  }
  if (absl::Status s = MakeFolder(FolderOf(path)); !s.ok()) return s;
  const Lock lock(FolderOf(path));
  if (!lock.status().ok()) return lock.status();
  absl::StatusOr<Contexts> contexts = ReadFrom(path);
  if (!contexts.ok()) return contexts.status();
  const Contexts before = *contexts;
  if (absl::Status s = change(*contexts); !s.ok()) return s;
  if (*contexts == before) return absl::OkStatus();
  const absl::StatusOr<std::string> text = ContextsText(*contexts);
  return text.ok() ? Replace(path, *text) : text.status();
}

}  // namespace strata
