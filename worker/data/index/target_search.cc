#include "worker/data/index/target_search.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/job/fields/label_spec.h"

namespace strata {

TargetSearch::TargetSearch(const JobSpec& spec, Labels labels)
    : tasks_(TasksOf(spec)),
      weight_column_(spec.sample_weight()),
      // Of other formats, and of the short form, a line without its label is bad.
      labels_(labels == Labels::kRequired && spec.data().format() == "csv" &&
              !spec.labels().empty()),
      found_(labels_                  ? tasks_.size()
             : weight_column_.empty() ? 0
                                      : 1),
      missing_(found_.size()) {}

void TargetSearch::Add(const LineParser& parser, absl::string_view line, absl::string_view file,
                       uint64_t number) {
  parser.Start(&batch_);
  LineError error;
  const LineOutcome outcome = parser.Parse(line, &batch_, &error);
  if (outcome == LineOutcome::kBad && first_bad_.empty()) {
    first_bad_ = absl::StrCat(file, ":", number, ":", error.column, ": ", error.reason);
  }
  if (outcome != LineOutcome::kExample) return;
  have_good_ = true;
  if (!batch_.weights.empty() && batch_.weights[0] == 0) return;
  have_weight_ = true;
  for (size_t t = 0; t < found_.size(); ++t) {
    const bool has = !labels_ || batch_.labels[t] == batch_.labels[t];
    if (!has || found_[t]) continue;
    found_[t] = true;
    --missing_;
  }
}

absl::Status TargetSearch::Check(absl::string_view files) const {
  if (!wanted()) return absl::OkStatus();
  if (!have_good_ && !first_bad_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(files, ": no line is good; the first bad one is ", first_bad_));
  }
  const std::string bad =
      first_bad_.empty() ? "" : absl::StrCat("; the first bad line is ", first_bad_);
  if (!have_weight_ && !weight_column_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        files, ": column ", weight_column_,
        " gives no good line a weight above 0; mend it, or remove spec.sampleWeight", bad));
  }
  std::vector<std::string> names, columns;
  for (size_t t = 0; t < tasks_.size(); ++t) {
    if (found_[t]) continue;
    names.push_back(tasks_[t].name);
    columns.push_back(tasks_[t].column);
  }
  const bool all = missing_ == tasks_.size();
  return absl::InvalidArgumentError(absl::StrCat(
      files, ": no good line", weight_column_.empty() ? "" : " of a weight above 0", " has ",
      all ? "a label" : absl::StrCat("label ", absl::StrJoin(names, " or ")), " (",
      missing_ == 1 ? "column " : "columns ", absl::StrJoin(columns, ", "), ")",
      all ? "; mend them"
          : ", so there is nothing to learn for it; mend them, or remove it from spec.labels",
      bad));
}

}  // namespace strata
