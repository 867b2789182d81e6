// Whether there is a line to learn from: of each label that a line may leave out, and where lines
// have weights, of one that weighs something.
//
//   TargetSearch search(spec, Labels::kRequired);
//   while (search.wanted() && Next(&batch)) search.Add(batch);
//   return search.Check(FilesForMessages(index), TargetSearch::Remedy::kJob);
//
// Tested by tests/worker/data/index/index_test.cc
// Tested by tests/e2e/daily_test.cc
#ifndef STRATA_WORKER_DATA_INDEX_TARGET_SEARCH_H_
#define STRATA_WORKER_DATA_INDEX_TARGET_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/job/fields/task_spec.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "worker/data/formats/line_parser.h"
#include "worker/step/batch.h"

namespace strata {

// "input file FIRST and those after it".
std::string FilesForMessages(const InputIndex& index);

class TargetSearch {
 public:
  // `labels`: each must be found; without, a weight alone.
  TargetSearch(const JobSpec& spec, Labels labels);

  // False from the line on at which all was found, and where there is nothing to look for.
  bool wanted() const { return missing_ > 0; }
  // Looks at line `number` of `file`. REQUIRES: wanted().
  void Add(const LineParser& parser, absl::string_view line, absl::string_view file,
           uint64_t number);
  // Looks at good lines.
  void Add(const Batch& batch);
  // A bad line, as "FILE:LINE:COLUMN: reason"; empty: none.
  void AddBad(const std::string& line);

  // What there is to do but to mend the lines.
  enum class Remedy : uint8_t {
    kJob,    // another job
    kFiles,  // another time: what a run has read no later one reads
  };
  // INVALID_ARGUMENT: what no line has that was added. `files`: FilesForMessages of where they are
  // from.
  absl::Status Check(absl::string_view files, Remedy remedy) const;

 private:
  const std::vector<TaskSpec> tasks_;
  const std::string weight_column_;  // empty: lines have no weights
  const bool labels_;
  std::vector<bool> found_;   // by task; without labels one
  size_t missing_ = 0;        // in found_
  bool have_good_ = false;    // a good line
  bool have_weight_ = false;  // one that weighs something
  std::string first_bad_;     // "FILE:LINE:COLUMN: reason"
  Batch batch_;
};

}  // namespace strata

#endif  // STRATA_WORKER_DATA_INDEX_TARGET_SEARCH_H_
