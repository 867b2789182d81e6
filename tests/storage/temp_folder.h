// A folder of a test's own, removed with all it holds.
#ifndef STRATA_TESTS_STORAGE_TEMP_FOLDER_H_
#define STRATA_TESTS_STORAGE_TEMP_FOLDER_H_

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace strata::storage {

class TempFolder {
 public:
  TempFolder() {
    const char* base = getenv("TEST_TMPDIR");
    path_ = std::string(base == nullptr ? "/tmp" : base) + "/strata-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~TempFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace strata::storage

#endif  // STRATA_TESTS_STORAGE_TEMP_FOLDER_H_
