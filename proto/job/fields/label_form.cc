#include "proto/job/fields/label_form.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/job/checks/shown.h"
#include "proto/job/checks/spec_checks.h"
#include "proto/job/fields/label_spec.h"

namespace strata::spec {
namespace {

constexpr size_t kMostBytes = 63;
constexpr char kNoName[] = "label";

bool MayBeName(absl::string_view column) {
  return !column.empty() && column.size() <= kMostBytes &&
         std::all_of(column.begin(), column.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
         });
}

// What a job calls its one label without spec.labels.
std::string NameWithoutLabels(const JobSpec& job) { return TasksOf(job)[0].name; }

absl::Status OnlyOfLabels(absl::string_view option, const LabelConfig& label,
                          absl::string_view what) {
  return Bad(absl::StrCat("spec.labels[0].", option),
             absl::StrCat("label '", label.name(), "' ", what, ", which spec.data cannot say"));
}

absl::Status CheckPlain(const LabelConfig& label) {
  if (label.kind() != "binary") {
    return OnlyOfLabels("kind", label, absl::StrCat("is ", label.kind()));
  }
  if (label.loss() != "logloss") {
    return OnlyOfLabels("loss", label, absl::StrCat("has the loss ", label.loss()));
  }
  if (label.weight() != 1.0f) {
    return OnlyOfLabels("weight", label,
                        absl::StrCat("has a loss of weight ", ShownNumber(label.weight())));
  }
  if (!label.has_mean()) return absl::OkStatus();
  return OnlyOfLabels("mean", label, absl::StrCat("states the mean ", ShownNumber(label.mean())));
}

}  // namespace

void ToNamedLabel(JobSpec& job, std::vector<std::string>& notes) {
  if (!job.labels().empty()) return;
  const std::string called = NameWithoutLabels(job);
  LabelConfig& label = *job.add_labels();
  label.set_name(MayBeName(called) ? called : kNoName);
  if (label.name() != called) {
    notes.push_back(absl::StrCat("the label of column '", ShownText(called), "' is called '",
                                 label.name(), "' in spec.labels, in metrics and predictions too"));
  }
  if (job.data().format() != "csv") return;
  label.set_column(called);
  job.mutable_data()->mutable_columns()->clear_label();
  notes.push_back(absl::StrCat("in spec.labels a line whose label '", label.name(),
                               "' is empty says nothing of it, and is a good line; in "
                               "spec.data.columns.label it is a bad one"));
}

absl::Status ToUnnamedLabel(JobSpec& job, std::vector<std::string>& notes) {
  if (job.labels().empty()) return absl::OkStatus();
  if (job.labels_size() > 1) {
    return Bad("spec.labels[1]", absl::StrCat("label '", job.labels(1).name(),
                                              "' is a second one, which spec.data cannot say"));
  }
  const LabelConfig label = job.labels(0);
  STRATA_RETURN_IF_BAD(CheckPlain(label));
  job.clear_labels();
  const bool csv = job.data().format() == "csv";
  if (csv) job.mutable_data()->mutable_columns()->set_label(label.column());
  if (const std::string called = NameWithoutLabels(job); called != label.name()) {
    notes.push_back(absl::StrCat("label '", label.name(), "' is called '", ShownText(called),
                                 "' without spec.labels, in metrics and predictions too"));
  }
  if (!csv) return absl::OkStatus();
  notes.push_back(
      absl::StrCat("in spec.data.columns.label a line whose label '", ShownText(label.column()),
                   "' is empty is a bad one; in spec.labels it says nothing of it, and is a good "
                   "line"));
  return absl::OkStatus();
}

}  // namespace strata::spec
