// Files that a test writes for itself.
#ifndef STRATA_TESTS_WORKER_DATA_FILES_SCRATCH_FILE_H_
#define STRATA_TESTS_WORKER_DATA_FILES_SCRATCH_FILE_H_

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "tests/temp_folder.h"

namespace strata {

// A folder of its own, removed at the end.
class ScratchFolder {
 public:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }

  // Writes (or replaces) a file; returns its path.
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream out(Path(name), std::ios::binary | std::ios::trunc);
    out << text;
    out.close();
    REQUIRE(out.good());
    return Path(name);
  }

 private:
  const TempFolder folder_;
};

}  // namespace strata

#endif  // STRATA_TESTS_WORKER_DATA_FILES_SCRATCH_FILE_H_
