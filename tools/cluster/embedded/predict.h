// Predictions of a checkpoint's model, without a cluster.
// Tested by tests/e2e/job_features_test.cc, tests/e2e/float_state_test.cc
#ifndef STRATA_TOOLS_CLUSTER_EMBEDDED_PREDICT_H_
#define STRATA_TOOLS_CLUSTER_EMBEDDED_PREDICT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/strata/job.pb.h"

namespace strata {

struct PredictOptions {
  std::string checkpoint_dir;       // one checkpoint's folder, or a folder of them: the newest
  std::vector<std::string> inputs;  // files, in order; one may be "-", standard input
  std::string format_override;      // spec.data.format of the job when empty
  // File of "label,score" per line, with several labels as spec.output.predictions; it appears
  // whole; a link stays, and what it leads to is replaced. "-" is standard output; what /dev/stdout
  // and the like stand for is written to.
  std::string output;
};

struct PredictSummary {
  uint64_t lines = 0;
  EvaluationResult result;  // by the lines' labels
  uint64_t step = 0;
  std::string checkpoint;  // the folder that was used
  bool to_device = false;  // the scores went to standard output, a device or a pipe
};

// Loads every row into memory. Errors: NOT_FOUND (no complete checkpoint there), DATA_LOSS
// (damaged: names the file and the newest whole checkpoint beside it; never falls back to that by
// itself, whose scores would pass for the newer model's), INVALID_ARGUMENT (bad input,
// "file:line:column: reason").
absl::StatusOr<PredictSummary> RunPredict(const PredictOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_EMBEDDED_PREDICT_H_
