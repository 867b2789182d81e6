// JobMachine: what is kept of a job that is over.
#include "scheduler/job/machine.h"

namespace strata::scheduler {

// What shows it stays: its status, the shape of its input, where its checkpoints are. The input's
// tasks, which of them are done, and what each checkpoint holds of them are of use to nobody any
// more, and are nearly all of its records.
void JobMachine::DropBulk() {
  ledger_.reset();
  if (cuts_) cuts_->Over();
  if (!index_) return;
  index_->mutable_train()->clear_tasks();
  index_->mutable_train()->clear_files();
  index_->clear_eval();
}

void JobMachine::ForgetTicket(uint64_t ticket) {
  std::erase(tickets_, ticket);
  ticket_results_.erase(ticket);
}

}  // namespace strata::scheduler
