#include "worker/eval/metrics_text.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "proto/job/evaluation_result.h"

namespace strata {
namespace {

// As text of JSON, in quotes.
std::string Quoted(const std::string& text) {
  google::protobuf::Value value;
  value.set_string_value(text);
  std::string json;
  // Fails for what is not UTF-8, which a message cannot bring here.
  const auto s = google::protobuf::util::MessageToJsonString(value, &json);
  return s.ok() ? json : "\"\"";
}

// The shortest text that is read as the same number.
std::string ExactText(std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return "null";
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), *value).ptr);
}

}  // namespace

std::string NumberText(std::optional<double> value, int digits) {
  return value && std::isfinite(*value) ? absl::StrFormat("%.*f", digits, *value) : "null";
}

std::string EvaluationMembers(const EvaluationResult& result) {
  std::string text = absl::StrCat(", \"evalAuc\": ", ExactText(AucOf(result)),
                                  ", \"evalLogloss\": ", ExactText(LossOf(result)));
  if (result.tasks().empty()) return text;
  absl::StrAppend(&text, ", \"evalTasks\": {");
  for (const TaskResult& task : result.tasks()) {
    absl::StrAppend(&text, &task == &result.tasks(0) ? "" : ", ", Quoted(task.label()),
                    ": {\"examples\": ", task.examples());
    const auto add = [&text](const char* name, bool is, double value) {
      if (is) absl::StrAppend(&text, ", \"", name, "\": ", ExactText(value));
    };
    add("loss", task.has_loss(), task.loss());
    add("auc", task.has_auc(), task.auc());
    add("logloss", task.has_logloss(), task.logloss());
    add("ne", task.has_normalised_entropy(), task.normalised_entropy());
    add("calibration", task.has_calibration(), task.calibration());
    add("gauc", task.has_gauc(), task.gauc());
    add("mse", task.has_mse(), task.mse());
    add("mae", task.has_mae(), task.mae());
    text.push_back('}');
  }
  text.push_back('}');
  return text;
}

}  // namespace strata
