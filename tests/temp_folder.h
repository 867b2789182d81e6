// A folder of a test's own, removed with all it holds.
#ifndef STRATA_TESTS_TEMP_FOLDER_H_
#define STRATA_TESTS_TEMP_FOLDER_H_

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <system_error>

namespace strata {

class TempFolder {
 public:
  TempFolder() {
    const char* base = getenv("TEST_TMPDIR");
    path_ = std::string(base == nullptr ? "/tmp" : base) + "/strata-XXXXXX";
    REQUIRE(mkdtemp(path_.data()) != nullptr);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TEMP_FOLDER_H_
