// ChainSim: what the scheduler decides, and what goes wrong.
#include <algorithm>
#include <utility>

#include "tests/sim/chain_sim.h"

namespace strata::testing {

using server::LogEnd;
using server::NextEnd;

void ChainSim::Persist(Configuration next) {
  newest_ = std::move(next);
  LookAtMembers();
}

// R9: only if another full member answers.
void ChainSim::Remove(size_t place) {
  const auto answers = [&](size_t i) {
    return i != place && processes_[newest_.members[i].process].alive &&
           processes_[newest_.members[i].process].chain != nullptr && IsWhole(newest_.members[i]);
  };
  bool another = false;
  for (size_t i = 0; i < newest_.full; ++i) another |= answers(i);
  if (!another) return;
  Configuration next = newest_;
  next.members.erase(next.members.begin() + static_cast<ptrdiff_t>(place));
  if (place < next.full) --next.full;
  next.joining.reset();
  ++next.epoch;
  ++removals_;
  Persist(std::move(next));
}

void ChainSim::Join() {
  if (newest_.joining || newest_.members.size() >= replicas_) return;
  for (size_t p = 0; p < kProcesses; ++p) {
    const size_t candidate = (p + Below(kProcesses)) % kProcesses;
    const bool member = std::any_of(newest_.members.begin(), newest_.members.end(),
                                    [&](const Member& m) { return m.process == candidate; });
    if (member || !processes_[candidate].alive) continue;
    Configuration next = newest_;
    next.joining = Member{candidate, NewLogId()};
    ++next.epoch;
    return Persist(std::move(next));
  }
}

// The last member reports how far the one is that it copies to, or the learner after it.
void ChainSim::Promote(size_t last) {
  const Member& from = newest_.members[last];
  const Process& p = processes_[from.process];
  if (!p.alive || p.chain == nullptr || !p.by || !IsWhole(from)) return;
  if (p.by->epoch != newest_.epoch) return;
  const bool learner = newest_.full < newest_.members.size();
  if (!learner && newest_.joining) {
    for (size_t s = 0; s < kShards; ++s) {
      const auto next = p.chain->next(s);
      if (!next || next->empty || next->end.step + 2 < p.chain->end(s).step) return;
    }
    Configuration next = newest_;
    next.members.push_back(*next.joining);
    next.joining.reset();
    ++next.epoch;
    ++joins_;
    return Persist(std::move(next));
  }
  if (!learner || !p.chain->NextHasAll()) return;
  const Process& q = processes_[newest_.members.back().process];
  if (!q.alive || !q.by || q.by->epoch != newest_.epoch) return;
  Configuration next = newest_;
  ++next.full;
  Persist(std::move(next));
}

void ChainSim::SchedulerMoves() {
  const size_t members = newest_.members.size();
  switch (Below(4)) {
    case 0: {
      // It may suspect one that lives.
      const size_t place = Below(members);
      const Member& m = newest_.members[place];
      const bool gone = !processes_[m.process].alive || !IsWhole(m);
      if (gone || (faults_ && Below(8) == 0)) Remove(place);
      return;
    }
    case 1:
      if (newest_.joining && !processes_[newest_.joining->process].alive) {
        Configuration next = newest_;
        next.joining.reset();
        ++next.epoch;
        return Persist(std::move(next));
      }
      return Join();
    default: {
      const bool learner = newest_.full < members;
      const size_t last = learner ? members - 2 : members - 1;
      return Promote(last);
    }
  }
}

void ChainSim::Fault() {
  const size_t process = Below(kProcesses);
  Process& p = processes_[process];
  switch (Below(6)) {
    case 0:
      if (p.alive) Kill(process);
      return;
    case 1: {
      // Never the last full copy: that is an honest loss, and no promise.
      size_t whole = 0;
      bool mine = false;
      for (size_t i = 0; i < newest_.full; ++i) {
        whole += IsWhole(newest_.members[i]);
        mine |= newest_.members[i].process == process;
      }
      if (mine && whole <= 1) return;
      Kill(process);
      return Wipe(p);
    }
    case 2:
      if (!network_.empty())
        network_.erase(network_.begin() + static_cast<ptrdiff_t>(Below(network_.size())));
      return;
    default:
      if (!p.alive) Restart(process);
      // A call that got no answer in time, whatever became of it.
      if (p.chain != nullptr && !p.calls.empty()) {
        const uint64_t call = p.calls[Below(p.calls.size())];
        std::erase(p.calls, call);
        p.chain->Broken(call);
      }
  }
}

void ChainSim::Event() {
  const size_t process = Below(kProcesses);
  switch (Below(faults_ ? 24 : 23)) {
    case 0:
    case 1:
    case 2:
      return Push(newest_.members[Below(newest_.members.size())].process);
    case 3:
    case 4:
    case 5:
      return Send(process);
    case 6:
      return SchedulerMoves();
    case 7:
    case 8:
      return Tell(process);
    case 9:
      return WriteImage(processes_[process], Below(kShards));
    case 10:
    case 11:
    case 12:
    case 13:
    case 14: {
      const size_t s = Below(kShards);
      if (Below(4) == 0) Queue(processes_[process]);
      for (uint64_t i = 1 + Below(4); i > 0; --i) RunShard(process, s);
      return;
    }
    case 23:
      return Fault();
    default:
      if (network_.empty()) return;
      const size_t at = Below(network_.size());
      const Message m = network_[at];
      if (!faults_ || Below(6) != 0) network_.erase(network_.begin() + static_cast<ptrdiff_t>(at));
      Deliver(m);
  }
}

// L: without faults the chain is whole again, and all that was appended is committed.
std::string ChainSim::Settle() {
  faults_ = false;
  for (size_t p = 0; p < kProcesses; ++p) {
    if (!processes_[p].alive) Restart(p);
    // What was lost is found to be lost.
    while (processes_[p].chain != nullptr && !processes_[p].calls.empty()) {
      processes_[p].chain->Broken(processes_[p].calls.back());
      processes_[p].calls.pop_back();
    }
  }
  network_.clear();
  for (size_t i = 0; i < 4000 && broke_.empty(); ++i) {
    const size_t process = Below(kProcesses);
    Tell(process);
    Send(process);
    SchedulerMoves();
    while (!network_.empty()) {
      const Message m = network_.front();
      network_.erase(network_.begin());
      Deliver(m);
    }
    for (size_t p = 0; p < kProcesses; ++p) {
      while (!processes_[p].looked_at.empty()) Queue(processes_[p]);
      for (size_t s = 0; s < kShards; ++s) {
        while (!processes_[p].queue[s].empty()) RunShard(p, s);
      }
    }
    bool whole = newest_.full == replicas_ && newest_.members.size() == replicas_;
    for (size_t s = 0; s < kShards && whole; ++s) {
      const Process& head = processes_[newest_.members[0].process];
      whole &= head.chain != nullptr && head.chain->committed(s) == EndOf(head.logs[s]);
      for (const Member& m : newest_.members) {
        whole &= processes_[m.process].logs[s] == head.logs[s];
      }
    }
    if (whole) return broke_;
  }
  return broke_.empty() ? "the chain does not become whole again" : broke_;
}

std::string ChainSim::Run(size_t steps) {
  for (size_t i = 0; i < steps && broke_.empty(); ++i) {
    Event();
    LookAtMembers();
  }
  if (!broke_.empty()) return broke_;
  std::string settled = Settle();
  LookAtMembers();
  return broke_.empty() ? settled : broke_;
}

}  // namespace strata::testing
