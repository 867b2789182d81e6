// ChainSim: what a copy's shards find in their queues.
#include <utility>

#include "proto/core/ids.h"
#include "tests/sim/chain_sim.h"

namespace strata::testing {

using server::ChainConfiguration;
using server::ChainHandover;
using server::EntryFit;
using server::LogEnd;
using server::WindowVerdict;

// Into every shard's queue, as one.
void ChainSim::Hand(size_t process, size_t place) {
  Process& p = processes_[process];
  const bool has_all = ConfigurationAt(newest_, place).has_all();
  if (!p.told || !(*p.told == newest_)) {
    p.told = newest_;
    if (const auto number = p.handover->Told(newest_.epoch)) {
      for (auto& queue : p.queue) {
        queue.push_back({.configuration = newest_, .number = *number, .place = place});
      }
    }
  }
  for (size_t s = 0; s < kShards && has_all; ++s) {
    p.queue[s].push_back({.close_below = closed_[s]});
  }
}

ChainConfiguration ChainSim::ConfigurationAt(const Configuration& of, size_t place) {
  ChainConfiguration c;
  c.epoch = of.epoch;
  c.place = static_cast<uint32_t>(place);
  c.members = static_cast<uint32_t>(of.members.size());
  c.full = of.full;
  if (place + 1 < of.members.size()) c.next = of.members[place + 1].log_id;
  if (place + 1 == of.members.size() && of.joining) c.next = of.joining->log_id;
  return c;
}

void ChainSim::RunShard(size_t process, size_t s) {
  Process& p = processes_[process];
  if (p.queue[s].empty()) return;
  const Work work = std::move(p.queue[s].front());
  p.queue[s].pop_front();
  if (work.configuration) {
    p.epoch[s] = work.configuration->epoch;
    if (!p.handover->Handed(s, work.number)) return;
    p.by = work.configuration;
    p.chain->Configure(ConfigurationAt(*work.configuration, work.place));
  } else if (work.taking != nullptr) {
    const Message& m = work.taking->message;
    late_ += p.epoch[s] != m.epoch;
    if (ChainHandover::Takes(p.epoch[s], m.epoch)) {
      TakePart(p, m.parts[work.part]);
    } else {
      work.taking->refused = true;
    }
    if (--work.taking->left == 0) {
      work.taking->refused ? Refused(m) : Answer(m);
    }
  } else if (work.push) {
    Entry e = *work.push;
    e.end = EndOf(p.logs[s]);
    const TaskId task(e.value / kWindows);
    if (!e.cut && p.ledger[s].Check(task, e.value % kWindows) != WindowVerdict::kNew) return;
    ++(e.cut ? e.end.cut : e.end.step);
    Append(p, s, e);
  } else {
    p.ledger[s].CloseBelow(TaskId(work.close_below));
  }
  Look(process);
}

void ChainSim::TakePart(Process& p, const Message::Part& part) {
  const size_t s = part.shard;
  if (part.image && p.empty[s]) {
    p.logs[s] = part.entries;
    p.ledger[s] = part.ledger;
    p.empty[s] = false;
    WriteImage(p, s);
    p.chain->Appended(s, EndOf(p.logs[s]));
  }
  if (part.image || p.empty[s]) return;
  for (const Entry& e : part.entries) {
    const LogEnd own = EndOf(p.logs[s]);
    const EntryFit fit = e.cut ? FitOfCut(own, e.end) : server::FitOfStep(own, e.end.step);
    if (fit == EntryFit::kHave) continue;
    if (fit == EntryFit::kGap) return;
    const WindowVerdict verdict =
        e.cut ? WindowVerdict::kNew
              : p.ledger[s].Check(TaskId(e.value / kWindows), e.value % kWindows);
    if (verdict != WindowVerdict::kNew) return Broke("a copy is sent a window that it has");
    Append(p, s, e);
  }
}

// R1: its own log first.
void ChainSim::Append(Process& p, size_t s, const Entry& e) {
  p.logs[s].push_back(e);
  Note(p, s, e);
  p.chain->Appended(s, e.end);
}

void ChainSim::Note(Process& p, size_t s, const Entry& e) {
  if (!e.cut) p.ledger[s].Record(TaskId(e.value / kWindows), e.value % kWindows);
}

void ChainSim::WriteImage(Process& p, size_t s) {
  if (p.chain == nullptr || p.empty[s]) return;
  p.image[s] = p.ledger[s].Serialize();
  p.image_entries[s] = p.logs[s].size();
}

}  // namespace strata::testing
