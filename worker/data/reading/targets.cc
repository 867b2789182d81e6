#include "worker/data/reading/targets.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/data/files/text_files.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

// Read at a time.
constexpr BatchLimit kMost = {.lines = 1024, .features = 1 << 20};

// What good lines have that were seen so far.
struct Seen {
  bool weight = false;  // one has a weight above 0
  bool label = false;   // and one of these has a label

  void Add(const Batch& batch) {
    for (uint32_t i = 0; i < batch.size; ++i) {
      if (!batch.weights.empty() && !(batch.weights[i] > 0)) continue;
      weight = true;
      const float* const labels = batch.labels.data() + size_t{i} * batch.tasks;
      label |= std::any_of(labels, labels + batch.tasks, [](float l) { return !std::isnan(l); });
    }
  }
};

std::string Files(const InputIndex& index) {
  return absl::StrCat("input file ", NameForMessages(index.files(0).path()),
                      index.files_size() > 1 ? " and those after it" : "");
}

}  // namespace

absl::Status CheckTargets(const JobSpec& spec, const InputIndex& index, BatchSource* source,
                          const std::function<bool()>& cancelled) {
  const bool weighted = !spec.sample_weight().empty();
  if (index.files().empty() || (spec.labels().empty() && !weighted)) return absl::OkStatus();
  Seen seen;
  Batch batch;
  for (uint64_t line = 0; line < index.lines() && !seen.label;) {
    if (cancelled && cancelled()) return absl::CancelledError("training was stopped");
    const auto read = ReadIndexedLines(source, line, index.lines(), kMost, &batch);
    if (!read.ok()) return read.status();
    line += *read;
    seen.Add(batch);
  }
  if (seen.label) return absl::OkStatus();
  if (weighted && !seen.weight) {
    return absl::InvalidArgumentError(absl::StrCat(
        Files(index), ": column ", spec.sample_weight(),
        " gives no good line a weight above 0; mend it, or leave out what has nothing to learn"));
  }
  const std::string labels = absl::StrJoin(
      spec.labels(), ", ", [](std::string* out, const LabelConfig& l) { out->append(l.column()); });
  return absl::InvalidArgumentError(
      absl::StrCat(Files(index), ": no good line", weighted ? " of a weight above 0" : "",
                   " has a label (", spec.labels_size() == 1 ? "column " : "columns ", labels,
                   "); mend them, or leave out what has nothing to learn"));
}

}  // namespace strata
