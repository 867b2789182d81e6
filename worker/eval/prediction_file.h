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
#include "proto/runtime/files/locked_file.h"

namespace strata {

// Written under another name (prediction_names.h), which nobody else writes at a time, then
// renamed. One thread at a time. Errors are FAILED_PRECONDITION with the path: waiting mends
// nothing here, as nobody tries again.
class PredictionFile {
 public:
  PredictionFile() = default;
  PredictionFile(const PredictionFile&) = delete;
  PredictionFile& operator=(const PredictionFile&) = delete;
  // What was not finished leaves nothing behind.
  ~PredictionFile();

  // Of a job. Without a path nothing is written, and all is well. Of several that write `path` at a
  // time the last one to finish counts: whoever replaces a worker that was lost does not wait for
  // that, which may only be slow.
  absl::Status Open(const std::string& path);
  // Of `strata predict`: FAILED_PRECONDITION while another process that called it writes there.
  absl::Status OpenAlone(const std::string& path);
  absl::Status Append(absl::string_view text);
  absl::Status Finish();

 private:
  absl::Status Begin(UnfinishedFile file);
  void Close();
  // `result`: a negative errno.
  absl::Status Error(const char* what, ssize_t result) const;

  FileSystem& files_ = FileSystem::Kernel();
  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  bool begun_ = false;  // the temporary name is there
  uint64_t bytes_ = 0;
};

}  // namespace strata

#endif  // STRATA_WORKER_EVAL_PREDICTION_FILE_H_
