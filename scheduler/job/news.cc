#include "scheduler/job/news.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace strata::scheduler {

JobNews::JobNews(std::function<void(const std::string&)> log) : log_(std::move(log)) {}

void JobNews::Tell(const std::map<uint64_t, std::unique_ptr<JobMachine>>& jobs) {
  if (!log_) return;
  std::erase_if(told_, [&jobs](const auto& told) { return !jobs.contains(told.first); });
  for (const auto& [id, job] : jobs) {
    if (job->state().conditions_size() == 0) continue;
    const JobCondition& last = *job->state().conditions().rbegin();
    std::string line =
        absl::StrCat("job id=", id, " generation=", job->state().generation(),
                     " state=", JobState_Name(job->state().state()), " reason=", last.reason(),
                     " message=\"", absl::CEscape(last.message()), "\"");
    std::string& told = told_[id];
    if (told == line) continue;
    log_(line);
    told = std::move(line);
  }
}

}  // namespace strata::scheduler
