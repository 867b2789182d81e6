#include "scheduler/job/chains/chain_words.h"

#include "scheduler/nodes/placement.h"

namespace strata::scheduler {

ChainDirective TellChain(const Membership& members, const ChainRecord& chain, int place,
                         uint32_t min_replicas) {
  const auto fill = [&members](const CopyRecord& copy, ChainMember* member) {
    const Node* const node = members.Find(copy.server(), SERVER);
    member->set_server(copy.server());
    if (node != nullptr) member->set_data_address(node->record.data_address());
    member->set_log_id(copy.log_id());
  };
  ChainDirective out;
  out.set_chain_epoch(chain.chain_epoch());
  for (const CopyRecord& copy : chain.members()) fill(copy, out.add_members());
  out.set_place(static_cast<uint32_t>(place));
  out.set_full(chain.full());
  if (chain.has_joining()) fill(chain.joining(), out.mutable_joining());
  out.set_min_replicas(min_replicas);
  return out;
}

void ShowCopies(const Membership& members, const ChainRecord& chain, const ChainView& view,
                ShardServer& out) {
  out.set_chain_epoch(chain.chain_epoch());
  const auto add = [&](const CopyRecord& copy, CopyStatus::Role role) {
    CopyStatus& status = *out.add_copies();
    const Node* const node = members.Find(copy.server(), SERVER);
    status.set_server(copy.server());
    status.set_zone(node == nullptr ? "" : ZoneOf(node->record));
    status.set_role(role);
    status.set_alive(node != nullptr && node->alive);
    const auto seen = view.copies.find(copy.server());
    if (seen == view.copies.end() || !seen->second.last.has_copy()) return;
    *status.mutable_report() = seen->second.last.copy();
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
