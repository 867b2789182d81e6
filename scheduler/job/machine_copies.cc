// JobMachine: what copies of shards say and are told, where a job's servers have some.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/job/chains/chain_machine.h"
#include "scheduler/job/chains/copy_view.h"
#include "scheduler/job/machine.h"
#include "scheduler/nodes/placement.h"

namespace strata::scheduler {

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

void JobMachine::AddChain(const Membership& members, int slot, int place,
                          ServerJobDirective& out) const {
  const ChainRecord& record = state_.servers(slot).chain();
  const auto fill = [&members](const CopyRecord& copy, ChainMember* member) {
    const Node* const node = members.Find(copy.server(), SERVER);
    member->set_server(copy.server());
    if (node != nullptr) member->set_data_address(node->record.data_address());
    member->set_log_id(copy.log_id());
  };
  ChainDirective& chain = *out.mutable_chain();
  chain.set_chain_epoch(record.chain_epoch());
  for (const CopyRecord& copy : record.members()) fill(copy, chain.add_members());
  chain.set_place(static_cast<uint32_t>(place));
  chain.set_full(record.full());
  if (record.has_joining()) fill(record.joining(), chain.mutable_joining());
  chain.set_min_replicas(job().storage().min_replicas());
}

void JobMachine::AddCopies(const Membership& members, int slot, ShardServer& out) const {
  const ChainRecord& chain = state_.servers(slot).chain();
  out.set_chain_epoch(chain.chain_epoch());
  const auto add = [&](const CopyRecord& copy, CopyStatus::Role role) {
    CopyStatus& status = *out.add_copies();
    const Node* const node = members.Find(copy.server(), SERVER);
    status.set_server(copy.server());
    status.set_zone(node == nullptr ? "" : ZoneOf(node->record));
    status.set_role(role);
    status.set_alive(node != nullptr && node->alive);
    const auto view = servers_[slot].chain.copies.find(copy.server());
    if (view == servers_[slot].chain.copies.end() || !view->second.last.has_copy()) return;
    *status.mutable_report() = view->second.last.copy();
  };
  for (int i = 0; i < chain.members_size(); ++i) {
    const bool full = i < static_cast<int>(chain.full());
    add(chain.members(i), i == 0 ? CopyStatus::HEAD
                          : full ? CopyStatus::BACKUP
                                 : CopyStatus::LEARNER);
  }
  if (chain.has_joining()) add(chain.joining(), CopyStatus::JOINING);
}

}  // namespace strata::scheduler
