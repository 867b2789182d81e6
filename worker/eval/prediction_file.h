// Predictions in a file that appears whole or not at all.
// Tested by tests/worker/eval/evaluator_test.cc
#ifndef STRATA_WORKER_EVAL_PREDICTION_FILE_H_
#define STRATA_WORKER_EVAL_PREDICTION_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

// Written under another name (prediction_names.h), then renamed. One thread at a time. Errors are
// FAILED_PRECONDITION with the path: waiting mends nothing here, as nobody tries again.
class PredictionFile {
 public:
  PredictionFile() = default;
  PredictionFile(const PredictionFile&) = delete;
  PredictionFile& operator=(const PredictionFile&) = delete;
  // What was not finished leaves nothing behind.
  ~PredictionFile();

  // Without a path nothing is written, and all is well.
  absl::Status Open(const std::string& path);
  // The same, but FAILED_PRECONDITION while another process that called it writes there. Not for
  // jobs: whoever replaces a worker that was lost writes where that did, which may only be slow.
  absl::Status OpenAlone(const std::string& path);
  absl::Status Append(absl::string_view text);
  absl::Status Finish();

 private:
  std::string TemporaryName() const;
  // `fd`: of the temporary name, or a negative errno.
  absl::Status Begin(int fd);
  void Close();
  // `result`: a negative errno.
  absl::Status Error(const char* what, ssize_t result) const;

  FileSystem& files_ = FileSystem::Kernel();
  std::string path_;
  int fd_ = -1;
  bool begun_ = false;  // the temporary name is there
  uint64_t bytes_ = 0;
};

}  // namespace strata

#endif  // STRATA_WORKER_EVAL_PREDICTION_FILE_H_
