#include "scheduler/job/chains/chain_machine.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "proto/core/mutation.h"

namespace strata::scheduler {
namespace {

// Whether it holds its shards open.
bool IsWell(const CopyFacts& copy) { return !IsInTrouble(copy) && !copy.opens; }

std::string DescribeTrouble(const std::string& server, const CopyFacts& copy) {
  if (copy.lost) return absl::StrCat("server ", server, " has lost its copy (", copy.why, ")");
  if (copy.alive && copy.overdue) {
    return absl::StrCat("server ", server, " does not open its copy",
                        copy.why.empty() ? "" : absl::StrCat(" (", copy.why, ")"));
  }
  if (copy.restarted) return absl::StrCat("server ", server, " was restarted");
  if (!copy.alive) {
    return absl::StrCat("server ", server,
                        " is silent (the scheduler has not heard it for a lease)");
  }
  return absl::StrCat("server ", server, " has ended or answers nobody, as a server beside it saw");
}

// By place: the full member by whose word others leave; -1: none answers. Two that saw each other's
// connections close are both there: the first of them that is heard of after that stays.
int WhoAnswers(const ChainRecord& now, const ChainFacts& facts) {
  int closed = -1;
  const int full =
      STRATA_MUTATION("chain.learner_promoted") ? now.members_size() : static_cast<int>(now.full());
  for (int i = 0; i < full; ++i) {
    const CopyFacts& copy = facts.members[static_cast<size_t>(i)];
    const bool there =
        copy.alive && copy.opened && !copy.restarted && !copy.lost && !copy.opens && !copy.overdue;
    const bool answered = copy.answered || STRATA_MUTATION("chain.silent_answers");
    if (!there || !answered) continue;
    if (!copy.closed) return i;
    if (closed < 0) closed = i;
  }
  return closed;
}

std::optional<ChainChange> RemoveMembers(const ChainRecord& now, const ChainFacts& facts) {
  const int answers = WhoAnswers(now, facts);
  if (answers < 0) return std::nullopt;
  ChainChange change{.next = now, .reason = "CopyLost"};
  change.next.clear_members();
  change.next.set_full(0);
  std::vector<std::string> why;
  for (int i = 0; i < now.members_size(); ++i) {
    const CopyRecord& member = now.members(i);
    const CopyFacts& copy = facts.members[static_cast<size_t>(i)];
    const bool full = i < static_cast<int>(now.full());
    if (i == answers || !IsInTrouble(copy)) {
      *change.next.add_members() = member;
      if (full) change.next.set_full(change.next.full() + 1);
      continue;
    }
    why.push_back(DescribeTrouble(member.server(), copy));
    if (copy.lost) change.failed.push_back(member.server());
  }
  if (why.empty()) return std::nullopt;
  // Whoever copied from the last member has what that one's log had, and the next one's log may not
  // reach back so far (R14).
  const std::string& last = now.members(now.members_size() - 1).log_id();
  if (change.next.members(change.next.members_size() - 1).log_id() != last &&
      !STRATA_MUTATION("chain.joins_another")) {
    change.next.clear_joining();
  }
  const std::string& head = change.next.members(0).server();
  const bool promoted = head != now.members(0).server();
  if (promoted) change.reason = "Promoted";
  change.text = absl::StrCat(
      absl::StrJoin(why, ", "), "; ", promoted ? "its copy on server " : "server ", head,
      promoted ? " takes over " : " goes on with ", facts.shards, ", epoch ", facts.next_epoch);
  change.next.set_chain_epoch(facts.next_epoch);
  return change;
}

std::optional<ChainChange> GiveUpJoining(const ChainRecord& now, const ChainFacts& facts) {
  if (!now.has_joining() || !facts.joining || !IsInTrouble(*facts.joining)) return std::nullopt;
  const std::string& server = now.joining().server();
  ChainChange change{.next = now, .reason = "CopyGivenUp"};
  change.next.clear_joining();
  if (facts.joining->lost) change.failed.push_back(server);
  change.text = absl::StrCat(DescribeTrouble(server, *facts.joining), "; the copy of ",
                             facts.shards, " that it was to have is given up");
  return change;
}

// Whether both speak of this very configuration.
bool KnowIt(const ChainRecord& now, const CopyFacts& copy) {
  return copy.report != nullptr &&
         (copy.report->chain_epoch() == now.chain_epoch() || STRATA_MUTATION("chain.full_early"));
}

std::optional<ChainChange> MakeFull(const ChainRecord& now, const ChainFacts& facts) {
  const size_t learner = now.full();
  if (learner == 0 || learner >= facts.members.size()) return std::nullopt;
  const CopyFacts &before = facts.members[learner - 1], &copy = facts.members[learner];
  if (!IsWell(before) || !IsWell(copy)) return std::nullopt;
  if (!KnowIt(now, before) || !KnowIt(now, copy) || !before.report->next_has_all()) {
    return std::nullopt;
  }
  ChainChange change{.next = now, .reason = "CopyComplete"};
  change.next.set_full(now.full() + 1);
  change.text =
      absl::StrCat("server ", now.members(static_cast<int>(learner)).server(), " has all of ",
                   facts.shards, ": ", change.next.full(), " of ", facts.replicas, " copies");
  return change;
}

using CopyEnds = google::protobuf::RepeatedPtrField<CopyEnd>;

// Null: the shard is still being copied.
const CopyEnd* EndOf(const CopyEnds& ends, uint32_t shard) {
  const auto is_it = [shard](const CopyEnd& end) { return end.shard() == shard; };
  const auto end = std::find_if(ends.begin(), ends.end(), is_it);
  return end == ends.end() ? nullptr : &*end;
}

// As the last member sees the one that it copies to, where that one has so much by its own word:
// the last member may speak of another one yet, which it copied to before under this very epoch.
bool IsNearlyThere(const CopyReport& last, const CopyReport& joining, bool bsp) {
  if (last.ends().empty()) return false;
  bool few_steps = true;
  for (const CopyEnd& end : last.ends()) {
    const CopyEnd* const next = EndOf(last.next_ends(), end.shard());
    const CopyEnd* const own = EndOf(joining.ends(), end.shard());
    if (next == nullptr) return false;
    const bool has_it = own != nullptr && std::make_pair(own->step(), own->cut()) >=
                                              std::make_pair(next->step(), next->cut());
    if (!has_it && !STRATA_MUTATION("chain.joins_by_late_words")) return false;
    few_steps = few_steps && next->step() + kSmallLagSteps >= end.step();
  }
  return (bsp && few_steps) || last.lag_bytes() <= kSmallLagBytes;
}

std::optional<ChainChange> TakeIn(const ChainRecord& now, const ChainFacts& facts) {
  const bool all_full = static_cast<int>(now.full()) == now.members_size();
  if (!now.has_joining() || !facts.joining || !all_full || facts.members.empty()) {
    return std::nullopt;
  }
  const CopyFacts& last = facts.members.back();
  if (!IsWell(last) || !KnowIt(now, last) || facts.joining->report == nullptr ||
      !IsNearlyThere(*last.report, *facts.joining->report, facts.bsp)) {
    return std::nullopt;
  }
  ChainChange change{.next = now, .reason = "CopyJoined"};
  *change.next.add_members() = now.joining();
  change.next.clear_joining();
  if (STRATA_MUTATION("chain.learner_is_full")) change.next.set_full(now.full() + 1);
  change.next.set_chain_epoch(facts.next_epoch);
  change.text = absl::StrCat("server ", now.joining().server(), " has nearly all of ", facts.shards,
                             " and follows each commit, epoch ", facts.next_epoch);
  return change;
}

std::optional<ChainChange> BeginToCopy(const ChainRecord& now, const ChainFacts& facts) {
  const bool all_full = static_cast<int>(now.full()) == now.members_size();
  const bool wanted = all_full && !now.has_joining() && now.full() < facts.replicas;
  if (!wanted || facts.candidate == nullptr || facts.members.empty()) return std::nullopt;
  // After a restart of the scheduler it may be dead, and only not be found out yet.
  const CopyFacts& last = facts.members.back();
  if (!IsWell(last) || !last.opened || last.report == nullptr) return std::nullopt;
  auto chosen = facts.candidate();
  if (!chosen) return std::nullopt;
  ChainChange change{.next = now, .reason = "CopyBegun"};
  change.text = absl::StrCat("server ", now.members(now.members_size() - 1).server(), " copies ",
                             facts.shards, " to server ", chosen->server());
  *change.next.mutable_joining() = *std::move(chosen);
  return change;
}

}  // namespace

bool IsInTrouble(const CopyFacts& copy) {
  return !copy.alive || (copy.restarted && !copy.opens) || copy.overdue || copy.closed || copy.lost;
}

std::optional<ChainChange> NextConfiguration(const ChainRecord& now, const ChainFacts& facts) {
  std::optional<ChainChange> change = RemoveMembers(now, facts);
  if (!change) change = GiveUpJoining(now, facts);
  if (!change) change = MakeFull(now, facts);
  if (!change) change = TakeIn(now, facts);
  if (!change) change = BeginToCopy(now, facts);
  if (change) NoteShort(facts.replicas, facts.now_unix_ms, change->next);
  return change;
}

CopiesVerdict JudgeCopies(const ChainRecord& now, const ChainFacts& facts) {
  bool opening = false, lost = true;
  for (size_t i = 0; i < now.full(); ++i) {
    const CopyFacts& copy = facts.members[i];
    lost = lost && copy.lost;
    if (!copy.alive || copy.lost) continue;
    if (copy.opened && !copy.restarted && !copy.opens && !copy.overdue) {
      return CopiesVerdict::kServed;
    }
    opening = true;
  }
  if (opening) return CopiesVerdict::kOpening;
  return lost ? CopiesVerdict::kLost : CopiesVerdict::kAway;
}

const CopyRecord* FindCopy(const ChainRecord& chain, const std::string& server) {
  for (const CopyRecord& member : chain.members()) {
    if (member.server() == server) return &member;
  }
  const bool joins = chain.has_joining() && chain.joining().server() == server;
  return joins ? &chain.joining() : nullptr;
}

CopyRecord* FindCopy(ChainRecord& chain, const std::string& server) {
  return const_cast<CopyRecord*>(FindCopy(std::as_const(chain), server));
}

void NoteShort(uint32_t replicas, int64_t now_unix_ms, ChainRecord& chain) {
  if (chain.full() >= replicas) {
    chain.clear_short_since_unix_ms();
  } else if (chain.short_since_unix_ms() == 0) {
    chain.set_short_since_unix_ms(now_unix_ms);
  }
}

void BeginChainAnew(uint32_t replicas, ChainRecord& chain) {
  chain.set_full(static_cast<uint32_t>(chain.members_size()));
  chain.clear_joining();
  NoteShort(replicas, chain.short_since_unix_ms(), chain);
}

std::string DescribeShort(const ChainRecord& chain, uint32_t replicas, uint32_t min_replicas,
                          const std::string& shards) {
  if (chain.full() >= replicas) return "";
  std::vector<std::string> full;
  for (int i = 0; i < static_cast<int>(chain.full()); ++i) {
    full.push_back(chain.members(i).server());
  }
  std::string text = absl::StrCat(
      shards, " have ", full.size(), " of ", replicas, " copies (", absl::StrJoin(full, ", "),
      ") since ",
      absl::FormatTime("%H:%M:%S UTC", absl::FromUnixMillis(chain.short_since_unix_ms()),
                       absl::UTCTimeZone()));
  if (full.size() < min_replicas) {
    absl::StrAppend(&text, "; spec.storage.minReplicas is ", min_replicas, ": commits wait");
  }
  if (static_cast<int>(chain.full()) < chain.members_size()) {
    absl::StrAppend(&text, "; ", chain.members(chain.members_size() - 1).server(), " is joining");
  } else if (chain.has_joining()) {
    absl::StrAppend(&text, "; ", chain.joining().server(), " is being copied to");
  }
  return text;
}

}  // namespace strata::scheduler
