// A file that appears under its name only when it is complete.
// Tested by tests/tools/generate/criteo_generator_test.cc
#ifndef STRATA_TOOLS_GENERATE_PART_FILE_H_
#define STRATA_TOOLS_GENERATE_PART_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace strata {

// Until Finish it is "PATH.part", which goes with the object. Errors name the path. One thread.
class PartFile {
 public:
  explicit PartFile(const std::string& path) : path_(path), part_(path + ".part") {}
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  absl::Status Open();
  absl::Status Write(const std::string& text);
  absl::Status Finish();

 private:
  const std::string path_;
  const std::string part_;
  int fd_ = -1;
};

}  // namespace strata

#endif  // STRATA_TOOLS_GENERATE_PART_FILE_H_
