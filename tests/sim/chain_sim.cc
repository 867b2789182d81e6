#include "tests/sim/chain_sim.h"

#include <algorithm>
#include <utility>

namespace strata::testing {

using server::ChainConfiguration;
using server::ChainHandover;
using server::LogEnd;
using server::NextEnd;
using server::ReplicaChain;

namespace {

constexpr size_t kNoPlace = ~size_t{0};

}  // namespace

ChainSim::ChainSim(uint64_t seed, uint32_t replicas)
    : random_(seed), replicas_(replicas), processes_(kProcesses) {
  Configuration first;
  first.epoch = 1;
  for (size_t p = 0; p < replicas_; ++p) {
    processes_[p].log_id = NewLogId();
    first.members.push_back({p, processes_[p].log_id});
  }
  first.full = replicas_;
  newest_ = first;
  for (size_t p = 0; p < replicas_; ++p) Tell(p);
}

bool ChainSim::IsWhole(const Member& m) const { return processes_[m.process].log_id == m.log_id; }

// A copy that was not open: what its disk has, or nothing. Async: it knows of no commit.
void ChainSim::OpenCopy(Process& p, const Configuration& c) {
  std::vector<LogEnd> ends, committed;
  for (size_t s = 0; s < kShards; ++s) {
    ends.push_back(EndOf(p.logs[s]));
    committed.emplace_back();
    if (!p.image[s].empty()) {
      const auto read = server::WindowLedger::Parse(p.image[s]);
      if (!read.ok()) return Broke("a copy cannot read its image: it is lost");
      p.ledger[s] = *read;
    }
    for (size_t i = p.image_entries[s]; i < p.logs[s].size(); ++i) Note(p, s, p.logs[s][i]);
  }
  if (c.epoch == 1 && p.incarnation == 1) committed = ends;
  p.chain = std::make_unique<ReplicaChain>(std::move(ends), std::move(committed));
  p.handover = std::make_unique<ChainHandover>(kShards);
}

// Of what the process has in memory.
void ChainSim::Forget(Process& p) {
  p.chain.reset();
  p.handover.reset();
  p.calls.clear();
  p.looked_at.clear();
  p.told.reset();
  p.by.reset();
  for (size_t s = 0; s < kShards; ++s) {
    p.queue[s].clear();
    p.epoch[s] = 0;
    p.ledger[s] = {};
  }
}

void ChainSim::Wipe(Process& p) {
  Forget(p);
  p.log_id.clear();
  for (size_t s = 0; s < kShards; ++s) {
    p.logs[s].clear();
    p.image[s].clear();
    p.image_entries[s] = 0;
    p.empty[s] = false;
  }
}

void ChainSim::Tell(size_t process) {
  Process& p = processes_[process];
  if (!p.alive || (p.told && p.told->epoch > newest_.epoch)) return;
  size_t place = kNoPlace;
  for (size_t i = 0; i < newest_.members.size(); ++i) {
    if (newest_.members[i].process == process) place = i;
  }
  const bool joins = newest_.joining && newest_.joining->process == process;
  if (joins) place = newest_.members.size();
  if (place == kNoPlace) return Wipe(p);  // R16: what was removed is no copy that counts
  const std::string& id = joins ? newest_.joining->log_id : newest_.members[place].log_id;
  if (p.log_id != id) {
    Wipe(p);
    if (!joins) return;  // R17: wiped; it waits until it is removed
    p.log_id = id;
    for (bool& empty : p.empty) empty = true;
  }
  if (p.chain == nullptr) OpenCopy(p, newest_);
  if (broke_.empty()) Hand(process, place);
}

void ChainSim::Kill(size_t process) {
  processes_[process].alive = false;
  Forget(processes_[process]);
}

void ChainSim::Restart(size_t process) {
  processes_[process].alive = true;
  ++processes_[process].incarnation;
}

// A lane sends a window that it has had no OK for, again or for the first time, or the scheduler
// orders a cut.
void ChainSim::Push(size_t process) {
  Process& p = processes_[process];
  if (!p.alive || p.chain == nullptr || !p.by || p.chain->configuration().place != 0) return;
  const size_t s = Below(kShards);
  Entry e;
  e.cut = Below(6) == 0;
  if (e.cut) {
    e.value = ++cuts_;
  } else {
    e.value = made_[s];
    for (uint64_t w = closed_[s] * kWindows; w < made_[s] && Below(3) != 0; ++w) {
      if (!windows_[s].contains(w)) e.value = w;
    }
    if (e.value == made_[s]) ++made_[s];
  }
  p.queue[s].push_back({.push = e});
}

void ChainSim::Send(size_t process) {
  Process& p = processes_[process];
  if (!p.alive || p.chain == nullptr) return;
  const ChainConfiguration& c = p.chain->configuration();
  while (const auto call = p.chain->Next(true)) {
    Message m;
    m.from = process;
    const bool joining = c.place + 1 >= c.members;
    m.to = joining ? p.by->joining->process : p.by->members[c.place + 1].process;
    m.incarnation = p.incarnation;
    m.call = call->id;
    m.epoch = call->epoch;
    m.from_log = p.log_id;
    m.to_log = c.next;
    for (const ReplicaChain::Part& part : call->parts) {
      Message::Part& out = m.parts.emplace_back();
      out.shard = part.shard;
      out.image = part.image;
      out.ledger = p.ledger[part.shard];
      const size_t most = 1 + Below(4);
      for (const Entry& e : p.logs[part.shard]) {
        if (part.image || (e.end > part.after && out.entries.size() < most)) {
          out.entries.push_back(e);
        }
      }
    }
    p.calls.push_back(call->id);
    network_.push_back(std::move(m));
    if (network_.size() > 200) network_.erase(network_.begin());
  }
}

// False: it is refused, or nobody is there.
bool ChainSim::Receive(const Message& m) {
  Process& p = processes_[m.to];
  if (!p.alive || p.chain == nullptr || !p.by) return false;
  if (p.by->epoch != m.epoch || p.log_id != m.to_log) return false;
  const uint32_t place = p.chain->configuration().place;
  if (place == 0 || p.by->members[place - 1].log_id != m.from_log) return false;
  if (m.parts.empty()) {
    Answer(m);
    return true;
  }
  p.looked_at.push_back(std::make_shared<Taking>(Taking{m, m.parts.size(), false}));
  if (Below(3) == 0) Queue(p);
  return true;
}

void ChainSim::Queue(Process& p) {
  if (p.looked_at.empty()) return;
  const auto at = p.looked_at.begin() + static_cast<ptrdiff_t>(Below(p.looked_at.size()));
  const std::shared_ptr<Taking> taking = *at;
  p.looked_at.erase(at);
  for (size_t i = 0; i < taking->message.parts.size(); ++i) {
    p.queue[taking->message.parts[i].shard].push_back({.taking = taking, .part = i});
  }
}

void ChainSim::Answer(const Message& m) {
  const Process& p = processes_[m.to];
  Message reply;
  reply.reply = true;
  reply.from = m.to;
  reply.to = m.from;
  reply.incarnation = m.incarnation;
  reply.call = m.call;
  reply.epoch = p.by->epoch;
  for (size_t s = 0; s < kShards; ++s) {
    NextEnd end;
    end.empty = p.empty[s];
    if (!end.empty) end.end = EndOf(p.logs[s]);
    if (!end.empty) end.committed = p.chain->committed(s);
    reply.ends.emplace_back(end);
  }
  network_.push_back(std::move(reply));
}

void ChainSim::Refused(const Message& m) {
  Process& asker = processes_[m.from];
  const bool there = asker.alive && asker.incarnation == m.incarnation && asker.chain != nullptr;
  if (there && std::erase(asker.calls, m.call) > 0) asker.chain->Broken(m.call);
}

void ChainSim::Deliver(const Message& m) {
  if (!m.reply && !Receive(m)) Refused(m);
  if (!m.reply) return;
  Process& p = processes_[m.to];
  if (!p.alive || p.chain == nullptr || p.incarnation != m.incarnation) return;
  std::erase(p.calls, m.call);
  p.chain->Replied(m.call, m.epoch, m.ends);
  if (p.chain->lost_end()) Broke("a copy after another one has an entry more");
  Look(m.to);
}

// What a head has committed a lane has seen.
void ChainSim::Look(size_t process) {
  const Process& p = processes_[process];
  if (p.chain == nullptr || p.chain->configuration().place != 0) return;
  for (size_t s = 0; s < kShards; ++s) {
    const LogEnd through = p.chain->committed(s);
    size_t i = 0;
    for (const Entry& e : p.logs[s]) {
      if (e.end > through) break;
      if (i == committed_[s].size()) {
        committed_[s].push_back(e);
        ++commits_;
        const bool again = !e.cut && !windows_[s].insert(e.value).second;
        if (again) Broke("a window took effect twice");  // P2
      }
      if (committed_[s][i] != e) Broke("two heads committed different entries at one place");
      ++i;
    }
    const auto done = [&](uint64_t task) {
      for (uint64_t w = 0; w < kWindows; ++w) {
        if (!windows_[s].contains(task * kWindows + w)) return false;
      }
      return true;
    };
    while (done(closed_[s])) ++closed_[s];
  }
}

// P1: every full member of the newest configuration has what was committed.
void ChainSim::LookAtMembers() {
  for (size_t place = 0; place < newest_.full; ++place) {
    const Member& m = newest_.members[place];
    if (!IsWhole(m)) continue;
    for (size_t s = 0; s < kShards; ++s) {
      const Log& log = processes_[m.process].logs[s];
      const bool has = log.size() >= committed_[s].size() &&
                       std::equal(committed_[s].begin(), committed_[s].end(), log.begin());
      if (!has) Broke("a full member lacks what was committed");
    }
  }
}

}  // namespace strata::testing
