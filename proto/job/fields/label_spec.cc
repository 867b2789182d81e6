#include "proto/job/fields/label_spec.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/job/checks/shown.h"
#include "proto/job/checks/spec_checks.h"

namespace strata {
namespace {

constexpr int kMostLabels = 64;
constexpr float kMostTaskWeight = 1e6f;
constexpr float kMostCount = 16777216;  // 2^24: no line of a count has more (job.proto)
// Beyond it the square of a difference is no finite number.
constexpr float kMostMean = 1e18f;
// Lines of a step of the greatest weight whose sum, in units, fits 64 bits.
constexpr uint64_t kMostWeightedLines = uint64_t{1} << 23;

LabelKind KindOf(absl::string_view kind) {
  if (kind == "real") return LabelKind::kReal;
  return kind == "count" ? LabelKind::kCount : LabelKind::kBinary;
}

TaskLoss LossOf(absl::string_view loss) {
  if (loss == "squared") return TaskLoss::kSquared;
  if (loss == "huber") return TaskLoss::kHuber;
  return loss == "poisson" ? TaskLoss::kPoisson : TaskLoss::kLogistic;
}

}  // namespace

std::vector<TaskSpec> TasksOf(const JobSpec& spec) {
  std::vector<TaskSpec> tasks;
  for (const LabelConfig& label : spec.labels()) {
    TaskSpec task;
    task.name = label.name();
    task.column = label.column();
    task.kind = KindOf(label.kind());
    task.loss = LossOf(label.loss());
    if (label.has_weight()) task.weight = label.weight();
    if (label.has_delta()) task.delta = label.delta();
    if (label.has_mean()) task.mean = label.mean();
    tasks.push_back(std::move(task));
  }
  if (tasks.empty()) {
    const std::string& column = spec.data().columns().label();
    tasks.emplace_back();
    tasks[0].name = column.empty() ? "label" : column;
    tasks[0].column = column;
  }
  return tasks;
}

MetricsPlan MetricsOf(const JobSpec& spec) {
  MetricsPlan plan;
  plan.given = !spec.evaluation().metrics().empty();
  plan.by_task = plan.given || !spec.labels().empty() || !spec.sample_weight().empty();
  for (absl::string_view metric : spec.evaluation().metrics()) {
    plan.auc |= metric == "auc";
    plan.logloss |= metric == "logloss";
    plan.ne |= metric == "ne";
    plan.calibration |= metric == "calibration";
    plan.mse |= metric == "mse";
    plan.mae |= metric == "mae";
    if (metric.substr(0, 5) == "gauc(") {
      plan.gauc_field = std::string(metric.substr(5, metric.size() - 6));
    }
  }
  return plan;
}

namespace spec {
namespace {

bool IsPosition(absl::string_view column) {
  uint32_t position;
  return absl::SimpleAtoi(column, &position);
}

absl::Status CheckName(absl::string_view field, const std::string& name) {
  if (name.empty()) return Bad(field, "is missing; name the label");
  if (name.size() > 63) {
    return Bad(field, absl::StrCat("has ", name.size(), " characters; at most 63 are allowed"));
  }
  for (const char c : name) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-') continue;
    return Bad(field, absl::StrCat("'", name, "' may hold letters, digits, '_' and '-' only"));
  }
  return absl::OkStatus();
}

// What a sum of 0 predicts must be a prediction of the label's loss. Wants kind and loss resolved.
absl::Status CheckMean(const std::string& field, const LabelConfig& label) {
  if (!label.has_mean()) return absl::OkStatus();
  const float mean = label.mean();
  const auto refuse = [&](absl::string_view why) {
    return Bad(field, absl::StrCat(mean, " cannot be the mean of label '", label.name(), "', ", why,
                                   ", or remove it"));
  };
  if (!std::isfinite(mean)) {
    return refuse("as it is no finite number; give about the mean of the training lines");
  }
  if (label.kind() == "binary" && (mean <= 0.0f || mean >= 1.0f)) {
    return refuse("whose kind is binary; give a number above 0 and below 1, about the share of 1");
  }
  if (label.loss() == "poisson" && mean <= 0.0f) {
    return refuse(
        "whose loss is poisson; give a number above 0, about the mean of the training "
        "lines");
  }
  if (label.kind() == "count" && mean > kMostCount) {
    return refuse(absl::StrCat("whose kind is count; give a number of at most ",
                               ShownNumber(kMostCount),
                               ", the greatest count that a line may have"));
  }
  if (std::abs(mean) > kMostMean) {
    return refuse(absl::StrCat("as squares of its size are no finite numbers; give one between -",
                               ShownNumber(kMostMean), " and ", ShownNumber(kMostMean),
                               ", and scale the label"));
  }
  return absl::OkStatus();
}

// Kind, loss and their numbers.
absl::Status ResolveLoss(const std::string& at, LabelConfig& label) {
  if (label.kind().empty()) label.set_kind("binary");
  STRATA_RETURN_IF_BAD(CheckChoice(at + "kind", label.kind(), {"binary", "real", "count"}));
  const bool binary = label.kind() == "binary", count = label.kind() == "count";
  if (label.loss().empty()) label.set_loss(binary ? "logloss" : count ? "poisson" : "squared");
  STRATA_RETURN_IF_BAD(
      CheckChoice(at + "loss", label.loss(), {"logloss", "squared", "poisson", "huber"}));
  const bool fits = binary                      ? label.loss() == "logloss"
                    : label.loss() == "poisson" ? count
                                                : label.loss() != "logloss";
  if (!fits) {
    return Bad(at + "loss", absl::StrCat("'", label.loss(), "' does not fit a label of kind ",
                                         label.kind(), "; give ",
                                         binary  ? "logloss"
                                         : count ? "poisson, squared or huber"
                                                 : "squared or huber",
                                         ", or another kind"));
  }
  if (!label.has_weight()) label.set_weight(1.0f);
  STRATA_RETURN_IF_BAD(
      CheckReal(at + "weight", label.weight(), 0.0f, Low::kNotAllowed, kMostTaskWeight));
  STRATA_RETURN_IF_BAD(CheckMean(at + "mean", label));
  if (label.loss() != "huber") {
    if (!label.has_delta()) return absl::OkStatus();
    return Bad(at + "delta", absl::StrCat("is for loss huber, and this label's is ", label.loss(),
                                          "; remove it"));
  }
  if (!label.has_delta()) label.set_delta(1.0f);
  return CheckReal(at + "delta", label.delta(), 0.0f, Low::kNotAllowed, kMostTaskWeight);
}

// Which columns have a use already, by name or position, and what that is.
std::map<std::string, std::string> UsedColumns(const JobSpec& job) {
  std::map<std::string, std::string> used;
  const ColumnsSpec& columns = job.data().columns();
  const auto add = [&used](absl::string_view list, const auto& names) {
    for (int i = 0; i < names.size(); ++i) {
      used.emplace(names[i], absl::StrCat("spec.data.columns.", list, "[", i, "]"));
    }
  };
  add("numeric", columns.numeric());
  add("categorical", columns.categorical());
  add("ignored", columns.ignored());
  used.erase("*");
  for (int i = 0; i < columns.multi_valued_size(); ++i) {
    used.emplace(columns.multi_valued(i).column(),
                 absl::StrCat("spec.data.columns.multiValued[", i, "]"));
  }
  for (int i = 0; i < job.fields_size(); ++i) {
    const FieldConfig& field = job.fields(i);
    used.emplace(field.column().empty() ? field.name() : field.column(),
                 absl::StrCat("spec.fields[", i, "]"));
  }
  return used;
}

absl::Status TakeColumn(const JobSpec& job, const std::string& field, const std::string& column,
                        std::map<std::string, std::string>& used) {
  const ColumnsSpec& columns = job.data().columns();
  if (columns.has_header() && !columns.header() && !IsPosition(column)) {
    return Bad(field, absl::StrCat("'", column,
                                   "' is not a position; without a header columns are "
                                   "numbered from 0"));
  }
  const auto [at, fresh] = used.emplace(column, field);
  if (fresh) return absl::OkStatus();
  return Bad(field, absl::StrCat("column '", column, "' is ", at->second,
                                 " too; a column has one use: remove one of them"));
}

absl::Status CheckFormat(const JobSpec& job) {
  const std::string& format = job.data().format();
  const bool both = !job.labels().empty() && !job.data().columns().label().empty();
  if (both) {
    return Bad("spec.data.columns.label",
               "is the short form of spec.labels, and the job has both; remove one of them");
  }
  if (format == "csv") {
    if (!job.labels().empty() || !job.data().columns().label().empty()) return absl::OkStatus();
    return Bad("spec.data.columns.label", "is missing; name the label's column");
  }
  if (!job.sample_weight().empty()) {
    return Bad("spec.sampleWeight", absl::StrCat("names a column of format csv, and the format is ",
                                                 format, "; remove it, or give the data as csv"));
  }
  if (job.labels_size() > 1) {
    return Bad("spec.labels[1]", absl::StrCat("a line of format ", format,
                                              " has one label; give the data as csv for more"));
  }
  if (job.labels_size() == 0) return absl::OkStatus();
  if (!job.labels(0).column().empty()) {
    return Bad("spec.labels[0].column",
               absl::StrCat("is for format csv, and the format is ", format, "; remove it"));
  }
  if (!job.labels(0).kind().empty() && job.labels(0).kind() != "binary") {
    return Bad("spec.labels[0].kind",
               absl::StrCat("'", job.labels(0).kind(), "' is for format csv: the label of format ",
                            format, " is binary; give the data as csv"));
  }
  return absl::OkStatus();
}

// Of metric gauc(FIELD).
absl::Status CheckGaucField(const JobSpec& job, const std::string& at, const std::string& field) {
  const auto unknown = [&](absl::string_view what) {
    return Bad(at, absl::StrCat("'", field, "' ", what));
  };
  for (const FieldConfig& f : job.fields()) {
    if (f.name() != field) continue;
    // Of libffm all are of several values: a line is in the group of its first one.
    const bool libffm = job.data().format() == "libffm";
    if (f.kind() == (libffm ? "multiValued" : "categorical")) return absl::OkStatus();
    return unknown(absl::StrCat("is a ", f.kind(), " field; name a categorical one"));
  }
  if (!job.fields().empty())
    return unknown("is none of spec.fields; name a categorical one of them");
  if (job.data().format() == "csv") {
    for (const std::string& column : job.data().columns().categorical()) {
      if (column == field) return absl::OkStatus();
    }
    return unknown("is none of spec.data.columns.categorical; name one of them");
  }
  int number = 0;
  if (job.data().format().substr(0, 6) == "criteo") {
    const bool category = field.substr(0, 1) == "C" && absl::SimpleAtoi(field.substr(1), &number) &&
                          number >= 1 && number <= 26;
    return category ? absl::OkStatus() : unknown("is no field of the data; they have C1 to C26");
  }
  return unknown(
      absl::StrCat("has no meaning with format ", job.data().format(), ", whose fields have none"));
}

}  // namespace

absl::Status ResolveLabels(JobSpec& job) {
  STRATA_RETURN_IF_BAD(CheckFormat(job));
  STRATA_RETURN_IF_BAD(CheckRange("spec.labels (labels)", job.labels_size(), 0, kMostLabels));
  std::map<std::string, std::string> used = UsedColumns(job);
  if (!job.data().columns().label().empty()) {
    used.emplace(job.data().columns().label(), "spec.data.columns.label");
  }
  std::set<std::string> names;
  for (int i = 0; i < job.labels_size(); ++i) {
    LabelConfig& label = *job.mutable_labels(i);
    const std::string at = absl::StrCat("spec.labels[", i, "].");
    STRATA_RETURN_IF_BAD(CheckName(at + "name", label.name()));
    if (!names.insert(label.name()).second) {
      return Bad(at + "name",
                 absl::StrCat("'", label.name(), "' is named twice; give each label its own name"));
    }
    STRATA_RETURN_IF_BAD(ResolveLoss(at, label));
    if (job.data().format() != "csv") continue;
    if (label.column().empty()) label.set_column(label.name());
    STRATA_RETURN_IF_BAD(TakeColumn(job, at + "column", label.column(), used));
  }
  if (job.sample_weight().empty()) return absl::OkStatus();
  const uint64_t lines = uint64_t{job.training().lanes()} * job.training().batch_size();
  if (lines > kMostWeightedLines) {
    return Bad("spec.sampleWeight",
               absl::StrCat("a step has spec.training.lanes x batchSize = ", lines,
                            " lines; with weights at most ", kMostWeightedLines, " are supported"));
  }
  return TakeColumn(job, "spec.sampleWeight", job.sample_weight(), used);
}

absl::Status CheckMetrics(const JobSpec& job) {
  bool binary = job.labels().empty();
  for (const LabelConfig& label : job.labels()) binary |= label.kind() == "binary";
  std::set<std::string> seen;
  for (int i = 0; i < job.evaluation().metrics_size(); ++i) {
    const std::string& metric = job.evaluation().metrics(i);
    const std::string at = absl::StrCat("spec.evaluation.metrics[", i, "]");
    const bool gauc = metric.size() > 6 && metric.substr(0, 5) == "gauc(" && metric.back() == ')';
    if (gauc) {
      STRATA_RETURN_IF_BAD(CheckGaucField(job, at, metric.substr(5, metric.size() - 6)));
    } else {
      STRATA_RETURN_IF_BAD(CheckChoice(
          at, metric, {"auc", "logloss", "ne", "calibration", "gauc(FIELD)", "mse", "mae"}));
      if (metric == "gauc(FIELD)") return Bad(at, "names no field; put one in FIELD's place");
    }
    if (!seen.insert(gauc ? "gauc" : metric).second) {
      return Bad(at, absl::StrCat("'", metric, "' is the second of its kind; remove one"));
    }
    const bool of_binary = gauc || metric == "auc" || metric == "logloss" || metric == "ne";
    if (of_binary && !binary) {
      return Bad(at, absl::StrCat("'", metric,
                                  "' is for binary labels, and the job has none; "
                                  "remove it, or give mse or mae"));
    }
  }
  return absl::OkStatus();
}

}  // namespace spec
}  // namespace strata
