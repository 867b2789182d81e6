#include "scheduler/job/events.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace strata::scheduler {

std::vector<JobEvents::Slot> JobEvents::Slots(const JobStateRecord& record) {
  std::vector<Slot> slots;
  for (const ServerSlot& s : record.servers()) {
    slots.push_back({s.name(), s.opened_generation(), s.opened_session()});
  }
  return slots;
}

void JobEvents::Begin(const JobStateRecord& record) {
  state_ = record.state();
  slots_ = Slots(record);
  last_cut_ = record.cuts().next_cut() == 0 ? 0 : record.cuts().next_cut() - 1;
}

void JobEvents::Condition(absl::string_view reason, absl::string_view message) {
  conditions_.push_back({std::string(reason), "", std::string(message)});
}

void JobEvents::Placement(const JobStateRecord& record, std::vector<JobEvent>& out) const {
  bool same = static_cast<size_t>(record.servers_size()) == slots_.size();
  std::vector<std::string> names;
  for (int i = 0; i < record.servers_size(); ++i) {
    const std::string& name = record.servers(i).name();
    same = same && slots_[i].name == name;
    names.push_back(name);
  }
  if (same) return;
  out.push_back({"Placed", "",
                 absl::StrCat(record.shards_size(), " shards on ", absl::StrJoin(names, ", "),
                              ", map epoch ", record.map_epoch())});
}

void JobEvents::Reopened(const JobStateRecord& record, std::vector<JobEvent>& out) const {
  const size_t known = std::min(slots_.size(), static_cast<size_t>(record.servers_size()));
  for (size_t i = 0; i < known; ++i) {
    const ServerSlot& now = record.servers(static_cast<int>(i));
    const Slot& then = slots_[i];
    // Another generation's opening is told by the condition that it trains.
    if (then.name != now.name() || then.session == 0 || then.session == now.opened_session() ||
        then.generation != now.opened_generation()) {
      continue;
    }
    out.push_back({"ServerReopened", now.name(),
                   absl::StrCat("server ", now.name(), " holds its shards again, generation ",
                                now.opened_generation())});
  }
}

void JobEvents::Cuts(const CutBook& cuts, std::vector<JobEvent>& out) {
  for (const CutRecord& cut : cuts.pending()) {
    if (cut.cut() <= last_cut_) continue;
    out.push_back(
        {"CutStarted", "",
         absl::StrCat("cut ", cut.cut(),
                      cut.step() == 0 ? std::string() : absl::StrCat(" at step ", cut.step()),
                      cut.folder().empty() ? ", model hash only" : ", to ", cut.folder())});
  }
  for (const CutRecord& cut : cuts.pending()) last_cut_ = std::max(last_cut_, cut.cut());
}

std::vector<JobEvent> JobEvents::Take(const JobStateRecord& record, const CutBook& cuts) {
  std::vector<JobEvent> out;
  Placement(record, out);
  for (JobEvent& condition : std::exchange(conditions_, {})) out.push_back(std::move(condition));
  Reopened(record, out);
  Cuts(cuts, out);
  if (record.state() != state_) {
    out.push_back({"JobState", "",
                   absl::StrCat(JobState_Name(state_), " -> ", JobState_Name(record.state()))});
  }
  state_ = record.state();
  slots_ = Slots(record);
  return out;
}

}  // namespace strata::scheduler
