#include "proto/runtime/files/plain_file.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strata {

absl::Status PlainFileError(int error, absl::string_view action, absl::string_view path) {
  const absl::Status status = ErrnoStatus(error, action, path);
  return absl::IsUnavailable(status) ? absl::InternalError(status.message()) : status;
}

PlainFile::PlainFile(const std::string& path, int flags, FileSystem& files)
    : files_(files), path_(path), fd_(files.Open(path, flags)) {}

PlainFile::PlainFile(UnfinishedFile file, FileSystem& files)
    : files_(files), path_(std::move(file.path)), fd_(file.fd) {}

PlainFile::~PlainFile() {
  if (fd_ >= 0) files_.Close(fd_);
}

absl::Status PlainFile::opened() const {
  return fd_ < 0 ? PlainFileError(-fd_, "open", path_) : absl::OkStatus();
}

absl::StatusOr<size_t> PlainFile::Read(std::span<uint8_t> bytes, uint64_t offset) const {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = files_.Read(fd_, bytes.subspan(done), offset + done);
    if (n < 0) return PlainFileError(static_cast<int>(-n), "read", path_);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

absl::Status PlainFile::Write(absl::string_view text) const {
  for (uint64_t at = 0; !text.empty();) {
    const iovec part = {const_cast<char*>(text.data()), text.size()};
    const ssize_t n = files_.Write(fd_, {&part, 1}, at);
    if (n < 0) return PlainFileError(static_cast<int>(-n), "write", path_);
    at += static_cast<uint64_t>(n);
    text.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status PlainFile::Sync() const {
  const int result = files_.Sync(fd_, SyncWhat::kAll);
  return result < 0 ? PlainFileError(-result, "sync", path_) : absl::OkStatus();
}

absl::Status SyncPlainFolder(const std::string& folder, FileSystem& files) {
  const PlainFile file(folder, O_RDONLY | O_DIRECTORY, files);
  return file.opened().ok() ? file.Sync() : file.opened();
}

absl::Status RemovePlainFile(const std::string& path, FileSystem& files) {
  const int result = files.Remove(path);
  if (result >= 0 || result == -ENOENT) return absl::OkStatus();
  return PlainFileError(-result, "remove", path);
}

absl::StatusOr<std::string> ReadPlainFile(const std::string& path, uint64_t most,
                                          FileSystem& files) {
  const PlainFile file(path, O_RDONLY, files);
  if (!file.opened().ok()) return file.opened();
  std::string text;
  uint8_t buffer[1 << 16];
  while (true) {
    const absl::StatusOr<size_t> n = file.Read(buffer, text.size());
    if (!n.ok()) return n.status();
    if (*n == 0) return text;
    text.append(reinterpret_cast<const char*>(buffer), *n);
    if (text.size() > most) {
      return absl::DataLossError(absl::StrCat(path, " has more than ", most, " bytes"));
    }
  }
}

absl::Status WritePlainFile(const std::string& path, absl::string_view text, FileSystem& files) {
  UnfinishedFile unfinished = OpenUnfinished(path, files);
  const std::string temporary = unfinished.path;
  // Nobody else has it until it has its name, or is gone.
  const PlainFile file(std::move(unfinished), files);
  if (!file.opened().ok()) return file.opened();
  absl::Status s = file.Write(text);
  if (s.ok()) s = file.Sync();
  if (s.ok()) {
    const int renamed = files.Rename(temporary, path);
    if (renamed < 0) s = PlainFileError(-renamed, "rename", temporary);
  }
  if (!s.ok()) RemovePlainFile(temporary, files).IgnoreError();
  return s;
}

}  // namespace strata
