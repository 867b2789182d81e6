#include "scheduler/job/chains/copy_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"

namespace strata::scheduler {

std::set<std::string> ServersOf(const ChainRecord& chain) {
  std::set<std::string> servers;
  for (const CopyRecord& member : chain.members()) servers.insert(member.server());
  if (chain.has_joining()) servers.insert(chain.joining().server());
  return servers;
}

namespace {

// Whether `by` says that the connection of the process that `node` is now was closed.
bool NamesClosed(const Node& by, const Node& node) {
  if (!by.alive || &by == &node) return false;
  return std::any_of(by.peers.begin(), by.peers.end(), [&node](const PeerTrouble& peer) {
    return peer.kind() == PeerTrouble::CLOSED && peer.role() == SERVER &&
           peer.name() == node.record.name() && peer.incarnation() == node.record.incarnation();
  });
}

}  // namespace

bool NamedClosed(const Membership& members, const ChainRecord& chain, const std::string& server) {
  const Node* const node = members.Find(server, SERVER);
  if (node == nullptr) return false;
  const auto says_so = [&](const CopyRecord& other) {
    const Node* const by = members.Find(other.server(), SERVER);
    return by != nullptr && NamesClosed(*by, *node);
  };
  if (STRATA_MUTATION("chain.anybody_names_closed")) {
    return (chain.has_joining() && says_so(chain.joining())) ||
           std::any_of(chain.members().begin(), chain.members().end(), says_so);
  }
  return std::any_of(chain.members().begin(),
                     chain.members().begin() + static_cast<int>(chain.full()), says_so);
}

bool SeenClosed(const Membership& members, const std::string& server) {
  const Node* const node = members.Find(server, SERVER);
  if (node == nullptr) return false;
  const auto& all = members.nodes();
  return std::any_of(all.begin(), all.end(),
                     [node](const auto& by) { return NamesClosed(by.second, *node); });
}

void SeeCopies(const Membership& members, const ChainRecord& chain, absl::Time now,
               ChainView& view) {
  for (const std::string& name : ServersOf(chain)) {
    const Node* const node = members.Find(name, SERVER);
    const uint64_t session = node == nullptr ? 0 : node->record.session();
    CopyView& copy = view.copies[name];
    if (copy.session != session) copy = CopyView{.session = session, .seen = now};
  }
}

void NoteTrouble(const Membership& members, const ChainRecord& chain, uint64_t generation,
                 absl::Time now, ChainView& view) {
  std::set<std::string> troubled, fresh;
  for (const std::string& name : ServersOf(chain)) {
    if (!IsInTrouble(FactsOf(members, chain, generation, *FindCopy(chain, name), view, now))) {
      continue;
    }
    troubled.insert(name);
    if (!view.troubled.contains(name)) fresh.insert(name);
  }
  view.troubled = troubled;
  if (fresh.empty()) return;
  for (auto& [name, copy] : view.copies) {
    const Node* const node = members.Find(name, SERVER);
    const bool names_one =
        node != nullptr && !troubled.contains(name) &&
        std::any_of(node->peers.begin(), node->peers.end(), [&fresh](const PeerTrouble& peer) {
          return peer.kind() == PeerTrouble::CLOSED && fresh.contains(peer.name());
        });
    copy.counted = copy.reports - (names_one && copy.reports > 0 ? 1 : 0);
  }
}

void TakeChange(const ChainRecord& before, const ChainRecord& next, ChainView& view) {
  const std::set<std::string> there = ServersOf(next);
  std::erase_if(view.copies, [&there](const auto& copy) { return !there.contains(copy.first); });
  std::erase_if(view.troubled, [&there](const std::string& name) { return !there.contains(name); });
  if (!next.has_joining() || before.has_joining()) return;
  // Of the copy after it the last member speaks anew.
  const CopyRecord& last = next.members(next.members_size() - 1);
  view.copies[last.server()].last.mutable_copy()->clear_next_ends();
  view.copies[next.joining().server()] = {};
}

CopyFacts FactsOf(const Membership& members, const ChainRecord& chain, uint64_t generation,
                  const CopyRecord& copy, const ChainView& view, absl::Time now) {
  const Node* const node = members.Find(copy.server(), SERVER);
  const bool joins = chain.has_joining() && chain.joining().server() == copy.server();
  const bool had = copy.opened_generation() == generation;
  const bool same = node != nullptr && copy.opened_session() == node->record.session();
  CopyFacts facts;
  facts.alive = node != nullptr && node->alive;
  facts.opened = had && same;
  facts.restarted = node != nullptr && (had || joins) && !same;
  facts.closed = NamedClosed(members, chain, copy.server());
  const auto found = view.copies.find(copy.server());
  if (found == view.copies.end()) return facts;
  const CopyView& seen = found->second;
  facts.lost = seen.lost;
  facts.why = seen.lost ? seen.why : seen.waits;
  facts.answered = seen.reports > seen.counted;
  const CopyReport& report = seen.last.copy();
  if (report.log_id() == copy.log_id() && !copy.log_id().empty()) facts.report = &report;
  // Who joins and begins anew has nothing of it.
  if (joins || !had || (!facts.restarted && !seen.opening)) return facts;
  std::optional<absl::Time> since = seen.held_up;
  if (!since && facts.opened) since = seen.opening;
  if (!since && !seen.opening) since = seen.seen;
  facts.overdue = since && now - *since > members.lease();
  facts.opens = !facts.overdue;
  if (STRATA_MUTATION("chain.restarted_is_lost")) facts.opens = facts.overdue = false;
  return facts;
}

CopyWord HearCopy(const Node& node, const ServerJobReport& report, uint64_t generation,
                  bool restored, absl::Time now, CopyRecord& copy, CopyView& view) {
  ++view.reports;
  const std::string what = absl::StrCat(node.record.name(), ": ", report.message());
  const bool of_this = report.copy().log_id() == copy.log_id();
  switch (report.state()) {
    case ServerJobReport::FAILED:
    case ServerJobReport::LOST:
      if (!of_this && !STRATA_MUTATION("chain.late_word_counts")) return CopyWord::kNothing;
      view.lost = true;
      view.why = what;
      view.failed = report.state() == ServerJobReport::FAILED;
      view.unread = !view.failed && copy.opened_generation() != generation &&
                    report.reopened() == 0 && restored;
      return CopyWord::kLost;
    case ServerJobReport::OPENING: {
      *view.last.mutable_copy() = report.copy();
      if (of_this && !view.opening) view.opening = now;
      if (report.message().empty()) view.held_up.reset();
      if (report.message().empty()) return CopyWord::kOpening;
      if (of_this && !view.held_up) view.held_up = now;
      if (view.waits == what) return CopyWord::kOpening;
      view.waits = what;
      return CopyWord::kWaits;
    }
    case ServerJobReport::OPEN:
      break;
    default:
      return CopyWord::kNothing;
  }
  // Of an earlier copy, which it still has or had.
  if (!of_this) return CopyWord::kNothing;
  view.lost = view.failed = view.unread = false;
  view.opening.reset();
  view.held_up.reset();
  view.waits.clear();
  view.last = report;
  copy.set_opened_generation(generation);
  copy.set_opened_session(node.record.session());
  return CopyWord::kOpen;
}

}  // namespace strata::scheduler
