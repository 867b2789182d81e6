// Where simulations keep files: images and checkpoints are synced thousands of times.
#ifndef STRATA_TESTS_SIM_SCRATCH_H_
#define STRATA_TESTS_SIM_SCRATCH_H_

#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "tests/temp_folder.h"

namespace strata::sim {

// A folder in memory where the machine has such a place, removed with all it holds. One at a time
// in a process.
class Scratch {
 public:
  Scratch() : path_("/dev/shm/strata-sim-" + std::to_string(getpid())) {
    std::error_code error;
    std::filesystem::create_directory(path_, error);
    if (error) path_ = fallback_.path();
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }

 private:
  TempFolder fallback_;
  std::string path_;
};

}  // namespace strata::sim

#endif  // STRATA_TESTS_SIM_SCRATCH_H_
