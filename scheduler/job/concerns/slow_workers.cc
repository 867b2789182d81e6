#include "scheduler/job/concerns/slow_workers.h"

#include <algorithm>
#include <cstddef>

namespace strata::scheduler {

void SlowWorkers::OnReport(const std::string& name, uint64_t examples, double working_seconds,
                           absl::Time now) {
  std::deque<Mark>& marks = speeds_[name];
  if (!marks.empty() &&
      (examples < marks.back().examples || working_seconds < marks.back().seconds)) {
    marks.clear();  // it began anew
  }
  // A worker that stands, for an evaluation, keeps the speed that it had.
  if (!marks.empty() && examples == marks.back().examples) {
    const absl::Duration stood = now - marks.back().at;
    for (Mark& mark : marks) mark.at += stood;
    return;
  }
  marks.push_back({now, examples, working_seconds});
  while (marks.size() > 2 && now - marks[1].at >= kSpan) marks.pop_front();
}

std::vector<SlowWorkers::Slow> SlowWorkers::Find(absl::Time now) const {
  std::vector<Slow> all;
  for (const auto& [name, marks] : speeds_) {
    if (marks.size() < 2) continue;
    const Mark &first = marks.front(), &last = marks.back();
    if (last.at - first.at < kSpan / 2 || now - last.at > kSpan) continue;
    const auto examples = static_cast<double>(last.examples - first.examples);
    all.push_back({name, (last.seconds - first.seconds) / examples, 0});
  }
  std::vector<Slow> slow;
  for (const Slow& one : all) {
    std::vector<double> others;
    for (const Slow& other : all) {
      if (other.name != one.name) others.push_back(other.seconds);
    }
    if (others.empty()) break;
    const auto middle = others.begin() + static_cast<std::ptrdiff_t>((others.size() - 1) / 2);
    std::nth_element(others.begin(), middle, others.end());
    if (one.seconds > kTimes * *middle) slow.push_back({one.name, one.seconds, *middle});
  }
  return slow;
}

}  // namespace strata::scheduler
