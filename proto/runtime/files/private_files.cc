#include "proto/runtime/files/private_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/core/mutation.h"
#include "proto/runtime/files/locked_file.h"
#include "proto/runtime/files/plain_file.h"

namespace strata {
namespace {

constexpr mode_t kPrivateFile = 0600;
constexpr mode_t kPrivateFolder = 0700;
// Rights that a private file gives to nobody: any of its group and of others.
constexpr mode_t kNobody = 0077;
constexpr mode_t kRights = 07777;

std::string FolderOf(const std::string& path) {
  const std::string above = std::filesystem::path(path).parent_path().string();
  return above.empty() ? "." : above;
}

absl::Status SetMode(int fd, mode_t mode, const std::string& path) {
  if (::fchmod(fd, mode) == 0) return absl::OkStatus();
  return PlainFileError(errno, "close to others", path);
}

absl::Status CloseFolderToOthers(const std::string& path, FileSystem& files) {
  const int fd = files.Open(path, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return PlainFileError(-fd, "open", path);
  const absl::Status s = SetMode(fd, kPrivateFolder, path);
  files.Close(fd);
  return s;
}

}  // namespace

absl::Status MakePrivateFolder(const std::string& path, FileSystem& files) {
  const int made = files.MakeFolder(path);
  if (made == -EEXIST) {
    FileInfo info;
    const int looked = files.Look(path, info);
    if (looked == 0 && info.kind == FileKind::kFolder) return absl::OkStatus();
    return PlainFileError(looked == 0 ? ENOTDIR : -looked, "make folder", path);
  }
  if (made < 0) return PlainFileError(-made, "make folder", path);
  absl::Status s = CloseFolderToOthers(path, files);
  if (s.ok()) s = SyncPlainFolder(FolderOf(path), files);
  // The next try would find it, and take it for durable and private.
  if (!s.ok()) files.RemoveFolder(path);
  return s;
}

absl::Status WritePrivateFile(const std::string& path, absl::string_view text, FileSystem& files) {
  const int fd = files.Open(path, O_RDWR | O_CREAT | O_EXCL);
  const PlainFile file(UnfinishedFile{path, fd}, files);
  if (!file.opened().ok()) return file.opened();
  const bool late = STRATA_MUTATION("certs.key_closed_late");
  absl::Status s;
  if (!late) s = SetMode(fd, kPrivateFile, path);  // while it is empty
  if (s.ok()) s = file.Write(text);
  if (s.ok() && late) s = SetMode(fd, kPrivateFile, path);
  if (s.ok()) s = file.Sync();
  if (!s.ok()) RemovePlainFile(path, files).IgnoreError();
  return s;
}

absl::Status CheckPrivate(const std::string& path, FileSystem& files) {
  const int fd = files.Open(path, O_RDONLY);
  if (fd < 0) return PlainFileError(-fd, "open", path);
  struct stat info;
  const int error = ::fstat(fd, &info) == 0 ? 0 : errno;
  files.Close(fd);
  if (error != 0) return PlainFileError(error, "look at", path);
  if ((info.st_mode & kNobody) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(path, " is open to others (mode ",
                                                  absl::StrFormat("%04o", info.st_mode & kRights),
                                                  "); close it: chmod 600 ", path));
}

absl::Status ReplaceLink(const std::string& target, const std::string& path, FileSystem& files) {
  const std::string temporary = absl::StrCat(path, ".new");
  // What a caller left that was killed in between.
  if (absl::Status s = RemovePlainFile(temporary, files); !s.ok()) return s;
  if (::symlink(target.c_str(), temporary.c_str()) != 0) {
    return PlainFileError(errno, "make link", temporary);
  }
  if (const int renamed = files.Rename(temporary, path); renamed < 0) {
    RemovePlainFile(temporary, files).IgnoreError();
    return PlainFileError(-renamed, "rename", temporary);
  }
  return SyncPlainFolder(FolderOf(path), files);
}

}  // namespace strata
