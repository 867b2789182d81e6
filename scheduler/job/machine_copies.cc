// JobMachine: which servers can have copies of a job's shards, and why none can.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/job/storage_spec.h"
#include "scheduler/job/chains/chain_machine.h"
#include "scheduler/job/chains/copy_refusals.h"
#include "scheduler/job/chains/copy_view.h"
#include "scheduler/job/machine.h"
#include "scheduler/nodes/placement.h"

namespace strata::scheduler {
namespace {

std::set<std::string> ZonesOf(const Membership& members, const ChainRecord& chain) {
  std::set<std::string> zones;
  for (const CopyRecord& member : chain.members()) {
    const Node* const node = members.Find(member.server(), SERVER);
    zones.insert(node == nullptr ? member.server() : ZoneOf(node->record));
  }
  return zones;
}

}  // namespace

// All live servers, with what copies of this job they have already.
std::vector<Candidate> JobMachine::CopyCandidates(const ClusterView& cluster) const {
  const Rooms rooms = cluster.rooms ? cluster.rooms() : Rooms();
  const std::vector<std::string> holders = Holders();
  std::vector<Candidate> candidates;
  for (const auto& [name, node] : cluster.members->nodes()) {
    if (!node.alive || node.record.role() != SERVER) continue;
    Candidate candidate = {.name = name, .cores = node.record.cores()};
    candidate.able = HoldsGpuTier(job().storage(), node.record);
    if (const auto room = rooms.find(name); room != rooms.end()) candidate.room = room->second;
    candidate.zone = ZoneOf(node.record);
    candidate.copies =
        static_cast<uint32_t>(std::count(holders.begin(), holders.end(), candidate.name));
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

bool JobMachine::HasFailed(const ClusterView& cluster, const std::string& server,
                           absl::Time now) const {
  const Node* const node = cluster.members->Find(server, SERVER);
  return node != nullptr && failed_copies_.Until(server, node->record.session(), now);
}

absl::StatusOr<std::vector<std::vector<std::string>>> JobMachine::FreeChains(
    const ClusterView& cluster) const {
  const auto heads = FreeServers(cluster, job().replicas().servers());
  if (!heads.ok()) return heads.status();
  std::vector<std::vector<std::string>> alone;
  for (const std::string& head : *heads) alone.push_back({head});
  if (!Replicated()) return alone;
  return ChooseCopies(CopyCandidates(cluster), *heads, job().storage().replicas(),
                      NeedNow(cluster));
}

// As many servers as there are for the shards of a slot whose copies are away: a job goes on with
// fewer copies rather than with none.
std::vector<std::string> JobMachine::FreeChain(const ClusterView& cluster, int slot,
                                               absl::Time now) const {
  std::vector<Candidate> live = CopyCandidates(cluster);
  std::erase_if(live, [&](const Candidate& c) { return HasFailed(cluster, c.name, now); });
  std::vector<std::string> chain;
  std::set<std::string> zones;
  while (chain.size() < job().storage().replicas()) {
    const std::string name = ChooseCopy(live, zones, state_.servers(slot).name(), NeedNow(cluster));
    if (name.empty()) break;
    zones.insert(ZoneOf(cluster.members->Find(name)->record));
    chain.push_back(name);
  }
  return chain;
}

std::optional<CopyRecord> JobMachine::CopyCandidate(const ClusterView& cluster, int slot,
                                                    absl::Time now) {
  if (state_.phase() != TRAINING) return std::nullopt;
  const ChainRecord& chain = state_.servers(slot).chain();
  const std::set<std::string> zones = ZonesOf(*cluster.members, chain);
  std::vector<Candidate> live = CopyCandidates(cluster);
  std::erase_if(live, [&](const Candidate& c) {
    return HasFailed(cluster, c.name, now) || SeenClosed(*cluster.members, c.name);
  });
  const std::string name = ChooseCopy(live, zones, state_.servers(slot).name(), NeedNow(cluster));
  if (name.empty()) return std::nullopt;
  CopyRecord copy;
  copy.set_server(name);
  copy.set_log_id(cluster.draw_log_id());
  // The process that is to have it: another one of that name begins anew.
  copy.set_opened_session(cluster.members->Find(name)->record.session());
  return copy;
}

// Empty: a copy is being made, or one can be, or this is no time for one.
std::string JobMachine::DescribeLack(const ClusterView& cluster, int slot, absl::Time now) const {
  const ChainRecord& chain = state_.servers(slot).chain();
  const bool all_full = static_cast<int>(chain.full()) == chain.members_size();
  if (state_.phase() != TRAINING || !all_full || chain.has_joining()) return "";
  const std::set<std::string> zones = ZonesOf(*cluster.members, chain);
  const std::vector<Candidate> live = CopyCandidates(cluster);
  std::vector<CopyRefusal> refusals;
  std::vector<Candidate> free;
  for (const auto& [name, node] : cluster.members->nodes()) {
    if (node.record.role() != SERVER || FindCopy(chain, name) != nullptr) continue;
    CopyRefusal& refusal = refusals.emplace_back(CopyRefusal{.server = name});
    const auto at = std::find_if(live.begin(), live.end(),
                                 [&name](const Candidate& c) { return c.name == name; });
    const auto failed = failed_copies_.Until(name, node.record.session(), now);
    if (at == live.end()) {
      refusal.why = CopyRefusal::kSilent;
    } else if (SeenClosed(*cluster.members, name)) {
      refusal.why = CopyRefusal::kEnded;
    } else if (zones.contains(at->zone)) {
      refusal.why = CopyRefusal::kZone;
      refusal.zone = at->zone;
    } else if (failed) {
      refusal.why = CopyRefusal::kFailed;
      refusal.until = *failed;
    } else {
      refusal.why = at->able ? CopyRefusal::kRoom : CopyRefusal::kGpu;
      free.push_back(*at);
    }
  }
  const bool one = !ChooseCopy(free, zones, chain.members(0).server(), NeedNow(cluster)).empty();
  return one ? "" : DescribeRefusals(refusals);
}

}  // namespace strata::scheduler
