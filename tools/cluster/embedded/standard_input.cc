#include "tools/cluster/embedded/standard_input.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace strata {
namespace {

constexpr size_t kPieceBytes = 256 << 10;
// How soon a stop is seen while nothing comes.
constexpr int kPollMs = 100;

absl::Status WriteError(const std::string& path, uint64_t written, int error) {
  std::string text = absl::StrCat("cannot copy standard input to ", path, " (", written,
                                  " bytes so far): ", std::strerror(error));
  if (error != ENOSPC && error != EDQUOT && error != EFBIG) return absl::UnavailableError(text);
  return absl::ResourceExhaustedError(
      text + "; make room there, or set TMPDIR to a folder with room for all of it");
}

}  // namespace

absl::Status SpoolInput(int fd, const std::string& path, const std::atomic<bool>* stop) {
  const int out = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (out < 0) return WriteError(path, 0, errno);
  const absl::Cleanup close_out = [out] { close(out); };
  std::vector<char> piece(kPieceBytes);
  uint64_t written = 0;
  while (true) {
    if (stop != nullptr && stop->load()) return absl::CancelledError("interrupted");
    pollfd ready = {fd, POLLIN, 0};
    const int events = poll(&ready, 1, kPollMs);
    if (events == 0 || (events < 0 && errno == EINTR)) continue;
    const ssize_t got = read(fd, piece.data(), piece.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) {
      return absl::UnavailableError(
          absl::StrCat("standard input cannot be read: ", std::strerror(errno)));
    }
    if (got == 0) return absl::OkStatus();
    for (ssize_t at = 0; at < got;) {
      const ssize_t put = write(out, piece.data() + at, static_cast<size_t>(got - at));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return WriteError(path, written, errno);
      at += put;
      written += static_cast<uint64_t>(put);
    }
  }
}

absl::StatusOr<std::unique_ptr<DataAccess>> SpoolStandardInput(const std::string& folder,
                                                               const std::atomic<bool>* stop) {
  const std::string path = folder + "/standard-input";
  if (absl::Status s = SpoolInput(STDIN_FILENO, path, stop); !s.ok()) return s;
  return DataAccess::MakeFiles({.directory = "", .standard_input = path});
}

}  // namespace strata
