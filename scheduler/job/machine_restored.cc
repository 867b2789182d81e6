// JobMachine: how a job goes on whose records come from an older copy.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/job/machine.h"

namespace strata::scheduler {
namespace {

// The checkpoints that there are, in the place of those that the copy knew. Where none is seen, its
// own words stand: a folder that is not there may come back, and servers wait for it.
void TakeFound(const std::vector<CheckpointRecord>& found, const JobStateRecord& state,
               CutBook& book) {
  book.clear_pending();
  book.set_manual(false);
  std::vector<CheckpointRecord> whole;
  for (const CheckpointRecord& c : found) {
    const auto& aside = state.set_aside();
    if (std::find(aside.begin(), aside.end(), c.folder()) == aside.end()) whole.push_back(c);
    book.set_next_cut(std::max({book.next_cut(), c.of_cut() + 1, c.step() + 1}));
  }
  if (whole.empty()) return;
  book.clear_complete();
  for (CheckpointRecord& c : whole) *book.add_complete() = std::move(c);
}

}  // namespace

void JobMachine::GoOnFromCopy(uint64_t generation, uint64_t map_epoch,
                              const absl::StatusOr<FoundInDirectory>& found, absl::Time now) {
  // What was to be removed or written then may be something else by now.
  work_.clear();
  state_.clear_removing();
  state_.clear_leftovers();
  if (over()) {
    if (cuts_) cuts_->WriteNoMore();
    return;
  }
  if (JustAdopted()) {
    return End(
        FAILED, "AdoptionUndone",
        "the scheduler's folder comes from an older copy than the job's adoption was carried "
        "out; servers keep it: adopt it again",
        now);
  }
  state_.set_replacing(true);
  if (map_epoch > state_.map_epoch()) {
    state_.set_map_epoch(map_epoch);
    for (ServerSlot& slot : *state_.mutable_servers()) {
      if (slot.has_chain()) slot.mutable_chain()->set_chain_epoch(map_epoch);
    }
  }
  if (!found.ok()) {
    state_.set_generation(generation);
    return End(FAILED, "CheckpointDoesNotFit", found.status().message(), now);
  }
  CutBook book = cuts_ ? cuts_->book() : state_.cuts();
  TakeFound(found->complete, state_, book);
  *state_.mutable_cuts() = std::move(book);
  if (index_) MakeParts();
  TellDamaged(found->damaged, now);
  if (IsToBegin()) {
    state_.set_own_first(true);
    return state_.set_generation(generation);
  }
  state_.set_generation(generation - 1);
  RollBack("the scheduler's folder comes from an older copy", now);
}

}  // namespace strata::scheduler
