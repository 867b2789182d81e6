#include "worker/data/reading/held_out.h"

#include <cmath>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/job/fields/label_spec.h"
#include "proto/job/fields/task_spec.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

// Read at a time.
constexpr BatchLimit kMost = {.lines = 4096, .features = 1 << 20};

// What good lines of a weight above 0 have of the first label.
struct FirstLabel {
  uint64_t labels = 0;
  uint64_t ones = 0;  // of a binary label

  void Add(const Batch& batch) {
    for (uint32_t i = 0; i < batch.size; ++i) {
      const float label = batch.labels[size_t{i} * batch.tasks];
      if (std::isnan(label) || (!batch.weights.empty() && batch.weights[i] == 0)) continue;
      ++labels;
      if (label > 0.5f) ++ones;
    }
  }
};

absl::Status CheckBadLines(const JobSpec& spec, const HeldOutLines& held_out) {
  const uint64_t most = spec.data().max_bad_lines();
  if (held_out.bad_lines <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "spec.data.eval: more than ", most, " bad lines; the first is ", held_out.first_bad_line,
      " (mend such lines, or raise spec.data.maxBadLines, which holds for the held-out lines as "
      "well)"));
}

absl::Status CheckPatience(const JobSpec& spec, const FirstLabel& first) {
  if (spec.evaluation().patience() == 0) return absl::OkStatus();
  const TaskSpec task = TasksOf(spec)[0];
  const bool defined =
      task.binary() ? first.ones > 0 && first.ones < first.labels : first.labels > 0;
  if (defined) return absl::OkStatus();
  const std::string why =
      first.labels == 0
          ? std::string(spec.sample_weight().empty() ? "no line has that label"
                                                     : "no line of a weight above 0 has that label")
          : absl::StrCat("all ", first.labels, " labels are ", first.ones == 0 ? 0 : 1);
  return absl::InvalidArgumentError(absl::StrCat(
      "spec.evaluation.patience: it goes by the ", task.binary() ? "AUC" : "loss", " of label ",
      task.name, ", which is not defined on the lines of spec.data.eval: ", why,
      "; give held-out lines ", task.binary() ? "of both classes" : "that have it",
      ", or remove patience"));
}

}  // namespace

absl::StatusOr<HeldOutLines> CheckHeldOut(const JobSpec& spec, uint64_t lines, BatchSource* source,
                                          const Cancelled& cancelled) {
  HeldOutLines held_out;
  FirstLabel first;
  Batch batch;
  for (uint64_t line = 0; line < lines;) {
    if (cancelled && cancelled()) return absl::CancelledError("the job is not wanted any more");
    const absl::StatusOr<uint64_t> read = source->ReadLines(line, kMost, &batch);
    if (!read.ok()) return read.status();
    if (*read == 0) break;
    line += *read;
    held_out.bad_lines += batch.bad_lines;
    held_out.first_bad_line = source->first_bad_line();
    if (absl::Status s = CheckBadLines(spec, held_out); !s.ok()) return s;
    first.Add(batch);
  }
  if (absl::Status s = CheckPatience(spec, first); !s.ok()) return s;
  return held_out;
}

}  // namespace strata
