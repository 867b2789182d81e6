// Runs parts one after the other within a budget of time.
#ifndef STRATA_TOOLS_GPU_REPORT_SCHEDULE_H_
#define STRATA_TOOLS_GPU_REPORT_SCHEDULE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/gpu/report/report.h"

namespace strata::gpu_check {

struct PlannedPart {
  std::string name;
  std::string missing;  // why it cannot run here; "": it can
  double least_seconds = 0;
  double most_seconds = 0;
  // Unless it passes, nothing after it runs; that it skips itself means that there is no device.
  bool all_need_it = false;
  // Does it within `limit_seconds`; name and seconds of the result are filled in here.
  std::function<PartResult(double limit_seconds)> run;
};

// How long part `index` may take when `left_seconds` are left: at most its most_seconds, and so
// much less that each part after it that can run still has its least_seconds; but never less than
// its own least_seconds. 0: it is not begun, since not even those are left.
double LimitOf(const std::vector<PlannedPart>& parts, size_t index, double left_seconds);

// In order. `clock` tells seconds; `done` is called after each part with all results so far, the
// last time with `finished`; an error of it ends all, with the results so far. A part that does not
// run is skipped, with the reason: "no time: ..." where that is the budget.
Report RunParts(const std::vector<PlannedPart>& parts, double budget_seconds,
                const std::function<double()>& clock,
                const std::function<absl::Status(const Report&)>& done);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_REPORT_SCHEDULE_H_
