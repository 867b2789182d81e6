#include "tools/gpu/report/bar_line.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace strata::gpu_check {
namespace {

using Json = nlohmann::ordered_json;

struct TextField {
  const char* name;
  std::string BarLine::*field;
};
struct NumberField {
  const char* name;
  double BarLine::*field;
};
constexpr TextField kTexts[] = {
    {"bar", &BarLine::bar},   {"name", &BarLine::name},
    {"path", &BarLine::path}, {"operation", &BarLine::operation},
    {"note", &BarLine::note},
};
constexpr NumberField kNumbers[] = {
    {"bytes", &BarLine::bytes},
    {"operations", &BarLine::operations},
    {"ms", &BarLine::ms},
    {"probe_ms", &BarLine::probe_ms},
    {"reference_ms", &BarLine::reference_ms},
    {"copy_bytes_per_s", &BarLine::copy_bytes_per_s},
    {"least_of_copy", &BarLine::least_of_copy},
    {"least_of_probe", &BarLine::least_of_probe},
    {"most_ms", &BarLine::most_ms},
    {"most_change", &BarLine::most_change},
};

}  // namespace

double OfCopy(const BarLine& line) {
  if (line.ms <= 0 || line.copy_bytes_per_s <= 0) return 0;
  return line.bytes / (line.ms * 1e-3) / line.copy_bytes_per_s;
}

double OfProbe(const BarLine& line) { return line.ms <= 0 ? 0 : line.probe_ms / line.ms; }

double ChangeOf(const BarLine& line) {
  if (line.ms <= 0 || line.reference_ms <= 0) return 1;
  return std::abs(line.ms / line.reference_ms - 1);
}

std::vector<std::string> MissedBars(const BarLine& line) {
  std::vector<std::string> missed;
  if (OfCopy(line) < line.least_of_copy) {
    missed.push_back(absl::StrFormat("%.1f %% of copy, wanted %.0f %%", 100 * OfCopy(line),
                                     100 * line.least_of_copy));
  }
  if (OfProbe(line) < line.least_of_probe) {
    missed.push_back(absl::StrFormat("%.1f %% of the probe, wanted %.0f %%", 100 * OfProbe(line),
                                     100 * line.least_of_probe));
  }
  if (line.most_ms > 0 && (line.ms <= 0 || line.ms > line.most_ms)) {
    missed.push_back(absl::StrFormat("%.3f ms, wanted %.3f ms", line.ms, line.most_ms));
  }
  if (line.most_change > 0 && ChangeOf(line) >= line.most_change) {
    missed.push_back(absl::StrFormat("%.4f ms against %.4f ms, wanted less than %.0f %% apart",
                                     line.ms, line.reference_ms, 100 * line.most_change));
  }
  return missed;
}

std::string BarLineJson(const BarLine& line) {
  Json json;
  for (const TextField& text : kTexts) json[text.name] = line.*text.field;
  for (const NumberField& number : kNumbers) json[number.name] = line.*number.field;
  return json.dump();
}

absl::StatusOr<BarLine> ParseBarLine(absl::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return absl::InvalidArgumentError("a bar's line is no JSON object");
  BarLine line;
  for (const TextField& field : kTexts) {
    const auto found = json.find(field.name);
    if (found == json.end() || !found->is_string()) {
      return absl::InvalidArgumentError(absl::StrCat("a bar's line lacks the text ", field.name));
    }
    line.*field.field = found->get<std::string>();
  }
  for (const NumberField& field : kNumbers) {
    const auto found = json.find(field.name);
    if (found == json.end() || !found->is_number()) {
      return absl::InvalidArgumentError(absl::StrCat("a bar's line lacks the number ", field.name));
    }
    line.*field.field = found->get<double>();
  }
  return line;
}

}  // namespace strata::gpu_check
