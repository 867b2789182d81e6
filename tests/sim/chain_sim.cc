#include "tests/sim/chain_sim.h"

#include <algorithm>
#include <utility>

namespace strata::testing {

using server::ChainConfiguration;
using server::EntryFit;
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
  for (const Log& log : p.logs) {
    ends.push_back(EndOf(log));
    committed.emplace_back();
  }
  if (c.epoch == 1 && p.incarnation == 1) committed = ends;
  p.chain = std::make_unique<ReplicaChain>(std::move(ends), std::move(committed));
}

void ChainSim::Tell(size_t process) {
  Process& p = processes_[process];
  if (!p.alive || (p.told && p.told->epoch > newest_.epoch)) return;
  p.told = newest_;
  size_t place = kNoPlace;
  for (size_t i = 0; i < newest_.members.size(); ++i) {
    if (newest_.members[i].process == process) place = i;
  }
  const bool joins = newest_.joining && newest_.joining->process == process;
  if (joins) place = newest_.members.size();
  if (place == kNoPlace) {  // R16: what was removed is no copy that counts
    p.chain.reset();
    p.calls.clear();
    p.log_id.clear();
    for (Log& log : p.logs) log.clear();
    return;
  }
  const std::string& id = joins ? newest_.joining->log_id : newest_.members[place].log_id;
  if (p.log_id != id) {
    p.chain.reset();
    p.calls.clear();
    for (size_t s = 0; s < kShards; ++s) p.logs[s].clear();
    if (!joins) {  // R17: wiped; it waits until it is removed
      p.log_id.clear();
      return;
    }
    p.log_id = id;
    for (bool& empty : p.empty) empty = true;
  }
  if (p.chain == nullptr) OpenCopy(p, newest_);
  ChainConfiguration c;
  c.epoch = newest_.epoch;
  c.place = static_cast<uint32_t>(place);
  c.members = static_cast<uint32_t>(newest_.members.size());
  c.full = newest_.full;
  if (place + 1 < newest_.members.size()) c.next = newest_.members[place + 1].log_id;
  if (place + 1 == newest_.members.size() && newest_.joining) c.next = newest_.joining->log_id;
  p.chain->Configure(c);
  Look(process);
}

void ChainSim::Kill(size_t process) {
  Process& p = processes_[process];
  p.alive = false;
  p.chain.reset();
  p.calls.clear();
  p.told.reset();
}

void ChainSim::Restart(size_t process) {
  processes_[process].alive = true;
  ++processes_[process].incarnation;
}

void ChainSim::Wipe(size_t process) {
  Kill(process);
  Process& p = processes_[process];
  p.log_id.clear();
  for (size_t s = 0; s < kShards; ++s) p.logs[s].clear();
}

// The head takes an update: R1, its own log first.
void ChainSim::Append(size_t process) {
  Process& p = processes_[process];
  if (!p.alive || p.chain == nullptr || p.chain->configuration().place != 0) return;
  const size_t s = Below(kShards);
  LogEnd end = EndOf(p.logs[s]);
  if (Below(5) == 0) {
    ++end.cut;
  } else {
    ++end.step;
  }
  p.logs[s].push_back({end, ++values_});
  p.chain->Appended(s, end);
  Look(process);
}

void ChainSim::Send(size_t process) {
  Process& p = processes_[process];
  if (!p.alive || p.chain == nullptr) return;
  const ChainConfiguration& c = p.chain->configuration();
  while (const auto call = p.chain->Next(true)) {
    Message m;
    m.from = process;
    const bool joining = c.place + 1 >= c.members;
    m.to = joining ? p.told->joining->process : p.told->members[c.place + 1].process;
    m.incarnation = p.incarnation;
    m.call = call->id;
    m.epoch = call->epoch;
    m.from_log = p.log_id;
    m.to_log = c.next;
    for (const ReplicaChain::Part& part : call->parts) {
      Message::Part& out = m.parts.emplace_back();
      out.shard = part.shard;
      out.image = part.image;
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
  if (!p.alive || p.chain == nullptr || !p.told) return false;
  const bool same = p.told->epoch == m.epoch;
  if (!same || p.log_id != m.to_log) return false;
  const uint32_t place = p.chain->configuration().place;
  if (place == 0 || p.told->members[place - 1].log_id != m.from_log) return false;
  for (const Message::Part& part : m.parts) {
    Log& log = p.logs[part.shard];
    if (part.image && p.empty[part.shard]) {
      log = part.entries;
      p.empty[part.shard] = false;
      p.chain->Appended(part.shard, EndOf(log));
    }
    if (part.image || p.empty[part.shard]) continue;
    for (const Entry& e : part.entries) {
      const bool cut = e.end.step == EndOf(log).step && e.end.cut > EndOf(log).cut;
      const EntryFit fit =
          cut ? FitOfCut(EndOf(log), e.end) : server::FitOfStep(EndOf(log), e.end.step);
      if (fit == EntryFit::kHave) continue;
      if (fit == EntryFit::kGap) break;
      log.push_back(e);
      p.chain->Appended(part.shard, e.end);
    }
  }
  Look(m.to);
  Message reply;
  reply.reply = true;
  reply.from = m.to;
  reply.to = m.from;
  reply.incarnation = m.incarnation;
  reply.call = m.call;
  reply.epoch = p.told->epoch;
  for (size_t s = 0; s < kShards; ++s) {
    NextEnd end;
    end.empty = p.empty[s];
    if (!end.empty) end.end = EndOf(p.logs[s]);
    if (!end.empty) end.committed = p.chain->committed(s);
    reply.ends.emplace_back(end);
  }
  network_.push_back(std::move(reply));
  return true;
}

void ChainSim::Deliver(const Message& m) {
  if (!m.reply && Receive(m)) return;
  if (!m.reply) {
    Process& asker = processes_[m.from];
    const bool there = asker.alive && asker.incarnation == m.incarnation && asker.chain != nullptr;
    if (there && std::erase(asker.calls, m.call) > 0) asker.chain->Broken(m.call);
    return;
  }
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
      }
      if (committed_[s][i] != e) Broke("two heads committed different entries at one place");
      ++i;
    }
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
