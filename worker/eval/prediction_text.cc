#include "worker/eval/prediction_text.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace strata {
namespace {

void AppendNumber(float number, std::string* text) {
  if (std::isnan(number)) {  // the sign of one differs between processors
    text->append("nan");
    return;
  }
  char digits[32];
  const int n = std::snprintf(digits, sizeof(digits), "%.9g", static_cast<double>(number));
  text->append(digits, static_cast<size_t>(n));
}

void AppendLabel(const TaskSpec& task, float label, std::string* text) {
  if (std::isnan(label)) return;
  if (task.binary()) {
    text->push_back(label > 0.5f ? '1' : '0');
  } else {  // the shortest text of that float: as it was written, where it was not rounded
    char digits[32];
    text->append(digits, std::to_chars(digits, digits + sizeof(digits), label).ptr);
  }
}

// As csv readers take it for one column, whatever it holds.
std::string CsvName(absl::string_view name) {
  const bool plain = name.find_first_of(",\"\r\n") == name.npos;
  return plain ? std::string(name)
               : absl::StrCat("\"", absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"");
}

}  // namespace

void AppendPredictions(const std::vector<TaskSpec>& tasks, PredictionColumns columns,
                       const std::vector<float>& labels, const std::vector<float>& scores,
                       std::string* text) {
  for (size_t i = 0; i < scores.size(); i += tasks.size()) {
    for (size_t t = 0; columns == PredictionColumns::kLabelsAndScores && t < tasks.size(); ++t) {
      AppendLabel(tasks[t], labels[i + t], text);
      text->push_back(',');
    }
    for (size_t t = 0; t < tasks.size(); ++t) {
      AppendNumber(scores[i + t], text);
      text->push_back(t + 1 < tasks.size() ? ',' : '\n');
    }
  }
}

std::string PredictionHeader(const std::vector<TaskSpec>& tasks, PredictionColumns columns) {
  std::string text;
  if (columns == PredictionColumns::kLabelsAndScores) {
    for (const TaskSpec& task : tasks) absl::StrAppend(&text, CsvName(task.name), ",");
  }
  for (const TaskSpec& task : tasks) {
    absl::StrAppend(&text, CsvName(absl::StrCat(task.name, "_score")), ",");
  }
  text.back() = '\n';
  return text;
}

}  // namespace strata
