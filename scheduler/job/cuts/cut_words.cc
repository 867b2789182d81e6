// CutCoordinator: what servers' words on a cut come to.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/runtime/files/may_pass.h"
#include "scheduler/job/cuts/cut_coordinator.h"

namespace strata::scheduler {
namespace {

bool SameLanes(const CutReport& a, const CutReport& b) {
  return std::equal(a.lanes().begin(), a.lanes().end(), b.lanes().begin(), b.lanes().end(),
                    [](const LanePosition& x, const LanePosition& y) {
                      return x.lane() == y.lane() && x.task() == y.task() &&
                             x.next_window() == y.next_window();
                    });
}

}  // namespace

// What servers say of a cut that is over with their words: done, or what stood in the way. Of
// several causes one that no try can mend counts, then one that may pass, then a refusal.
CutCoordinator::Result CutCoordinator::Judge(const CutRecord& cut,
                                             const std::map<uint32_t, CutReport>& words) const {
  Result result{.cut = cut};
  const CutReport* first = nullptr;  // of those that are done
  bool disagree = false;
  for (const auto& [server, word] : words) {
    if (word.state() == CutReport::DONE) {
      if (first == nullptr) first = &word;
      disagree |= !SameLanes(word, *first) && !STRATA_MUTATION("cut.lanes_may_disagree");
      result.files.insert(result.files.end(), word.files().begin(), word.files().end());
      continue;
    }
    if (word.state() != CutReport::FAILED && word.state() != CutReport::REFUSED) continue;
    const bool fails = word.state() == CutReport::FAILED;
    const bool passes = fails && MayPass(static_cast<absl::StatusCode>(word.code()));
    const bool told = fails ? result.outcome != Outcome::kFailed || (result.passes && !passes)
                            : result.outcome == Outcome::kDone;
    if (!told) continue;
    result.outcome = fails ? Outcome::kFailed : Outcome::kRefused;
    result.message = word.message();
    result.server = server;
    result.passes = passes;
  }
  if (first != nullptr) result.lanes.assign(first->lanes().begin(), first->lanes().end());
  if (result.outcome != Outcome::kDone) return result;
  if (disagree) {
    result.message = absl::StrCat("servers disagree on where lanes stand at cut ", cut.cut());
  } else if (!config_.directory.empty()) {
    result.message = WhatIsMissing(result.files, config_.partitions);
  }
  if (!result.message.empty()) result.outcome = Outcome::kFailed;
  return result;
}

std::vector<CutCoordinator::Result> CutCoordinator::Settle(int64_t now_ms) {
  std::vector<Result> results;
  for (const CutRecord& cut : book_.pending()) {
    const auto it = words_.find(cut.cut());
    if (it == words_.end() || cut.has_manifest()) continue;
    uint32_t done = 0, ended = 0;
    for (const auto& [server, word] : it->second) {
      done += word.state() == CutReport::DONE;
      ended += word.state() == CutReport::FAILED || word.state() == CutReport::REFUSED;
    }
    const bool ends = ended > 0 && !STRATA_MUTATION("cut.failure_waits");
    if (ends || done == config_.servers) results.push_back(Judge(cut, it->second));
  }
  for (Result& result : results) {
    if (result.outcome == Outcome::kDone) {
      words_.erase(result.cut.cut());
      continue;
    }
    Erase(result.cut.cut());
    Rearm(result, now_ms);
  }
  return results;
}

std::string WhatIsMissing(const std::vector<CheckpointFile>& files, uint32_t partitions) {
  std::set<std::string> names;
  std::vector<std::pair<uint32_t, uint32_t>> ranges;
  for (const CheckpointFile& file : files) {
    if (!names.insert(file.name()).second) {
      return absl::StrCat("two servers wrote a file ", file.name());
    }
    if (file.sequence() > 0) continue;
    ranges.emplace_back(file.first_partition(), file.last_partition());
  }
  std::sort(ranges.begin(), ranges.end());
  uint32_t next = 0;
  for (const auto& [first, last] : ranges) {
    if (first > next) break;
    if (last < partitions) next = std::max(next, last + 1);
  }
  return next >= partitions ? "" : absl::StrCat("no file holds partition ", next);
}

}  // namespace strata::scheduler
