// Preloaded into the programs: each write at a place of a file below STRATA_SLOW_PREFIX takes a
// millisecond longer, and thirty while the file STRATA_SLOW_FLAG is there, as on a disk that fails
// slowly.
#include <dlfcn.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace {

bool Below(int fd, const char* prefix) {
  char name[64], path[4096];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(name, path, sizeof path);
  const size_t length = strlen(prefix);
  return size >= static_cast<ssize_t>(length) && memcmp(path, prefix, length) == 0;
}

}  // namespace

extern "C" ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  using Call = ssize_t(int, const iovec*, int, off_t);
  static const auto next = reinterpret_cast<Call*>(dlsym(RTLD_NEXT, "pwritev"));
  const char* prefix = std::getenv("STRATA_SLOW_PREFIX");
  const char* flag = std::getenv("STRATA_SLOW_FLAG");
  if (prefix != nullptr && flag != nullptr && Below(fd, prefix)) {
    const timespec longer = {0, access(flag, F_OK) == 0 ? 30'000'000 : 1'000'000};
    nanosleep(&longer, nullptr);
  }
  return next(fd, parts, count, offset);
}
