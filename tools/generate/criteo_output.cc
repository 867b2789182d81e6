// GenerateCriteo: rows to a file.
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "ops/natural_log.h"
#include "tools/generate/auc_sample.h"
#include "tools/generate/criteo_generator.h"
#include "tools/generate/part_file.h"

namespace strata {
namespace {

constexpr size_t kWriteBytes = size_t{1} << 20;

}  // namespace

absl::StatusOr<CriteoGeneratorResult> GenerateCriteo(
    const CriteoGeneratorOptions& options, const std::string& path,
    const std::function<void(uint64_t rows_done)>& progress) {
  if (options.rows == 0) return absl::InvalidArgumentError("rows: 0; at least 1 is needed");
  if (options.first_row > UINT64_MAX - options.rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("first row: ", options.first_row, " leaves no room for ", options.rows,
                     " rows below ", UINT64_MAX, "; give a smaller one"));
  }
  absl::StatusOr<std::unique_ptr<CriteoGenerator>> generator = CriteoGenerator::Make(options);
  if (!generator.ok()) return generator.status();
  PartFile file(path);
  if (absl::Status s = file.Open(); !s.ok()) return s;
  CriteoGeneratorResult result;
  result.rows = options.rows;
  result.to_device = file.to_device();
  AucSample auc(kAucRows);
  double loss = 0;
  std::string text;
  text.reserve(kWriteBytes + 1024);
  for (uint64_t i = 0; i < options.rows; ++i) {
    const GeneratedRow row = (*generator)->AppendRow(options.first_row + i, &text);
    result.positives += row.label ? 1 : 0;
    loss -= ops::NaturalLog(row.label ? row.probability : 1.0 - row.probability);
    auc.Add(static_cast<float>(row.probability), row.label);
    if (text.size() < kWriteBytes && i + 1 < options.rows) continue;
    if (absl::Status s = file.Write(text); !s.ok()) return s;
    result.bytes += text.size();
    text.clear();
    if (progress) progress(i + 1);
  }
  if (absl::Status s = file.Finish(); !s.ok()) return s;
  result.auc_rows = auc.size();
  result.teacher_auc = auc.Auc();
  result.teacher_logloss = loss / static_cast<double>(options.rows);
  return result;
}

}  // namespace strata
