#include "proto/runtime/files/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace strata {
namespace {

template <typename Call>
auto Again(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0) return result;
    if (errno != EINTR) return static_cast<decltype(result)>(-errno);
  }
}

// To the kernel such a path would be another one.
bool HasZero(const std::string& path) { return path.find('\0') != std::string::npos; }

void Describe(const struct stat& from, FileInfo& to) {
  to.kind = S_ISREG(from.st_mode)   ? FileKind::kFile
            : S_ISDIR(from.st_mode) ? FileKind::kFolder
            : S_ISLNK(from.st_mode) ? FileKind::kLink
                                    : FileKind::kOther;
  to.bytes = static_cast<uint64_t>(from.st_size);
  constexpr uint64_t kBlock = 512;  // whatever the file system's is
  to.on_disk = static_cast<uint64_t>(from.st_blocks) * kBlock;
  to.names = static_cast<uint64_t>(from.st_nlink);
  to.device = static_cast<uint64_t>(from.st_dev);
  to.inode = static_cast<uint64_t>(from.st_ino);
  to.changed_ns = int64_t{from.st_mtim.tv_sec} * 1'000'000'000 + from.st_mtim.tv_nsec;
}

std::atomic<FileSystem*> replaced{nullptr};

}  // namespace

absl::Status ErrnoStatus(int error, absl::string_view action, absl::string_view path) {
  if (error == kOutsideRoots) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot ", action, " ", path, ": ", FileSystem::Kernel().WhyOutside(path)));
  }
  const std::string text = absl::StrCat("cannot ", action, " ", path, ": ", std::strerror(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(absl::StrCat(text, "; free disk space"));
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(absl::StrCat(text, "; raise the limit of open files"));
    case ENOMEM:
      return absl::ResourceExhaustedError(absl::StrCat(text, "; free memory"));
    case ENOENT:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(
          absl::StrCat(text, "; give this user the right to write there"));
    case EFBIG:
      return absl::FailedPreconditionError(absl::StrCat(
          text,
          "; raise the limit of a file's size (ulimit -f), or name a place on another file "
          "system"));
    case EOPNOTSUPP:
    case ENOSYS:
      return absl::FailedPreconditionError(
          absl::StrCat(text, "; name a place on another file system, which does that"));
    case ESPIPE:
      return absl::FailedPreconditionError(
          absl::StrCat(text, "; it is a pipe or a device: name a file"));
    case ENAMETOOLONG:
    case ELOOP:
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case ENXIO:
    case EINVAL:
      return absl::FailedPreconditionError(absl::StrCat(text, "; name another place"));
    case EIO:
      return absl::UnavailableError(absl::StrCat(text, "; look at the disk and the kernel's log"));
    default:
      return absl::UnavailableError(text);
  }
}

FileSystem& FileSystem::Kernel() {
  static FileSystem& kernel = *new FileSystem;
  FileSystem* const other = replaced.load(std::memory_order_acquire);
  return other == nullptr ? kernel : *other;
}

void FileSystem::ReplaceKernel(FileSystem* files) {
  replaced.store(files, std::memory_order_release);
}

std::string FileSystem::WhyOutside(absl::string_view) {
  return "it lies outside of the data roots";
}

int FileSystem::Open(const std::string& path, int flags) {
  if (HasZero(path)) return -EINVAL;
  // Non-blocking, until it is known not to be a pipe that nobody writes to.
  const int fd = Again([&] { return ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0644); });
  if (fd < 0) return fd == -ENXIO ? -ESPIPE : fd;
  struct stat info;
  const int error = ::fstat(fd, &info) != 0                          ? errno
                    : S_ISREG(info.st_mode) || S_ISDIR(info.st_mode) ? 0
                                                                     : ESPIPE;
  if (error == 0 && ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0) return fd;
  const int result = error == 0 ? -errno : -error;
  ::close(fd);
  return result;
}

void FileSystem::Close(int fd) { ::close(fd); }

