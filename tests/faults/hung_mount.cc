// Preloaded into the programs: calls on paths that begin with STRATA_HUNG_PREFIX do not return
// while the file STRATA_HUNG_FLAG is there, as on a mount whose server does not answer. Only in the
// program STRATA_HUNG_PROGRAM. The first such call makes STRATA_HUNG_FLAG + ".met".
//
// Without the headers of these calls, whose inline versions would get in the way.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>

extern "C" char* program_invocation_short_name;

namespace {

bool Here() {
  const char* program = std::getenv("STRATA_HUNG_PROGRAM");
  return program != nullptr && std::strcmp(program, program_invocation_short_name) == 0;
}

void Meet(const char* path) {
  static const bool here = Here();
  if (!here || path == nullptr) return;
  const char* prefix = std::getenv("STRATA_HUNG_PREFIX");
  const char* flag = std::getenv("STRATA_HUNG_FLAG");
  if (prefix == nullptr || flag == nullptr) return;
  if (std::strncmp(path, prefix, std::strlen(prefix)) != 0) return;
  constexpr long kCreate = 0100, kWrite = 01;
  const std::string met = std::string(flag) + ".met";
  for (bool first = true; syscall(SYS_access, flag, 0) == 0; first = false) {
    if (first) syscall(SYS_close, syscall(SYS_open, met.c_str(), kCreate | kWrite, 0644));
    const timespec pause = {0, 2'000'000};
    nanosleep(&pause, nullptr);
  }
}

// The call of that name that this one stands before.
template <typename Call>
Call* Next(const char* name) {
  return reinterpret_cast<Call*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define STRATA_ONE_PATH(result, name)                          \
  extern "C" result name(const char* path) {                   \
    static const auto next = Next<result(const char*)>(#name); \
    Meet(path);                                                \
    return next(path);                                         \
  }
#define STRATA_PATH_AND(result, name, type)                          \
  extern "C" result name(const char* path, type value) {             \
    static const auto next = Next<result(const char*, type)>(#name); \
    Meet(path);                                                      \
    return next(path, value);                                        \
  }
#define STRATA_OPEN(name)                                             \
  extern "C" int name(const char* path, int flags, ...) {             \
    static const auto next = Next<int(const char*, int, ...)>(#name); \
    va_list more;                                                     \
    va_start(more, flags);                                            \
    const unsigned mode = va_arg(more, unsigned);                     \
    va_end(more);                                                     \
    Meet(path);                                                       \
    return next(path, flags, mode);                                   \
  }

STRATA_OPEN(open)
STRATA_OPEN(open64)
STRATA_PATH_AND(int, stat, void*)
STRATA_PATH_AND(int, stat64, void*)
STRATA_PATH_AND(int, lstat, void*)
STRATA_PATH_AND(int, lstat64, void*)
STRATA_PATH_AND(int, mkdir, unsigned)
STRATA_PATH_AND(int, rename, const char*)
STRATA_PATH_AND(int, link, const char*)
STRATA_ONE_PATH(void*, opendir)
STRATA_ONE_PATH(int, unlink)
STRATA_ONE_PATH(int, rmdir)
