#include "storage/io/file_io.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/runtime/files/folders.h"

namespace strata::storage {

absl::Status DamagedFile(absl::string_view path, uint64_t offset, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ", offset ", offset, ": ", what));
}

File& File::operator=(File&& other) noexcept {
  std::swap(files_, other.files_);
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) files_->Close(fd_);
}

absl::StatusOr<File> File::Open(const std::string& path, int flags, FileSystem& files) {
  const int fd = files.Open(path, flags);
  if (fd < 0) return ErrnoStatus(-fd, "open", path);
  File file;
  file.files_ = &files;
  file.fd_ = fd;
  file.path_ = path;
  return file;
}

absl::StatusOr<uint64_t> File::Size() const {
  FileInfo info;
  if (const int result = files_->Info(fd_, info); result < 0) {
    return ErrnoStatus(-result, "look up the size of", path_);
  }
  return info.bytes;
}

bool File::HasName() const {
  FileInfo info;
  return files_->Info(fd_, info) < 0 || info.names > 0;
}

absl::Status File::ReadAt(uint64_t offset, std::span<uint8_t> bytes) const {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = files_->Read(fd_, bytes.subspan(done), offset + done);
    if (n < 0) return ErrnoStatus(static_cast<int>(-n), "read", path_);
    if (n == 0) return DamagedFile(path_, offset + done, "the file ends too early");
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status File::WriteAt(uint64_t offset, std::span<iovec> parts) const {
  while (!parts.empty()) {
    if (parts.front().iov_len == 0) {
      parts = parts.subspan(1);
      continue;
    }
    const ssize_t n = files_->Write(fd_, parts, offset);
    if (n < 0) return ErrnoStatus(static_cast<int>(-n), "write", path_);
    offset += static_cast<uint64_t>(n);
    for (auto left = static_cast<size_t>(n); left > 0;) {
      iovec& part = parts.front();
      const size_t take = std::min(left, part.iov_len);
      part.iov_base = static_cast<uint8_t*>(part.iov_base) + take;
      part.iov_len -= take;
      left -= take;
      if (part.iov_len == 0) parts = parts.subspan(1);
    }
  }
  return absl::OkStatus();
}

absl::Status File::Truncate(uint64_t size) const {
  const int result = files_->Truncate(fd_, size);
  return result < 0 ? ErrnoStatus(-result, "truncate", path_) : absl::OkStatus();
}

absl::Status File::Sync() const {
  const int result = files_->Sync(fd_, SyncWhat::kAll);
  return result < 0 ? ErrnoStatus(-result, "sync", path_) : absl::OkStatus();
}

absl::Status File::SyncData() const {
  const int result = files_->Sync(fd_, SyncWhat::kData);
  return result < 0 ? ErrnoStatus(-result, "sync", path_) : absl::OkStatus();
}

absl::Status File::Reserve(uint64_t offset, uint64_t bytes) const {
  const int result = files_->Reserve(fd_, offset, bytes);
  // Logs and tiers wait for that as for room on a disk: steps that are done depend on it.
  if (result == -EFBIG)
    return absl::ResourceExhaustedError(ErrnoStatus(EFBIG, "extend", path_).message());
  return result < 0 ? ErrnoStatus(-result, "extend", path_) : absl::OkStatus();
}

absl::Status MakeFolder(const std::string& path, FileSystem& files) {
  return MakeFolders(path, files);
}

absl::Status SyncFolder(const std::string& path, FileSystem& files) {
  absl::StatusOr<File> folder =
      File::Open(path.empty() ? "." : path, O_RDONLY | O_DIRECTORY, files);
  return folder.ok() ? folder->Sync() : folder.status();
}

absl::Status RenameFile(const std::string& from, const std::string& to, FileSystem& files) {
  const int result = files.Rename(from, to);
  return result < 0 ? ErrnoStatus(-result, "rename", from) : absl::OkStatus();
}

absl::Status RemoveFile(const std::string& path, FileSystem& files) {
  const int result = files.Remove(path);
  return result < 0 && result != -ENOENT ? ErrnoStatus(-result, "remove", path) : absl::OkStatus();
}

}  // namespace strata::storage