ssize_t FileSystem::Read(int fd, std::span<uint8_t> bytes, uint64_t offset) {
  return Again([&] { return ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
}

ssize_t FileSystem::Write(int fd, std::span<const iovec> parts, uint64_t offset) {
  const int count = static_cast<int>(std::min<size_t>(parts.size(), IOV_MAX));
  return Again([&] { return ::pwritev(fd, parts.data(), count, static_cast<off_t>(offset)); });
}

int FileSystem::Truncate(int fd, uint64_t bytes) {
  return Again([&] { return ::ftruncate(fd, static_cast<off_t>(bytes)); });
}

int FileSystem::Sync(int fd, SyncWhat what) {
  return Again([&] { return what == SyncWhat::kData ? ::fdatasync(fd) : ::fsync(fd); });
}

int FileSystem::Reserve(int fd, uint64_t offset, uint64_t bytes) {
  for (;;) {
    const int error = ::posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    if (error != EINTR) return -error;
  }
}

int FileSystem::Info(int fd, FileInfo& out) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return -errno;
  Describe(info, out);
  return 0;
}

int FileSystem::Rename(const std::string& from, const std::string& to) {
  if (HasZero(from) || HasZero(to)) return -EINVAL;
  return Again([&] { return ::rename(from.c_str(), to.c_str()); });
}

int FileSystem::Link(const std::string& from, const std::string& to) {
  if (HasZero(from) || HasZero(to)) return -EINVAL;
  return Again([&] { return ::link(from.c_str(), to.c_str()); });
}

int FileSystem::Remove(const std::string& path) {
  if (HasZero(path)) return -EINVAL;
  return Again([&] { return ::unlink(path.c_str()); });
}

int FileSystem::Look(const std::string& path, FileInfo& out) {
  if (HasZero(path)) return -EINVAL;
  struct stat info;
  const int result = Again([&] { return ::stat(path.c_str(), &info); });
  if (result == 0) Describe(info, out);
  return result;
}

int FileSystem::Space(const std::string& path, FileSpace& out) {
  FileInfo info;
  if (const int looked = Look(path, info); looked < 0) return looked;
  struct statvfs space;
  const int result = Again([&] { return ::statvfs(path.c_str(), &space); });
  if (result < 0) return result;
  const uint64_t named = space.f_fsid;
  out = {.free = uint64_t{space.f_bavail} * space.f_frsize, .id = named != 0 ? named : info.device};
  return 0;
}

int FileSystem::LookAtLink(const std::string& path, FileInfo& out) {
  if (HasZero(path)) return -EINVAL;
  struct stat info;
  const int result = Again([&] { return ::lstat(path.c_str(), &info); });
  if (result == 0) Describe(info, out);
  return result;
}

int FileSystem::ReadLink(const std::string& path, std::string& target) {
  if (HasZero(path)) return -EINVAL;
  target.resize(PATH_MAX);
  const ssize_t bytes = ::readlink(path.c_str(), target.data(), target.size());
  if (bytes < 0) return -errno;
  target.resize(static_cast<size_t>(bytes));
  return 0;
}

int FileSystem::MayChange(const std::string& folder) {
  if (HasZero(folder)) return -EINVAL;
  return Again([&] { return ::access(folder.c_str(), W_OK | X_OK); });
}

int FileSystem::MakeFolder(const std::string& path) {
  if (HasZero(path)) return -EINVAL;
  return Again([&] { return ::mkdir(path.c_str(), 0777); });
}

int FileSystem::RemoveFolder(const std::string& path) {
  if (HasZero(path)) return -EINVAL;
  return Again([&] { return ::rmdir(path.c_str()); });
}

int FileSystem::List(const std::string& path, std::vector<std::string>& names) {
  if (HasZero(path)) return -EINVAL;
  DIR* const folder = ::opendir(path.c_str());
  if (folder == nullptr) return -errno;
  names.clear();
  errno = 0;
  while (const dirent* entry = ::readdir(folder)) {
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;  // what tells an error from the end
  }
  const int error = errno;
  ::closedir(folder);
  return -error;
}

}  // namespace strata
