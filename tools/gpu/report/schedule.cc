#include "tools/gpu/report/schedule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace strata::gpu_check {
namespace {

PartResult Skipped(std::string reason) {
  PartResult result;
  result.state = PartState::kSkipped;
  result.reason = std::move(reason);
  return result;
}

}  // namespace

double LimitOf(const std::vector<PlannedPart>& parts, size_t index, double left_seconds) {
  const PlannedPart& part = parts[index];
  if (left_seconds < part.least_seconds) return 0;
  double later = 0;
  for (size_t i = index + 1; i < parts.size(); ++i) {
    if (parts[i].missing.empty()) later += parts[i].least_seconds;
  }
  return std::min(part.most_seconds, std::max(part.least_seconds, left_seconds - later));
}

Report RunParts(const std::vector<PlannedPart>& parts, double budget_seconds,
                const std::function<double()>& clock,
                const std::function<absl::Status(const Report&)>& done) {
  Report report;
  report.budget_seconds = budget_seconds;
  const double start = clock();
  std::string stopped;  // why nothing runs any more; "": it does
  bool stopped_for_time = false;
  for (size_t i = 0; i < parts.size(); ++i) {
    const PlannedPart& part = parts[i];
    const double begin = clock();
    const double left = budget_seconds - (begin - start);
    const double limit = LimitOf(parts, i, left);
    PartResult result;
    bool ran = false;
    if (!stopped.empty()) {
      result = Skipped(stopped);
      result.no_time = stopped_for_time;
    } else if (!part.missing.empty()) {
      result = Skipped(part.missing);
    } else if (limit <= 0) {
      result = Skipped(absl::StrFormat("no time: %.1f of %.1f s are left, it wants %.0f s",
                                       std::max(left, 0.0), budget_seconds, part.least_seconds));
      result.no_time = true;
    } else {
      result = part.run(limit);
      ran = true;
    }
    result.name = part.name;
    result.seconds = clock() - begin;
    if (part.all_need_it && stopped.empty() && result.state != PartState::kPassed) {
      stopped_for_time = result.no_time;
      stopped = absl::StrCat(stopped_for_time ? "no time: " : "", "without ", part.name, ", which ",
                             result.state == PartState::kFailed ? "failed" : "was skipped");
      report.device_found = !ran || result.state == PartState::kFailed;
    }
    report.proven |= !part.all_need_it && result.state == PartState::kPassed;
    report.parts.push_back(std::move(result));
    report.finished = i + 1 == parts.size();
    if (!done(report).ok()) break;
  }
  return report;
}

}  // namespace strata::gpu_check
