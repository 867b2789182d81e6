#include "worker/data/files/text_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "worker/data/files/decompressor.h"

namespace strata {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;

// A file without a name; -1 with errno.
int OpenNameless(const std::string& directory) {
  const int fd = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
  // A file system without O_TMPFILE.
  std::string path = directory + "/strata-text-XXXXXX";
  const int named = mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) unlink(path.c_str());
  return named;
}

absl::Status NoCopy(const std::string& path, const std::string& directory, uint64_t written,
                    int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  std::string text =
      absl::StrCat("input file ", path, ": cannot write its decompressed copy to ", directory, " (",
                   written, " bytes so far): ", std::strerror(error));
  absl::StrAppend(&text, full ? "; make room there, or set TMPDIR to a folder with room for the "
                                "text of all compressed files"
                              : "; set TMPDIR to a folder that can be written");
  return full ? absl::ResourceExhaustedError(text) : absl::UnavailableError(text);
}

// 0 or errno.
int WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return 0;
}

absl::StatusOr<Compression> Detect(const DataFile& raw) {
  char start[kCompressionMagicBytes];
  const size_t size = static_cast<size_t>(std::min<uint64_t>(sizeof(start), raw.size()));
  if (absl::Status s = raw.Read(0, size, start); !s.ok()) return s;
  return CompressionOfFile(raw.path(), {start, size});
}

}  // namespace

absl::Status StillWanted(const Cancelled& cancelled, const std::string& path) {
  if (!cancelled || !cancelled()) return absl::OkStatus();
  return absl::CancelledError(absl::StrCat("input file ", path, " is not wanted any more"));
}

std::string NameForMessages(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

std::string TextFiles::Directory() const {
  if (!options_.directory.empty()) return options_.directory;
  const char* base = getenv("TMPDIR");
  return base != nullptr && *base != '\0' ? base : "/tmp";
}

absl::StatusOr<std::unique_ptr<DataFile>> TextFiles::OpenRaw(const std::string& path) const {
  if (path != "-") return DataFile::Open(path);
  if (options_.standard_input.empty()) {
    return absl::InvalidArgumentError(
        "input file -: standard input can be read by `strata train` and `strata predict` only; "
        "write the data to a file");
  }
  return DataFile::Open(options_.standard_input, NameForMessages(path));
}

absl::StatusOr<std::shared_ptr<const DataFile>> TextFiles::MakeCopy(
    const DataFile& raw, Compression compression, const Cancelled& cancelled) const {
  const std::string directory = Directory();
  const int fd = OpenNameless(directory);
  if (fd < 0) return NoCopy(raw.path(), directory, 0, errno);
  uint64_t written = 0;
  std::shared_ptr<const DataFile> copy;
  const auto decompressor =
      Decompressor::Make(compression, absl::StrCat("input file ", raw.path()));
  const auto write = [&](absl::string_view text) {
    const int error = WriteAll(fd, text);
    if (error != 0) return NoCopy(raw.path(), directory, written, error);
    written += text.size();
    return absl::OkStatus();
  };
  std::vector<char> buffer(static_cast<size_t>(std::min<uint64_t>(kReadBytes, raw.size())));
  absl::Status status;
  for (uint64_t at = 0; status.ok() && at < raw.size(); at += buffer.size()) {
    buffer.resize(static_cast<size_t>(std::min<uint64_t>(buffer.size(), raw.size() - at)));
    status = StillWanted(cancelled, raw.path());
    if (status.ok()) status = raw.Read(at, buffer.size(), buffer.data());
    if (status.ok()) status = decompressor->Push({buffer.data(), buffer.size()}, write);
  }
  if (status.ok()) status = decompressor->Finish();
  if (!status.ok()) {
    close(fd);
    return status;
  }
  return std::shared_ptr<const DataFile>(DataFile::Adopt(fd, raw.path(), written));
}

absl::StatusOr<std::shared_ptr<const DataFile>> TextFiles::Open(const std::string& path,
                                                                const Cancelled& cancelled) {
  absl::StatusOr<std::unique_ptr<DataFile>> raw = OpenRaw(path);
  if (!raw.ok()) return raw.status();
  absl::StatusOr<Compression> compression = Detect(**raw);
  if (!compression.ok()) return compression.status();
  if (*compression == Compression::kNone) return std::shared_ptr<const DataFile>(*std::move(raw));
  std::shared_ptr<Copy> copy;
  {
    absl::MutexLock lock(&mu_);
    for (auto it = copies_.begin(); it != copies_.end();) {
      // What only the map holds nobody is making: its lock is free.
      bool gone = false;
      if (it->second.use_count() == 1) {
        absl::MutexLock inner(&it->second->mu);
        gone = it->second->file.expired();
      }
      it = gone ? copies_.erase(it) : std::next(it);
    }
    std::shared_ptr<Copy>& entry = copies_[(*raw)->identity()];
    if (entry == nullptr) entry = std::make_shared<Copy>();
    copy = entry;
  }
  absl::MutexLock lock(&copy->mu);
  if (std::shared_ptr<const DataFile> shared = copy->file.lock()) return shared;
  absl::StatusOr<std::shared_ptr<const DataFile>> made = MakeCopy(**raw, *compression, cancelled);
  if (made.ok()) copy->file = *made;
  return made;
}

}  // namespace strata
