#include "tools/gpu/check/log_archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"

namespace strata::gpu_check {
namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kMostBytes = (uint64_t{1} << 33) - 1;  // eleven octal digits

uint64_t Padded(uint64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

// POSIX' ustar; all numbers are octal digits.
struct Header {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
  char magic[6], version[2], owner[32], group[32], major[8], minor[8], prefix[155], rest[12];
};
static_assert(sizeof(Header) == kBlock);

Header HeaderOf(const std::string& name, uint64_t bytes) {
  Header h = {};
  std::snprintf(h.name, sizeof h.name, "%s", name.c_str());
  std::memcpy(h.mode, "0000644", 8);
  std::memcpy(h.uid, "0000000", 8);
  std::memcpy(h.gid, "0000000", 8);
  std::snprintf(h.size, sizeof h.size, "%011llo", static_cast<unsigned long long>(bytes));
  std::memcpy(h.mtime, "00000000000", 12);
  h.type = '0';
  std::memcpy(h.magic, "ustar", 6);
  std::memcpy(h.version, "00", 2);
  std::memset(h.checksum, ' ', sizeof h.checksum);
  unsigned sum = 0;
  const auto* const bytes_of = reinterpret_cast<const unsigned char*>(&h);
  for (size_t i = 0; i < sizeof h; ++i) sum += bytes_of[i];
  std::snprintf(h.checksum, sizeof h.checksum, "%06o", sum);  // and a space behind the zero
  return h;
}

absl::Status Failed(const std::string& path, int error) {
  return absl::InternalError(absl::StrCat(path, ": ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LogArchive>> LogArchive::Create(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return Failed(path, errno);
  std::unique_ptr<LogArchive> archive(new LogArchive(path, fd));
  if (const int error = archive->End(0); error != 0) return Failed(path, error);
  return archive;
}

LogArchive::~LogArchive() { close(fd_); }

absl::Status LogArchive::Add(const std::string& file, const std::string& name) {
  // A pipe that nobody writes to would be waited for.
  const int from = open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (from < 0) return absl::OkStatus();
  struct stat about = {};
  absl::Status status;
  if (fstat(from, &about) == 0 && S_ISREG(about.st_mode)) {
    status = Copy(from, std::min(static_cast<uint64_t>(about.st_size), kMostBytes), name);
  }
  close(from);
  return status;
}

// Who still writes to the log may change it meanwhile: what the header says is what counts.
absl::Status LogArchive::Copy(int from, uint64_t bytes, const std::string& name) {
  const Header header = HeaderOf(name, bytes);
  uint64_t at = bytes_;
  int error = Write(&header, sizeof header, &at);
  std::vector<char> piece(size_t{64} << 10);
  for (uint64_t left = Padded(bytes), here = bytes; left > 0 && error == 0;) {
    const ssize_t got =
        here == 0 ? 0 : read(from, piece.data(), std::min<uint64_t>(here, piece.size()));
    const uint64_t some =
        got > 0 ? static_cast<uint64_t>(got) : std::min<uint64_t>(left, piece.size());
    if (got <= 0) std::fill_n(piece.begin(), some, '\0');
    error = Write(piece.data(), some, &at);
    here = got > 0 ? here - some : 0;
    left -= some;
  }
  if (error == 0) error = End(at);
  if (error == 0) {
    bytes_ = at;
    return absl::OkStatus();
  }
  (void)End(bytes_);
  return Failed(path_, error);
}

int LogArchive::Write(const void* data, uint64_t bytes, uint64_t* at) const {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = pwrite(fd_, from, bytes, static_cast<off_t>(*at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    from += written;
    bytes -= static_cast<uint64_t>(written);
    *at += static_cast<uint64_t>(written);
  }
  return 0;
}

int LogArchive::End(uint64_t at) const {
  const char zeros[2 * kBlock] = {};
  const int error = Write(zeros, sizeof zeros, &at);
  if (error != 0) return error;
  return ftruncate(fd_, static_cast<off_t>(at)) == 0 ? 0 : errno;
}

}  // namespace strata::gpu_check
