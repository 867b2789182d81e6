// JobMachine: what is kept of a job that is over, and what its checkpoint directory still needs.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/runtime/files/may_pass.h"
#include "scheduler/job/input_listing.h"
#include "scheduler/job/machine.h"

namespace strata::scheduler {
namespace {

// Looks for leftovers of a job that is over, where each failed.
constexpr int kMostLooks = 5;
constexpr absl::Duration kFirstPause = absl::Seconds(1);  // twice as long after each

}  // namespace

// What shows it stays: its status, the shape of its input, where its checkpoints are. The input's
// tasks, which of them are done, and what each checkpoint holds of them are of use to nobody any
// more, and are nearly all of its records.
void JobMachine::DropBulk() {
  ledger_.reset();
  if (cuts_) cuts_->Over();
  if (!index_) return;
  if (new_files_) *index_->mutable_train() = *std::exchange(new_files_, std::nullopt);
  index_->mutable_train()->clear_tasks();
  // Once: a record that was dropped before has no files any more.
  if (index_->train().files_size() > 0) index_->MergeFrom(ListingsOf(job().data(), *index_));
  index_->mutable_train()->clear_files();
  index_->clear_eval();
}

bool JobMachine::UsesCheckpoints() const {
  if (job().checkpoint().directory().empty()) return false;
  return !over() || !state_.removing().empty() || state_.leftovers();
}

bool JobMachine::ServersClose() const {
  const auto closes = [this](const std::string& server) {
    return KeepsRoomOn(server) && !stopped_.contains(server);
  };
  const std::vector<std::string> holders = Holders();
  return over() && std::any_of(holders.begin(), holders.end(), closes);
}

void JobMachine::Writes(absl::string_view server, bool writes) {
  if (!over()) return;
  if (!writes) {
    stopped_.emplace(server);
  } else if (const auto it = stopped_.find(server);
             it != stopped_.end() && !STRATA_MUTATION("checkpoint.stopped_for_good")) {
    stopped_.erase(it);
  }
}

void JobMachine::MayBeWrittenBy(absl::string_view server) {
  const std::vector<std::string> holders = Holders();
  const bool held = std::find(holders.begin(), holders.end(), server) != holders.end();
  const bool writes = KeepsRoomOn(server) && !stopped_.contains(server);
  if (held && writes && !STRATA_MUTATION("checkpoint.taken_name_forgotten")) {
    state_.set_left_writers(true);
  }
}

// The last look into the directory. Until its servers have closed the job they may finish files of
// which nobody hears any more; one that is away is waited for for half a lease, and what it writes
// later has names that nobody else's has (CheckpointLockMachine::GiveBack).
void JobMachine::AdvanceOver(absl::Duration lease, absl::Time now) {
  if (!over() || !state_.leftovers()) return;
  if (!last_look_.since) last_look_.since = now;
  const bool waits = ServersClose() && now - *last_look_.since < lease / 2 &&
                     !STRATA_MUTATION("cut.last_look_is_early");
  if (waits || last_look_.number != 0 || now < last_look_.next) return;
  if (cuts_ && !cuts_->Idle()) return;  // manifests are being written
  last_look_.number = LookForLeftovers({});
  if (last_look_.number == 0) state_.clear_leftovers();
}

void JobMachine::OnLeftoversRemoved(uint64_t number, const absl::Status& status, absl::Time now) {
  if (!over() || !state_.leftovers() || number != last_look_.number) return;
  last_look_.number = 0;
  // Where a manifest cannot be read nothing is to be removed; who reads that checkpoint tells of
  // it.
  const bool unread = absl::IsDataLoss(status) || absl::IsUnimplemented(status);
  if (status.ok() || unread) return state_.clear_leftovers();
  if (MayPass(status.code()) && ++last_look_.failed < kMostLooks) {
    last_look_.next = now + kFirstPause * (1 << (last_look_.failed - 1));
    return;
  }
  state_.clear_leftovers();
  SayAgain("LeftoversStay",
           absl::StrCat("spec.checkpoint.directory: files of cuts that were given up may stay: ",
                        status.message()),
           now);
}

// A manifest that was being written when the job ended.
void JobMachine::CompleteAfterEnd() {
  const bool bsp_result = bsp() && state_.state() == SUCCEEDED;
  if (bsp_result) {
    for (const CheckpointRecord& c : cuts_->TakeAfter(state_.final_step())) Remove(c);
  }
  for (const CheckpointRecord& c : cuts_->TakeExcess(state_.best_step())) Remove(c);
  if (const CheckpointRecord* newest = cuts_->NewestOnDisk();
      newest != nullptr && state_.state() != SUCCEEDED) {
    state_.set_final_checkpoint(newest->folder());
  }
  DropBulk();
}

void JobMachine::ForgetTicket(uint64_t ticket) {
  std::erase(tickets_, ticket);
  ticket_results_.erase(ticket);
}

}  // namespace strata::scheduler
