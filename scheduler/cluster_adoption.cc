// ClusterState: jobs whose records are lost, made again of what servers keep of them.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "scheduler/adoption.h"
#include "scheduler/cluster_state.h"
#include "scheduler/nodes/placement.h"
#include "scheduler/nodes/room.h"

namespace strata::scheduler {
namespace {

// Files of a cut have its number in their names: more were not taken since the newest checkpoint.
constexpr uint64_t kCuts = uint64_t{1} << 20;

JobStateRecord StateOf(const KeptJob& note, const Adoption& adoption,
                       ClusterState::AdoptionFiles files) {
  JobStateRecord state;
  state.set_phase(WAITING);
  state.set_state(PENDING);
  state.set_generation(adoption.generation);
  state.set_map_epoch(note.map_epoch());
  AdoptionRecord& record = *state.mutable_adoption();
  record.set_index_fingerprint(note.index_fingerprint());
  *record.mutable_data() = std::move(files.data);
  for (const std::string& name : adoption.servers) record.add_servers(name);
  if (!adoption.servers.empty()) {
    *record.mutable_shards() = note.shards();
    record.set_start_step(note.start_step());
  }
  CutBook& book = *state.mutable_cuts();
  uint64_t next = std::max<uint64_t>(1, note.given_up_through() + 1);
  for (CheckpointRecord& c : files.own) {
    next = std::max({next, c.of_cut() + 1, c.step() + 1});
    *book.add_complete() = std::move(c);
  }
  book.set_next_cut(next + (adoption.servers.empty() ? 0 : kCuts));
  return state;
}

}  // namespace

std::vector<KeptCopy> ClusterState::CopiesOf(const std::string& job_uid) const {
  std::vector<KeptCopy> copies;
  for (const auto& [node, told] : told_) {
    const Node* const known = members_.Find(node);
    if (known == nullptr || !known->alive) continue;
    for (const KeptCopy& copy : told.quarantined) {
      if (copy.kept.job_uid() == job_uid) copies.push_back(copy);
    }
  }
  return copies;
}

// The job of this UID that is not over; null: none.
const JobMachine* ClusterState::Living(const std::string& job_uid) const {
  for (const auto& [id, job] : jobs_) {
    if (!job->over() && job->spec().job_uid() == job_uid) return job.get();
  }
  return nullptr;
}

absl::StatusOr<TrainingJob> ClusterState::CheckAdopt(const std::string& job_uid) const {
  if (const JobMachine* const job = Living(job_uid); job != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat("job ", job->spec().spec().metadata().name(), " (",
                                                 job_uid, ") is this cluster's already: it is job ",
                                                 job->id()));
  }
  const std::vector<KeptCopy> copies = CopiesOf(job_uid);
  if (copies.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no server that is heard of keeps a copy of job ", job_uid, " in quarantine"));
  }
  const auto note = AgreedNote(cluster_id(), copies);
  if (!note.ok()) return note.status();
  const std::string& name = note->spec().metadata().name();
  for (const auto& [id, other] : jobs_) {
    if (other->over() || other->spec().spec().metadata().name() != name) continue;
    return absl::AlreadyExistsError(
        absl::StrCat("job ", job_uid, " has the name ", name, ", which job ", id,
                     " has that is not finished; wait for it or cancel it, then adopt this one"));
  }
  if (absl::Status s = CheckGpus(note->spec().spec(), members_); !s.ok()) return s;
  if (absl::Status s = CheckRoom(note->spec().spec(), members_, RoomsBut(0)); !s.ok()) return s;
  return note->spec();
}

// That of the copies where it is free: it is in the names of nothing, and people know it.
uint64_t ClusterState::NumberFor(uint64_t kept) {
  const uint64_t id = kept > 0 && jobs_.count(kept) == 0 ? kept : numbers_.next_job();
  numbers_.set_next_job(std::max(numbers_.next_job(), id + 1));
  settled_.erase(id);
  return id;
}

std::vector<std::set<std::string>> ClusterState::OwnersOfKept(
    const SettleQuarantineRequest& request) const {
  std::vector<std::set<std::string>> all;
  for (const KeptCopy& copy : CopiesOf(request.job_uid())) {
    if (request.action() == SettleQuarantineRequest::PURGE && copy.node != request.node()) continue;
    std::set<std::string>& owners = all.emplace_back();
    if (!copy.note) continue;
    const auto& named = copy.note->spec().metadata().owners();
    owners.insert(named.begin(), named.end());
  }
  return all;
}

absl::StatusOr<SettleQuarantineReply> ClusterState::Adopt(const std::string& job_uid,
                                                          AdoptionFiles files, absl::Time now) {
  const auto spec = CheckAdopt(job_uid);
  if (!spec.ok()) return spec.status();
  const std::vector<KeptCopy> copies = CopiesOf(job_uid);
  const auto note = AgreedNote(cluster_id(), copies);
  const auto adoption = JudgeAdoption(*note, copies, files.own, files.damaged, files.other_format);
  if (!adoption.ok()) return adoption.status();
  JobSpecRecord record;
  const uint64_t id = NumberFor(copies.front().kept.job());
  record.set_job(id);
  record.set_job_uid(job_uid);
  *record.mutable_spec() = *spec;
  record.set_submitted_unix_ms(absl::ToUnixMillis(now));
  record.set_owner(files.owner);
  std::string held_up = std::move(files.held_up), damaged = std::move(files.damaged);
  const uint64_t looked_lock = files.looked_lock, first_cut = files.first_cut;
  jobs_[id] = std::make_unique<JobMachine>(std::move(record), cluster_id(),
                                           StateOf(*note, *adoption, std::move(files)),
                                           std::nullopt, std::nullopt, now);
  jobs_[id]->Adopted(adoption->text, now);
  jobs_[id]->TellDamaged(damaged, now);
  jobs_[id]->AwaitLock(std::move(held_up));
  jobs_[id]->LookedUnder(looked_lock);
  jobs_[id]->CountCutsFrom(first_cut);
  SettleQuarantineReply reply;
  for (const KeptCopy& copy : copies) reply.add_nodes(copy.node);
  AdvanceJobs(now);
  return reply;
}

}  // namespace strata::scheduler
