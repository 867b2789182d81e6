#include "server/protocol/replica_chain.h"

#include <algorithm>
#include <utility>

#include "proto/core/mutation.h"

namespace strata::server {

EntryFit FitOfStep(LogEnd own, uint64_t step) {
  if (step <= own.step) return EntryFit::kHave;
  return step == own.step + 1 || STRATA_MUTATION("chain.gap_taken") ? EntryFit::kNext
                                                                    : EntryFit::kGap;
}

EntryFit FitOfCut(LogEnd own, LogEnd entry) {
  if (entry <= own) return EntryFit::kHave;
  return entry.step == own.step ? EntryFit::kNext : EntryFit::kGap;
}

bool ChainConfiguration::has_all() const {
  return place < full || STRATA_MUTATION("chain.learner_has_all");
}

ReplicaChain::ReplicaChain(std::vector<LogEnd> ends, std::vector<LogEnd> committed) {
  for (size_t i = 0; i < ends.size(); ++i) {
    Shard& shard = shards_.emplace_back();
    shard.end = ends[i];
    shard.goal = ends[i];
    shard.committed = std::min(committed[i], ends[i]);
  }
}

void ReplicaChain::Forget() {
  calls_.clear();
  for (Shard& shard : shards_) {
    shard.next.reset();
    shard.in_call = 0;
  }
}

bool ReplicaChain::Configure(const ChainConfiguration& configuration) {
  if (configured_ && configuration.epoch < configuration_.epoch) return false;
  const bool changed = !configured_ || configuration.epoch != configuration_.epoch ||
                       configuration.next != configuration_.next;
  configured_ = true;
  configuration_ = configuration;
  if (changed) {
    for (Shard& shard : shards_) shard.goal = shard.end;
    if (!STRATA_MUTATION("chain.no_reforward")) Forget();
  }
  for (Shard& shard : shards_) Commit(shard);
  return true;
}

void ReplicaChain::Appended(size_t shard, LogEnd end) {
  shards_[shard].end = end;
  Commit(shards_[shard]);
}

void ReplicaChain::Commit(Shard& shard) {
  const ChainConfiguration& c = configuration_;
  if (!configured_) return;
  if (c.place == 0 && c.full < c.min_replicas && !STRATA_MUTATION("chain.any_length")) return;
  if (c.last() || STRATA_MUTATION("chain.commit_at_append")) {
    shard.committed = std::max(shard.committed, shard.end);
  } else if (shard.next && !shard.next->empty) {
    shard.committed = std::max(shard.committed, std::min(shard.next->committed, shard.end));
  }
}

ReplicaChain::Call ReplicaChain::Make(std::vector<Part> parts) {
  Call call{++last_call_, configuration_.epoch, false, std::move(parts)};
  for (const Part& part : call.parts) shards_[part.shard].in_call = call.id;
  calls_[call.id] = call.parts.empty();
  return call;
}

// 1 the next copy is asked how far it is, once  2 entries that it lacks, of each shard that is in
// no call  3 parts of images  4 nothing to send: what is not committed yet is waited for.
std::optional<ReplicaChain::Call> ReplicaChain::Next(bool images) {
  if (configuration_.next.empty() || shards_.empty() || lost_end_) return std::nullopt;
  const bool known = std::all_of(shards_.begin(), shards_.end(),
                                 [](const Shard& shard) { return shard.next.has_value(); });
  if (!known) {
    if (!calls_.empty()) return std::nullopt;
    return Make({});
  }
  if (calls_.size() >= kMostCalls) return std::nullopt;
  std::vector<Part> parts;
  bool waits = false, asked = false;
  for (size_t i = 0; i < shards_.size(); ++i) {
    const Shard& shard = shards_[i];
    if (shard.in_call != 0 || !shard.ready) continue;
    if (shard.next->empty) {
      if (images) parts.push_back({i, true, {}, *shard.next});
    } else if (shard.next->end < shard.end) {
      parts.push_back({i, false, shard.next->end, *shard.next});
    } else {
      waits |= shard.next->committed < shard.next->end;
    }
  }
  for (const auto& [id, all] : calls_) asked |= all;
  if (!parts.empty()) return Make(std::move(parts));
  if (!waits || asked) return std::nullopt;
  Call call = Make({});
  call.wait = true;
  return call;
}

void ReplicaChain::Replied(uint64_t id, uint64_t epoch,
                           const std::vector<std::optional<NextEnd>>& next) {
  const bool any = STRATA_MUTATION("chain.old_ack_taken");
  const auto it = calls_.find(id);
  if (it == calls_.end() && !any) return;
  const bool all = it == calls_.end() || it->second;
  if (epoch != configuration_.epoch && !any) return Forget();  // R4
  if (it != calls_.end()) calls_.erase(it);
  for (size_t i = 0; i < shards_.size(); ++i) {
    Shard& shard = shards_[i];
    const bool mine = shard.in_call == id;
    if (mine) shard.in_call = 0;
    // One that is in another call is told by that one's answer: this one's may be older.
    if (!mine && !(all && shard.in_call == 0)) continue;
    const std::optional<NextEnd> told = i < next.size() ? next[i] : std::nullopt;
    if (!told) return Forget();
    // Answers to questions may have been overtaken.
    if (!mine && shard.next && !shard.next->empty && told->end < shard.next->end) continue;
    if (!told->empty && told->end > shard.end) lost_end_ = true;
    shard.next = told;
    Commit(shard);
  }
}

void ReplicaChain::Drop(uint64_t call) {
  if (calls_.erase(call) == 0) return;
  for (Shard& shard : shards_) {
    if (shard.in_call == call) shard.in_call = 0;
  }
}

void ReplicaChain::Broken(uint64_t call) {
  if (calls_.contains(call)) Forget();
}

std::optional<NextEnd> ReplicaChain::next(size_t shard) const {
  if (configuration_.next.empty()) return std::nullopt;
  return shards_[shard].next;
}

bool ReplicaChain::NextHasAll() const {
  if (configuration_.next.empty()) return false;
  return std::all_of(shards_.begin(), shards_.end(), [](const Shard& shard) {
    return shard.next && !shard.next->empty && shard.next->end >= shard.goal;
  });
}

}  // namespace strata::server
