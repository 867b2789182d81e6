#include "worker/data/index/target_search.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/job/fields/label_spec.h"
#include "worker/data/files/text_files.h"

namespace strata {

std::string FilesForMessages(const InputIndex& index) {
  return absl::StrCat("input file ", NameForMessages(index.files(0).path()),
                      index.files_size() > 1 ? " and those after it" : "");
}

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
    AddBad(absl::StrCat(file, ":", number, ":", error.column, ": ", error.reason));
  }
  if (outcome == LineOutcome::kExample) Add(batch_);
}

void TargetSearch::AddBad(const std::string& line) {
  if (first_bad_.empty()) first_bad_ = line;
}

void TargetSearch::Add(const Batch& batch) {
  for (uint32_t i = 0; i < batch.size && wanted(); ++i) {
    have_good_ = true;
    if (!batch.weights.empty() && batch.weights[i] == 0) continue;
    have_weight_ = true;
    for (size_t t = 0; t < found_.size(); ++t) {
      const bool has = !labels_ || !std::isnan(batch.labels[size_t{i} * batch.tasks + t]);
      if (!has || found_[t]) continue;
      found_[t] = true;
      --missing_;
    }
  }
}

absl::Status TargetSearch::Check(absl::string_view files, Remedy remedy) const {
  if (!wanted()) return absl::OkStatus();
  const auto but = [&](absl::string_view other_job) {
    return absl::StrCat(", or ",
                        remedy == Remedy::kJob
                            ? other_job
                            : "resume later, when further files have it (a file is read by one run "
                              "alone)");
  };
  if (!have_good_ && !first_bad_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(files, ": no line is good; the first bad one is ", first_bad_));
  }
  const std::string bad =
      first_bad_.empty() ? "" : absl::StrCat("; the first bad line is ", first_bad_);
  if (!have_weight_ && !weight_column_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(files, ": column ", weight_column_,
                                                   " gives no good line a weight above 0; mend it",
                                                   but("remove spec.sampleWeight"), bad));
  }
  std::vector<std::string> names, columns;
  for (size_t t = 0; t < tasks_.size(); ++t) {
    if (found_[t]) continue;
    names.push_back(tasks_[t].name);
    columns.push_back(tasks_[t].column);
  }
  const bool all = missing_ == tasks_.size();
  return absl::InvalidArgumentError(
      absl::StrCat(files, ": no good line", weight_column_.empty() ? "" : " of a weight above 0",
                   " has ", all ? "a label" : absl::StrCat("label ", absl::StrJoin(names, " or ")),
                   " (", missing_ == 1 ? "column " : "columns ", absl::StrJoin(columns, ", "), ")",
                   all ? "" : ", so there is nothing to learn for it", "; mend them",
                   all && remedy == Remedy::kJob ? "" : but("remove it from spec.labels"), bad));
}

}  // namespace strata
