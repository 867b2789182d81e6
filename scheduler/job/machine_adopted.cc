// JobMachine: how a job goes on whose records were lost, and made again of what its servers kept.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "scheduler/job/machine.h"
#include "scheduler/nodes/hearing.h"

namespace strata::scheduler {

bool JobMachine::LeavesCopies() const {
  if (!state_.has_adoption()) return false;
  return over() ? state_.adoption().given_back() : JustAdopted();
}

bool JobMachine::GoesOnWithServers() const {
  const bool placed = state_.servers_size() > 0;
  return !placed && !over() && state_.adoption().servers_size() > 0;
}

bool JobMachine::WaitsFor(absl::string_view server) const {
  for (const std::string& name : state_.adoption().servers()) {
    if (name == server) return true;
  }
  return false;
}

// Rows and tasks mean nothing with other data.
void JobMachine::CheckInput(absl::Time now) {
  if (!JustAdopted() || state_.adoption().index_fingerprint() == index_fingerprint_ ||
      STRATA_MUTATION("adoption.other_input_taken")) {
    return;
  }
  End(FAILED, "InputChanged",
      absl::StrCat("the input changed since the job trained on it (other files, sizes or contents",
                   index_->train().files_size() == 1
                       ? ""
                       : "; or the checkpoint is gone that said which files it had read before",
                   "); put back what it was and adopt the job again: its servers keep it"),
      now);
}

std::string JobMachine::DescribeMissing(absl::string_view why) const {
  const std::string from = NewestFolder();
  return absl::StrCat("the job goes on with ", absl::StrJoin(state_.adoption().servers(), ", "),
                      " alone: ", why,
                      "; start one that is missing again with the --name and --dir that it had, ",
                      from.empty() ? std::string("or cancel the job")
                                   : absl::StrCat("or cancel the job and adopt it again: without ",
                                                  "that server it goes on from checkpoint ", from));
}

// As after a restart of all servers: each opens what it has of this generation, and says where it
// stands.
void JobMachine::GoOnWithServers(const ClusterView& cluster, absl::Time now) {
  const AdoptionRecord adoption = state_.adoption();
  const auto there = FreeServers(cluster, static_cast<uint32_t>(adoption.servers_size()));
  if (!there.ok()) return WaitForServers(cluster, there.status(), now);
  for (const std::string& name : adoption.servers()) {
    ServerSlot* const slot = state_.add_servers();
    slot->set_name(name);
    slot->set_opened_generation(state_.generation());
  }
  servers_.assign(static_cast<size_t>(adoption.servers_size()), {});
  *state_.mutable_shards() = adoption.shards();
  SayAgain("Opening",
           absl::StrCat("servers open what they kept of generation ", state_.generation()), now);
  const CheckpointRecord* const newest = cuts_->NewestOnDisk();
  StartGeneration(nullptr);
  if (newest != nullptr) state_.mutable_base()->set_bad_lines(newest->bad_lines());
  if (adoption.start_step() == 0) return;
  // Of a checkpoint that is in base images by now.
  state_.clear_restore_from();
  state_.set_start_step(adoption.start_step());
  recovery_.Begin(static_cast<uint32_t>(state_.servers_size()), adoption.start_step());
}

// A server that is away may have begun generations that no record knows.
uint64_t JobMachine::GenerationAfter() const {
  return state_.generation() + (state_.has_adoption() ? Hearing::kGenerations : 1);
}

}  // namespace strata::scheduler
