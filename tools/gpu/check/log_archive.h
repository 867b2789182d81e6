// The logs of a run in one file: a tar archive that is whole after each log that was added, so that
// whoever is killed leaves those of the parts before.
#ifndef STRATA_TOOLS_GPU_CHECK_LOG_ARCHIVE_H_
#define STRATA_TOOLS_GPU_CHECK_LOG_ARCHIVE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata::gpu_check {

class LogArchive {
 public:
  // Empty, in place of what is there. The system's error names the path.
  static absl::StatusOr<std::unique_ptr<LogArchive>> Create(const std::string& path);
  ~LogArchive();
  LogArchive(const LogArchive&) = delete;
  LogArchive& operator=(const LogArchive&) = delete;

  // The file as `name` (at most 99 characters). One that is not there, or is no regular file, is
  // passed over. After an error the archive has what it had.
  absl::Status Add(const std::string& file, const std::string& name);

 private:
  LogArchive(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::Status Copy(int from, uint64_t bytes, const std::string& name);
  // At `at`, which moves on. The system's error; 0: none.
  int Write(const void* data, uint64_t bytes, uint64_t* at) const;
  int End(uint64_t at) const;  // what every archive ends with

  const std::string path_;
  const int fd_;
  uint64_t bytes_ = 0;  // without the end
};

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_CHECK_LOG_ARCHIVE_H_
