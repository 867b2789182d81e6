// Batches of lines to score, read once in order: as many as there are, as soon as they are there.
// Tested by tests/worker/data/reading/line_stream_test.cc
#ifndef STRATA_WORKER_DATA_READING_SCORED_LINES_H_
#define STRATA_WORKER_DATA_READING_SCORED_LINES_H_

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/files/text_files.h"
#include "worker/data/formats/line_parser.h"
#include "worker/data/formats/vocabulary.h"
#include "worker/data/index/vocabularies.h"
#include "worker/data/reading/line_stream.h"
#include "worker/step/batch.h"

namespace strata {

struct ScoredLinesOptions {
  JobSpec spec;
  DataShape shape;                 // of the train files
  std::vector<std::string> paths;  // in order; one may be "-"
  int standard_input = STDIN_FILENO;
  uint64_t max_bad_lines = 0;  // to leave out
  // What the model knows of vocabularies; `cancelled` is not looked at.
  VocabularyOptions vocabularies;
  Cancelled cancelled;
};

// Lines need no label (worker/data/formats/line_parser.h). One thread at a time.
class ScoredLines {
 public:
  // Finds every file of `paths` and the vocabularies. INVALID_ARGUMENT: the format gives other
  // numbers or fields than `shape` has. Others: of LoadVocabularies.
  static absl::StatusOr<std::unique_ptr<ScoredLines>> Make(ScoredLinesOptions options);

  // Waits for the first line, which may say what columns there are. Read does it where nobody did.
  // INVALID_ARGUMENT: columns that are not there.
  absl::Status Start();

  // Fills `batch` with at least one line, and with more, up to the limit, while those are there
  // without waiting for them. False: there is no further line. INVALID_ARGUMENT: more bad lines
  // than allowed, the first as "file:line:column: reason"; others are those of LineStream.
  absl::StatusOr<bool> Read(const BatchLimit& most, Batch* batch);

  uint64_t bad_lines() const { return bad_lines_; }

 private:
  ScoredLines(ScoredLinesOptions options, Vocabularies vocabularies);
  absl::Status Parse(const LineStream::Line& line, Batch* batch);

  const ScoredLinesOptions o_;
  const Vocabularies vocabularies_;
  LineStream lines_;
  std::unique_ptr<LineParser> parser_;  // null until Start
  uint64_t bad_lines_ = 0;
  std::string first_bad_line_;
};

}  // namespace strata

#endif  // STRATA_WORKER_DATA_READING_SCORED_LINES_H_
