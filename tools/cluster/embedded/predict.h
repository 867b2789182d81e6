// Predictions of a checkpoint's model, without a cluster.
// Tested by tests/e2e/predict_test.cc
// Tested by tests/e2e/job_features_test.cc
// Tested by tests/e2e/float_state_test.cc
#ifndef STRATA_TOOLS_CLUSTER_EMBEDDED_PREDICT_H_
#define STRATA_TOOLS_CLUSTER_EMBEDDED_PREDICT_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/strata/job.pb.h"

namespace strata {

// Labels and scores that are kept for the quality: 32 MiB, and as much of weights and groups.
inline constexpr uint64_t kMostMeasured = uint64_t{1} << 22;

struct PredictOptions {
  std::string checkpoint_dir;       // one checkpoint's folder, or a folder of them: the newest
  std::vector<std::string> inputs;  // files, in order; one may be "-", standard input
  std::string format_override;      // spec.data.format of the job when empty
  // "FIELD=FILE": another vocabulary file of a field, as where the job's is elsewhere now.
  std::vector<std::string> vocabularies;
  // File of "label,score" per line, with several labels as spec.output.predictions; it appears
  // whole; a link stays, and what it leads to is replaced. "-" is standard output; what /dev/stdout
  // and the like stand for is written to, while lines are read.
  std::string output;
  bool scores_only = false;  // no labels
  bool header = false;       // begin with a line that names the columns
  // Lines to leave out, without a line in the output; none: spec.data.maxBadLines of the job.
  std::optional<uint64_t> max_bad_lines;
  // Hard limit of the rows and index in memory, the rest lies on SSD under $TMPDIR; empty:
  // spec.storage.dramBytesPerServer of the job; "0": none.
  std::string dram_bytes;
  uint64_t most_measured = kMostMeasured;        // labels
  const std::atomic<bool>* cancelled = nullptr;  // may be null
};

struct PredictSummary {
  uint64_t lines = 0;      // scored
  uint64_t bad_lines = 0;  // left out
  uint64_t labelled = 0;   // of `lines`, those with a label
  // By the labels of the first `measured` lines, at most most_measured / labels.
  EvaluationResult result;
  uint64_t measured = 0;
  uint64_t measured_labelled = 0;  // of those, lines with a label
  uint64_t step = 0;
  std::string checkpoint;    // the folder that was used
  bool to_device = false;    // the scores went to standard output, a device or a pipe
  bool reader_left = false;  // nobody reads that pipe any more: what came after was not scored
};

// Lines are scored in the batches in which they come, at most ScoredAtATime
// (worker/models/model_memory.h); nobody waits for a batch to become full. Memory: rows up to the
// limit, a batch of lines, and what the quality takes; it does not grow with the lines. Lines need
// no label: see `strata predict --help`. What a line scores is what the job's own evaluation on
// the CPU gives it, to the bit, whatever lines it is scored with; that of a GPU rounds products in
// its own way. Vocabularies must begin with the values that the model knows; values behind them
// are out of the vocabulary. SIGPIPE must be ignored for reader_left. Errors: NOT_FOUND (no
// complete checkpoint there), DATA_LOSS (damaged: names the file and the newest whole checkpoint
// beside it; never falls back to that by itself, whose scores would pass for the newer model's),
// INVALID_ARGUMENT (bad input, "file:line:column: reason"; columns that are not there),
// FAILED_PRECONDITION (a vocabulary of other values), RESOURCE_EXHAUSTED (no room for rows beyond
// the limit), CANCELLED.
absl::StatusOr<PredictSummary> RunPredict(const PredictOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_EMBEDDED_PREDICT_H_
