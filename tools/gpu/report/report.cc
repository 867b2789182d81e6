#include "tools/gpu/report/report.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace strata::gpu_check {
namespace {

using Json = nlohmann::ordered_json;

Json JsonOf(const PartResult& part) {
  Json json;
  json["name"] = part.name;
  json["state"] = StateName(part.state);
  json["reason"] = part.reason;
  json["no_time"] = part.no_time;
  json["seconds"] = part.seconds;
  json["cases"] = {{"passed", part.cases.passed},
                   {"failed", part.cases.failed},
                   {"skipped", part.cases.skipped}};
  json["facts"] = Json::object();
  for (const auto& [name, value] : part.facts) json["facts"][name] = value;
  json["lines"] = Json::array();
  for (const BarLine& line : part.lines) {
    Json of_line = Json::parse(BarLineJson(line));
    of_line["of_copy"] = OfCopy(line);
    of_line["of_probe"] = OfProbe(line);
    of_line["missed"] = MissedBars(line);
    json["lines"].push_back(std::move(of_line));
  }
  return json;
}

}  // namespace

const char* StateName(PartState state) {
  switch (state) {
    case PartState::kPassed:
      return "passed";
    case PartState::kFailed:
      return "failed";
    case PartState::kSkipped:
      return "skipped";
  }
  return "?";
}

int ExitCodeOf(const Report& report) {
  if (!report.device_found) return 77;
  for (const PartResult& part : report.parts) {
    if (part.state == PartState::kFailed) return 1;
  }
  return report.proven ? 0 : 3;
}

std::string ReportJson(const Report& report) {
  Json json;
  json["budget_seconds"] = report.budget_seconds;
  json["device_found"] = report.device_found;
  json["finished"] = report.finished;
  json["proven"] = report.proven;
  json["exit_code"] = ExitCodeOf(report);
  json["parts"] = Json::array();
  for (const PartResult& part : report.parts) json["parts"].push_back(JsonOf(part));
  // Output of programs may hold anything.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::Status WriteReport(const Report& report, const std::string& path) {
  const std::string next = path + ".new";
  std::FILE* const file = std::fopen(next.c_str(), "w");
  int error = file == nullptr ? errno : 0;
  if (file != nullptr) {
    const std::string json = ReportJson(report);
    if (std::fwrite(json.data(), 1, json.size(), file) != json.size()) error = errno;
    if (std::fclose(file) != 0 && error == 0) error = errno;
  }
  if (error == 0 && std::rename(next.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return absl::OkStatus();
  if (file != nullptr) unlink(next.c_str());  // what it takes of a full disk helps nobody
  return absl::InternalError(absl::StrCat(path, ": ", std::strerror(error)));
}

}  // namespace strata::gpu_check
