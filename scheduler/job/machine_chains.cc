// JobMachine: which servers have the copies of a job's shards, when each changes, and what becomes
// of a job whose last copies are away. The rules are those of chains/chain_machine.h.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/job/storage_spec.h"
#include "scheduler/job/chains/chain_machine.h"
#include "scheduler/job/chains/copy_view.h"
#include "scheduler/job/machine.h"
#include "scheduler/nodes/placement.h"
#include "scheduler/nodes/troubles.h"

namespace strata::scheduler {
namespace {

// For people, where a copy that had all fails and no other has.
std::string DescribeLastCopy(const std::string& shards) {
  return absl::StrCat(
      "; no other copy of ", shards, " is left: what was committed since the last ",
      "checkpoint is lost. Submit the job again: with --resume it goes on from the ",
      "newest checkpoint in spec.checkpoint.directory");
}

}  // namespace

std::string JobMachine::ShardsOf(int slot) const {
  std::vector<uint32_t> shards;
  for (const ShardAssignment& s : state_.shards()) {
    if (static_cast<int>(s.server()) == slot) shards.push_back(s.shard());
  }
  if (shards.size() < 2) return absl::StrCat("shard ", shards.empty() ? 0 : shards.front());
  const auto [first, last] = std::minmax_element(shards.begin(), shards.end());
  return absl::StrCat("shards ", *first, "-", *last);
}

std::vector<std::string> JobMachine::Holders() const {
  std::vector<std::string> holders;
  for (const ServerSlot& slot : state_.servers()) {
    if (!slot.has_chain()) holders.push_back(slot.name());
    for (const CopyRecord& member : slot.chain().members()) holders.push_back(member.server());
    if (slot.chain().has_joining()) holders.push_back(slot.chain().joining().server());
  }
  return holders;
}

bool JobMachine::LacksCopies() const {
  const auto lacks = [](const ServerSlot& slot) { return slot.chain().short_since_unix_ms() != 0; };
  return !over() && std::any_of(state_.servers().begin(), state_.servers().end(), lacks);
}

// -1: the node has no part in it.
int JobMachine::SlotOf(const Node& node, const ServerJobReport& report) const {
  const std::string& name = node.record.name();
  for (int i = 0; i < state_.servers_size(); ++i) {
    const ServerSlot& slot = state_.servers(i);
    if (!slot.has_chain() && slot.name() == name) return i;
    const bool meant = static_cast<int>(report.server_index()) == i;
    if (meant && FindCopy(slot.chain(), name) != nullptr) return i;
  }
  return -1;
}

google::protobuf::RepeatedPtrField<Trouble> JobMachine::TroublesOf(const std::string& node) const {
  google::protobuf::RepeatedPtrField<Trouble> all;
  for (const ServerView& view : servers_) {
    const auto copy = view.chain.copies.find(node);
    if (copy != view.chain.copies.end()) all.MergeFrom(copy->second.last.troubles());
  }
  return all;
}

// Whether the slot's head says something that is more than its being there.
bool JobMachine::OnCopyReport(int slot, const Node& node, const ServerJobReport& report,
                              absl::Time now) {
  const std::string& name = node.record.name();
  CopyView& view = servers_[slot].chain.copies[name];
  CopyRecord& copy = *FindCopy(*state_.mutable_servers(slot)->mutable_chain(), name);
  if (view.session != node.record.session()) return false;
  const bool head = state_.servers(slot).name() == name;
  switch (HearCopy(node, report, state_.generation(), !state_.restore_from().empty(), now, copy,
                   view)) {
    case CopyWord::kNothing:
    case CopyWord::kLost:
      return false;
    case CopyWord::kOpening:
      return head;
    case CopyWord::kWaits:
      if (!head) SayAgain("ServerWaits", view.waits, now);
      return head;
    case CopyWord::kOpen:
      break;
  }
  if (!head) SayTroubles(name, TroublesOf(name), now);
  return head;
}

absl::Duration JobMachine::Patience(absl::Duration lease) const {
  const absl::Duration given = spec::ReplaceAfter(job().recovery(), absl::ZeroDuration());
  return given > absl::ZeroDuration() ? std::max(lease, given) : lease * (1 + kReturnLeases);
}

std::string JobMachine::DescribeStart() const {
  const std::string newest = NewestFolder();
  return newest.empty() ? "the beginning, as no checkpoint was completed yet"
                        : absl::StrCat("checkpoint ", newest);
}

// All are full: they begin from nothing, or each by itself from the same checkpoint.
void JobMachine::BeginChain(const ClusterView& cluster, const std::vector<std::string>& servers,
                            int slot, absl::Time now) {
  ServerSlot& record = *state_.mutable_servers(slot);
  record.Clear();
  record.set_name(servers.front());
  servers_[slot] = {};
  if (!Replicated()) return;
  ChainRecord& chain = *record.mutable_chain();
  chain.set_chain_epoch(state_.map_epoch());
  chain.set_full(static_cast<uint32_t>(servers.size()));
  for (const std::string& name : servers) {
    CopyRecord* const copy = chain.add_members();
    copy->set_server(name);
    copy->set_log_id(cluster.draw_log_id());
    servers_[slot].chain.copies[name] = {};
  }
  NoteShort(job().storage().replicas(), absl::ToUnixMillis(now), chain);
}

ChainFacts JobMachine::ChainFactsOf(const ClusterView& cluster, int slot, absl::Time now) {
  const ChainRecord& chain = state_.servers(slot).chain();
  const auto of = [&](const CopyRecord& copy) {
    return FactsOf(*cluster.members, chain, state_.generation(), copy, servers_[slot].chain, now);
  };
  ChainFacts facts;
  for (const CopyRecord& member : chain.members()) facts.members.push_back(of(member));
  if (chain.has_joining()) facts.joining = of(chain.joining());
  facts.replicas = job().storage().replicas();
  facts.bsp = bsp();
  facts.candidate = [this, &cluster, slot, now] { return CopyCandidate(cluster, slot, now); };
  facts.next_epoch = state_.map_epoch() + 1;
  facts.now_unix_ms = absl::ToUnixMillis(now);
  facts.shards = ShardsOf(slot);
  return facts;
}

void JobMachine::Configure(const Membership& members, int slot, const ChainChange& change,
                           absl::Time now) {
  ServerSlot& record = *state_.mutable_servers(slot);
  const ChainRecord before = record.chain();
  *record.mutable_chain() = change.next;
  for (const std::string& name : change.failed) {
    failed_copies_.Add(name, servers_[slot].chain.copies[name].session,
                       now + kRereadLeases * members.lease(), now);
  }
  const bool joined = before.has_joining() && !change.next.has_joining();
  if (joined) {
    CopyRecord* const member = FindCopy(*record.mutable_chain(), before.joining().server());
    if (member != nullptr) member->set_opened_generation(state_.generation());
  }
  if (change.next.chain_epoch() != before.chain_epoch()) {
    state_.set_map_epoch(change.next.chain_epoch());
    if (!bsp()) AbortCuts();
  }
  TakeChange(before, change.next, servers_[slot].chain);
  SeeCopies(members, record.chain(), now, servers_[slot].chain);
  if (record.name() != change.next.members(0).server()) Promote(slot);
  Say(change.reason, change.text, now);
}

// Its clock goes on. What it was told of cuts, nobody told it; the one before may finish files of
// them.
void JobMachine::Promote(int slot) {
  ServerSlot& record = *state_.mutable_servers(slot);
  const std::string before = record.name();
  const CopyRecord& head = record.chain().members(0);
  record.set_name(head.server());
  record.set_opened_generation(head.opened_generation());
  record.set_opened_session(head.opened_session());
  state_.set_left_writers(true);
  if (!Hosts(before)) ForgetTroubles(before, *state_.mutable_troubles());
  ServerView& view = servers_[slot];
  const CopyView& copy = view.chain.copies[head.server()];
  view.session = copy.session;
  view.last = copy.last;
  view.last.clear_cuts();
  view.last.clear_lane_epoch();
  view.last.clear_given_up_through();
  view.unread.clear();
  view.waits.clear();
  ServerBeganAgain(slot);
}

bool JobMachine::WatchCopies(const ClusterView& cluster, int slot, absl::Time now,
                             std::vector<std::string>& lost) {
  ChainView& view = servers_[slot].chain;
  SeeCopies(*cluster.members, state_.servers(slot).chain(), now, view);
  NoteTrouble(*cluster.members, state_.servers(slot).chain(), state_.generation(), now, view);
  while (true) {
    const ChainFacts facts = ChainFactsOf(cluster, slot, now);
    const ChainRecord& chain = state_.servers(slot).chain();
    const auto change = NextConfiguration(chain, facts);
    if (change) {
      Configure(*cluster.members, slot, *change, now);
      continue;
    }
    switch (JudgeCopies(chain, facts)) {
      case CopiesVerdict::kServed:
      case CopiesVerdict::kOpening:
        return false;
      case CopiesVerdict::kAway:
        return CopiesAreAway(cluster, slot, now, lost);
      case CopiesVerdict::kLost:
        return CopiesAreLost(slot, now);
    }
  }
}

// True: the job is over, or a generation began.
bool JobMachine::CopiesAreLost(int slot, absl::Time now) {
  std::vector<std::string> why;
  bool unread = true;
  const ChainRecord& chain = state_.servers(slot).chain();
  for (int i = 0; i < static_cast<int>(chain.full()); ++i) {
    const CopyView& copy = servers_[slot].chain.copies[chain.members(i).server()];
    if (copy.failed) {
      const bool had = chain.members(i).opened_generation() == state_.generation();
      End(FAILED, "ServerFailed",
          absl::StrCat(copy.why, had ? DescribeLastCopy(ShardsOf(slot)) : ""), now);
      return true;
    }
    unread = unread && copy.unread;
    why.push_back(copy.why);
  }
  if (unread) {  // WatchReads judges it
    servers_[slot].unread = absl::StrJoin(why, "; ");
    return false;
  }
  RollBack(
      absl::StrCat(ShardsOf(slot), " are lost, with the last copy: ", absl::StrJoin(why, "; ")),
      now);
  return true;
}

bool JobMachine::CopiesAreAway(const ClusterView& cluster, int slot, absl::Time now,
                               std::vector<std::string>& lost) {
  const ChainRecord& chain = state_.servers(slot).chain();
  ServerFacts facts;
  facts.silent = absl::InfiniteDuration();
  facts.patience = Patience(cluster.members->lease());
  facts.from = DescribeStart();
  std::vector<AwayCopy> away;
  for (int i = 0; i < static_cast<int>(chain.full()); ++i) {
    const CopyRecord& copy = chain.members(i);
    const CopyView& view = servers_[slot].chain.copies[copy.server()];
    const Node* const node = cluster.members->Find(copy.server(), SERVER);
    away.push_back({copy.server(), node == nullptr ? absl::InfinitePast() : node->last_seen,
                    view.lost ? view.why : ""});
    facts.opened = facts.opened || copy.opened_generation() == state_.generation();
    if (!view.lost && node != nullptr) facts.silent = std::min(facts.silent, node->silence);
  }
  const std::vector<std::string> others = FreeChain(cluster, slot, now);
  facts.replaceable = !others.empty();
  if (JudgeServer(facts, cluster.members->lease()) != ServerVerdict::kReplace) {
    lost.push_back(DescribeAwayCopies(ShardsOf(slot), away, facts, cluster.members->lease()));
    return false;
  }
  std::vector<std::string> names;
  for (const AwayCopy& copy : away) {
    names.push_back(copy.server);
    ForgetTroubles(copy.server, *state_.mutable_troubles());
  }
  state_.set_map_epoch(state_.map_epoch() + 1);
  state_.set_left_writers(true);
  BeginChain(cluster, others, slot, now);
  RollBack(absl::StrCat(ShardsOf(slot), " are lost, with their last copies: ",
                        absl::StrJoin(names, ", "), " stayed away; ", absl::StrJoin(others, ", "),
                        others.size() == 1 ? " takes" : " take", " their place"),
           now);
  return true;
}

// A standing condition: it goes when nothing is missing.
void JobMachine::TellShort(const ClusterView& cluster, absl::Time now) {
  const StorageSpec& storage = job().storage();
  std::vector<std::string> lines;
  for (int i = 0; i < state_.servers_size(); ++i) {
    std::string line = DescribeShort(state_.servers(i).chain(), storage.replicas(),
                                     storage.min_replicas(), ShardsOf(i));
    if (line.empty()) continue;
    if (const std::string lack = DescribeLack(cluster, i, now); !lack.empty()) {
      absl::StrAppend(&line, "; ", lack);
    }
    lines.push_back(std::move(line));
  }
  static constexpr char kReason[] = "UnderReplicated";
  const std::string text = absl::StrJoin(lines, "; ");
  auto& all = *state_.mutable_conditions();
  const auto it = std::find_if(all.begin(), all.end(),
                               [](const JobCondition& c) { return c.reason() == kReason; });
  if (it == all.end()) {
    if (!text.empty()) Say(kReason, text, now);
    return;
  }
  if (text.empty()) {
    all.erase(it);
    Say("Replicated", absl::StrCat("all shards have ", storage.replicas(), " copies again"), now);
  } else if (text != it->message()) {
    it->set_message(text);
    events_.Condition(kReason, text);
  }
}

}  // namespace strata::scheduler
