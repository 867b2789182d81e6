// Files that a test writes for itself.
#ifndef STRATA_TESTS_WORKER_DATA_SCRATCH_FILE_H_
#define STRATA_TESTS_WORKER_DATA_SCRATCH_FILE_H_

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

namespace strata {

// A folder of its own, removed at the end.
class ScratchFolder {
 public:
  ScratchFolder() {
    const char* base = getenv("TEST_TMPDIR");
    path_ = std::string(base != nullptr ? base : "/tmp") + "/strata_data_XXXXXX";
    REQUIRE(mkdtemp(path_.data()) != nullptr);
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }

  std::string Path(const std::string& name) const { return path_ + "/" + name; }

  // Writes (or replaces) a file; returns its path.
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream out(Path(name), std::ios::binary | std::ios::trunc);
    out << text;
    out.close();
    REQUIRE(out.good());
    return Path(name);
  }

 private:
  std::string path_;
};

}  // namespace strata

#endif  // STRATA_TESTS_WORKER_DATA_SCRATCH_FILE_H_
