// A wall clock that real processes are shown in place of the machine's, by libfaketime. What they
// wait for they wait for in true time.
#ifndef STRATA_TESTS_E2E_CLUSTER_SHOWN_CLOCK_H_
#define STRATA_TESTS_E2E_CLUSTER_SHOWN_CLOCK_H_

#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace strata::testing {

inline constexpr char kFakeTimeLibrary[] = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

// The wall clock that processes with `variables()` see.
class ShownClock {
 public:
  explicit ShownClock(const std::string& file) : file_(file) { Set(0); }

  // That many hours ahead of the true time, from now on.
  void Set(int hours) {
    hours_ = hours;
    // In one step: each look at the clock reads the file.
    std::ofstream(file_ + ".next") << absl::StrCat(hours < 0 ? "" : "+", hours * 3600) << '\n';
    std::filesystem::rename(file_ + ".next", file_);
  }

  absl::Time Now() const { return absl::Now() + absl::Hours(hours_); }

  std::vector<std::string> variables() const {
    return {absl::StrCat("LD_PRELOAD=", kFakeTimeLibrary), "FAKETIME_TIMESTAMP_FILE=" + file_,
            "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1"};
  }

 private:
  const std::string file_;
  int hours_ = 0;
};

// Removes what libfaketime leaves of a process.
inline void RemoveFakeTimeOf(pid_t pid) {
  for (const char* name : {"faketime_shm_", "sem.faketime_sem_"}) {
    std::error_code ignored;
    std::filesystem::remove(absl::StrCat("/dev/shm/", name, pid), ignored);
  }
}

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_CLUSTER_SHOWN_CLOCK_H_
