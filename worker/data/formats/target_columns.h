// What a line is to predict, and its weight: the columns of spec.labels and spec.sampleWeight.
#ifndef STRATA_WORKER_DATA_FORMATS_TARGET_COLUMNS_H_
#define STRATA_WORKER_DATA_FORMATS_TARGET_COLUMNS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/job/fields/task_spec.h"
#include "proto/strata/job.pb.h"
#include "worker/data/formats/csv_columns.h"
#include "worker/data/formats/line_parser.h"

namespace strata {

// Of a job whose labels are resolved. Immutable.
class TargetColumns {
 public:
  // Without spec.labels: data.columns.label, which is empty on a good line where labels are
  // optional alone.
  TargetColumns(const JobSpec& spec, Labels labels);

  const std::vector<TaskSpec>& tasks() const { return tasks_; }
  bool weighted() const { return !weight_column_.empty(); }
  // Whether their columns need not be in the file.
  bool optional() const { return optional_; }
  const std::string& weight_column() const { return weight_column_; }
  // `missing`: of a column that a field reads. Without a header, a label that is not on lines to
  // score moves what comes behind it: says so where that may be it. Of checkpoints of before, which
  // do not say how many columns there are.
  absl::Status WithRemedy(const absl::Status& missing, const CsvColumns& columns) const;
  // The field of the job file that names a label's column, for messages.
  std::string Where(size_t task) const;

  // The label as a model takes it; no number where it is empty. Empty on success, else the reason.
  std::string ParseLabel(size_t task, absl::string_view text, float* label) const;
  // The weight, rounded to kWeightUnit; 1 where it is empty. Wrong where rounding changes it by
  // more than kMostRounding of itself.
  std::string ParseWeight(absl::string_view text, float* weight) const;

 private:
  std::vector<TaskSpec> tasks_;
  bool short_form_ = false;
  bool optional_ = false;
  std::string weight_column_;
};

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_TARGET_COLUMNS_H_
