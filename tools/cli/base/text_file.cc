#include "tools/cli/base/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace strata {

namespace fs = std::filesystem;

absl::Status FileError(absl::string_view path, int error) {
  const std::string text = absl::StrCat(path, ": ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(text);
  if (error == EACCES || error == EPERM || error == EROFS) return absl::PermissionDeniedError(text);
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(text);
  return absl::InternalError(text);
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return FileError(path, errno);
  std::string text;
  char block[4096];
  ssize_t got;
  while ((got = read(file, block, sizeof(block))) > 0) text.append(block, got);
  const int error = got < 0 ? errno : 0;
  close(file);
  if (error != 0) return FileError(path, error);
  return text;
}

absl::Status WriteTextFile(const std::string& path, absl::string_view text) {
  std::error_code made;
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, made);
  if (made) return FileError(folder.string(), made.value());
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return FileError(path, errno);
  int error = 0;
  while (error == 0 && !text.empty()) {
    const ssize_t put = write(file, text.data(), text.size());
    if (put < 0) {
      error = errno;
    } else {
      text.remove_prefix(static_cast<size_t>(put));
    }
  }
  if (close(file) != 0 && error == 0) error = errno;
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return absl::OkStatus();
  unlink(temporary.c_str());
  return FileError(path, error);
}

}  // namespace strata
