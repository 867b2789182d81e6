// What a line is to predict, and its weight: the columns of spec.labels and spec.sampleWeight.
// Tested by tests/worker/data/formats/parsers_test.cc
#ifndef STRATA_WORKER_DATA_FORMATS_TARGET_COLUMNS_H_
#define STRATA_WORKER_DATA_FORMATS_TARGET_COLUMNS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/job/task_spec.h"
#include "proto/strata/job.pb.h"

namespace strata {

// Of a job whose labels are resolved. Immutable.
class TargetColumns {
 public:
  // Without spec.labels: data.columns.label, which is never empty on a good line.
  explicit TargetColumns(const JobSpec& spec);

  const std::vector<TaskSpec>& tasks() const { return tasks_; }
  bool weighted() const { return !weight_column_.empty(); }
  const std::string& weight_column() const { return weight_column_; }
  // The field of the job file that names a label's column, for messages.
  std::string Where(size_t task) const;

  // The label as a model takes it; no number where it is empty. Empty on success, else the reason.
  std::string ParseLabel(size_t task, absl::string_view text, float* label) const;
  // The weight, rounded to kWeightUnit; 1 where it is empty.
  std::string ParseWeight(absl::string_view text, float* weight) const;

 private:
  std::vector<TaskSpec> tasks_;
  bool short_form_ = false;
  std::string weight_column_;
};

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_TARGET_COLUMNS_H_
