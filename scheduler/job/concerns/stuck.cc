#include "scheduler/job/concerns/stuck.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace strata::scheduler {

std::optional<Concern> StuckWatch::Look(const JobView& job, const StuckFacts& facts,
                                        absl::Time now) {
  bool evaluates = false;
  for (const JobView::Worker& worker : job.workers) evaluates |= worker.last->evaluating();
  if (!since_ || progress_ != facts.progress || evaluates || generation_ != facts.generation) {
    progress_ = facts.progress;
    generation_ = facts.generation;
    since_ = now;
    return std::nullopt;
  }
  const absl::Duration stands = now - *since_;
  if (stands < kStuckAfter || facts.finished) return std::nullopt;
  uint64_t first = 0, last = 0;
  std::vector<std::string> behind, steps;
  for (const JobView::Worker& worker : job.workers) {
    const uint64_t step = worker.last->step();
    if (!job.bsp || worker.name.empty() || step == 0) continue;
    if (first == 0 || step < first) behind.clear();
    first = first == 0 ? step : std::min(first, step);
    last = std::max(last, step);
    if (step == first) behind.push_back(NameOf(WORKER, worker.name));
    steps.push_back(absl::StrCat(worker.name, " is at step ", step));
  }
  if (first == last) behind.clear();
  for (const JobView::Server& server : job.servers) {
    if (!job.bsp) break;
    if (behind.empty() && server.last->min_clock() < facts.max_clock) {
      behind.push_back(NameOf(SERVER, server.name));
    }
    steps.push_back(absl::StrCat(server.name, " has committed ", server.last->min_clock()));
  }
  Concern c;
  c.set_reason("NoProgress");
  c.set_who(behind.empty() ? "job" : absl::StrJoin(behind, ", "));
  c.set_since_unix_ms(absl::ToUnixMillis(*since_));
  const bool worker = std::any_of(job.workers.begin(), job.workers.end(),
                                  [](const JobView::Worker& w) { return !w.name.empty(); });
  c.set_known_by(
      absl::StrFormat("nothing was committed for %.0f s", absl::ToDoubleSeconds(stands)) +
      absl::StrCat(worker ? "" : "; the job has no worker", steps.empty() ? "" : "; ",
                   absl::StrJoin(steps, ", ")));
  c.set_remedy(!worker          ? "start strata-worker; see why the one before has ended"
               : behind.empty() ? "look at the other lines, and at the logs of its workers"
                                : "all wait for it; look at its log and its machine");
  return c;
}

}  // namespace strata::scheduler
