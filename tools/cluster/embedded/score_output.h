// Where scores go, as they come.
// Tested by tests/e2e/predict_test.cc
// Tested by tests/bad_input/bad_output_test.cc
#ifndef STRATA_TOOLS_CLUSTER_EMBEDDED_SCORE_OUTPUT_H_
#define STRATA_TOOLS_CLUSTER_EMBEDDED_SCORE_OUTPUT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/device_file.h"
#include "proto/runtime/files/prediction_names.h"
#include "worker/eval/prediction_file.h"

namespace strata {

// A file appears whole at the end. A device or a pipe, and standard output, have each text as soon
// as Append returns. One thread at a time.
class ScoreOutput {
 public:
  ScoreOutput() = default;
  ScoreOutput(const ScoreOutput&) = delete;
  ScoreOutput& operator=(const ScoreOutput&) = delete;

  // A path of "-" is standard output; without a path nothing is written. FAILED_PRECONDITION:
  // another process writes scores to that file now.
  absl::Status Open(const PredictionsPlace& place);
  // INTERNAL: it cannot be written to. Where nobody reads any more, that is `reader_left`, and
  // SIGPIPE is ignored.
  absl::Status Append(absl::string_view text);
  absl::Status Finish();

  bool reader_left() const { return device_.reader_left(); }

 private:
  DeviceFile device_;
  PredictionFile file_;
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_EMBEDDED_SCORE_OUTPUT_H_
