// JobMachine: checkpoints, from cuts to manifests.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/runtime/files/manifest_io.h"
#include "scheduler/job/machine.h"
#include "scheduler/state/closed_tasks.h"

namespace strata::scheduler {

absl::Status JobMachine::WantCheckpoint(uint64_t ticket) {
  const std::string name = spec_.spec().metadata().name();
  if (over()) {
    return absl::FailedPreconditionError(absl::StrCat("job ", name, " is over"));
  }
  if (job().checkpoint().directory().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", name, " has no spec.checkpoint.directory to write a checkpoint to"));
  }
  if (state_.phase() != TRAINING && state_.phase() != CUTTING) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", name, " is not training now; try again when it is"));
  }
  tickets_.push_back(ticket);
  bool pending = false;
  for (const CutRecord& cut : cuts_->book().pending()) pending |= cut.manual();
  if (!pending) cuts_->WantManual();
  return absl::OkStatus();
}

std::optional<absl::StatusOr<CheckpointRecord>> JobMachine::TakeCheckpointResult(uint64_t ticket) {
  auto it = ticket_results_.find(ticket);
  if (it == ticket_results_.end()) return std::nullopt;
  absl::StatusOr<CheckpointRecord> result = std::move(it->second);
  ticket_results_.erase(it);
  return result;
}

void JobMachine::AnswerManual(const absl::StatusOr<CheckpointRecord>& result) {
  for (uint64_t ticket : std::exchange(tickets_, {})) ticket_results_.emplace(ticket, result);
}

void JobMachine::AbortCuts() {
  if (!cuts_) return;
  for (const CutCoordinator::Result& dropped : cuts_->Abort()) RemoveFilesOf(dropped);
  if (ledger_) ledger_->EndCut();
}

// The metrics are a file that a worker may hold open already: it stays, and nothing is in it.
FileWork JobMachine::RemovalOf(std::string path) const {
  if (path == job().output().metrics()) return EmptyFileWork{id(), std::move(path)};
  return RemoveCheckpointWork{id(), std::move(path), {}};
}

void JobMachine::Remove(std::string path) {
  state_.add_removing(path);
  work_.push_back(RemovalOf(std::move(path)));
}

void JobMachine::Remove(const CheckpointRecord& checkpoint) {
  state_.add_removing(checkpoint.folder());
  RemoveCheckpointWork work{id(), checkpoint.folder(), {}};
  if (!checkpoint.job_uid().empty()) {
    work.meant = CheckpointMeant{.cluster_id = checkpoint.cluster_id(),
                                 .job_uid = checkpoint.job_uid(),
                                 .generation = checkpoint.generation(),
                                 .cut = checkpoint.of_cut()};
  }
  work_.push_back(std::move(work));
}

void JobMachine::OnCheckpointRemoved(const std::string& folder, const absl::Status& status,
                                     absl::Time now) {
  if (!status.ok() && state_.phase() == OPENING && state_.started_unix_ms() == 0) {
    const bool metrics = folder == job().output().metrics();
    const char* const what = metrics ? "spec.output.metrics cannot be begun anew: "
                                     : "an earlier checkpoint cannot be removed: ";
    const char* const field =
        metrics ? "output.metrics to another file" : "checkpoint.directory to another folder";
    End(FAILED, "OverwriteFailed",
        absl::StrCat(what, status.message(), "; remove it yourself, or set spec.", field), now);
  }
  auto& removing = *state_.mutable_removing();
  const auto it = std::find(removing.begin(), removing.end(), folder);
  if (it != removing.end()) removing.erase(it);
}

// Whether nothing of the job that this one replaces is in its way: a new checkpoint may have the
// name of an old one. The old ones go when all that could keep this job from training has been
// tried: its servers hold their shards, its workers their models.
bool JobMachine::EarlierAreReplaced() {
  if (state_.started_unix_ms() != 0) return true;
  if (!state_.replacing() && spec_.replaced_size() > 0) {
    for (int i = 0; i < state_.workers_size(); ++i) {
      if (!state_.workers(i).name().empty() && !workers_[i].ready) return false;
    }
    state_.set_replacing(true);
    for (const std::string& folder : spec_.replaced()) Remove(folder);
  }
  return state_.removing().empty();
}

// Whether each server has said, in its present process, that all cuts so far are over there. Only
// then may another one begin: servers refuse marks and pushes of a cut beyond the next one.
bool JobMachine::EarlierCutsAreOver() const {
  const uint64_t through = cuts_->OverThrough();
  for (const ServerView& view : servers_) {
    if (view.last.given_up_through() < through && !STRATA_MUTATION("cut.begun_unheard")) {
      return false;
    }
  }
  return true;
}

void JobMachine::TakeCuts(absl::Time now) {
  const int64_t now_ms = absl::ToUnixMillis(now);
  const int64_t retry_ms = 1000;
  for (const CutCoordinator::Result& result : cuts_->Settle(now_ms, retry_ms)) {
    FinishCut(result, now);
    if (over()) return;
  }
  writing_.KeepOnly([this](uint64_t cut) { return cuts_->Find(cut) != nullptr; });
  bool hosted = false;
  for (const WorkerSlot& slot : state_.workers()) hosted |= !slot.name().empty();
  if (state_.phase() == TRAINING || state_.phase() == CUTTING) {
    cuts_->Plan(state_.generation(), bsp() ? recovery_.max_clock() : Progress(),
                hosted && EarlierCutsAreOver(), now_ms);
  }
  if (ledger_) {
    for (const CutRecord& cut : cuts_->book().pending()) {
      if (!cut.has_manifest() && ledger_->record().cut() != cut.cut()) {
        ledger_->BeginCut(cut.cut());
      }
    }
  }
  for (const CheckpointRecord& c : cuts_->TakeExcess(state_.best_step())) Remove(c);
}

void JobMachine::FinishCut(const CutCoordinator::Result& result, absl::Time now) {
  const CutRecord& cut = result.cut;
  if (result.outcome != CutCoordinator::Outcome::kDone) {
    const bool failed = result.outcome == CutCoordinator::Outcome::kFailed;
    if (!failed && !bsp()) {
      SayAgain("CheckpointPutOff", absl::StrCat(result.message, "; it is begun anew"), now);
    }
    DropCut(result, failed ? result.message : "", now);
    return;
  }
  CheckpointRecord record;
  record.set_step(bsp() ? cut.step() : cut.cut());
  record.set_folder(cut.folder());
  record.set_generation(cut.generation());
  record.set_cluster_id(cluster_id_);
  record.set_job_uid(spec_.job_uid());
  record.set_model_hash(ModelHashText(result.files, record.step()));
  if (bsp()) {
    record.set_bad_lines(Counted().bad_lines());
    record.set_examples(ExamplesAt(cut.step(), record.bad_lines()));
  } else {
    ledger_->CutContents(result.lanes, record);
    ledger_->EndCut();
  }
  if (cut.folder().empty()) return CompleteCut(cut.cut(), std::move(record), now);

  Manifest manifest;
  *manifest.mutable_job() = spec_.spec();
  manifest.set_format(kManifestFormat);
  manifest.set_step(record.step());
  manifest.set_generation(cut.generation());
  manifest.set_cluster_id(cluster_id_);
  manifest.set_job_uid(spec_.job_uid());
  manifest.set_cut(cut.cut());
  manifest.set_partitions(job().storage().partitions());
  std::vector<CheckpointFile> files = result.files;
  std::sort(files.begin(), files.end(), [](const CheckpointFile& a, const CheckpointFile& b) {
    return std::make_pair(a.sequence(), absl::string_view(a.name())) <
           std::make_pair(b.sequence(), absl::string_view(b.name()));
  });
  for (CheckpointFile& file : files) *manifest.add_files() = std::move(file);
  manifest.set_model_hash(record.model_hash());
  manifest.set_fields(index_->train().shape().fields());
  manifest.set_numeric(index_->train().shape().numeric());
  *manifest.mutable_schema() = schema_;
  for (const uint64_t task : ListClosedTasks(record)) manifest.add_closed_tasks(task);
  *manifest.mutable_lanes() = record.lanes();
  manifest.set_examples(record.examples());
  manifest.set_bad_lines(record.bad_lines());
  manifest.set_time_unix_ms(absl::ToUnixMillis(now));
  for (const EvaluationResult& e : state_.evaluations()) {
    if ((bsp() && e.step() == record.step()) || (!bsp() && cut.last())) {
      *manifest.mutable_evaluation() = e;
    }
  }
  cuts_->Writing(cut.cut(), manifest);
  work_.push_back(WriteManifestWork{id(), cut.cut(), cut.folder(), std::move(manifest)});
}

void JobMachine::RemoveFilesOf(const CutCoordinator::Result& result) {
  if (result.cut.folder().empty() || result.files.empty()) return;
  RemoveIncompleteWork work{.job = id(), .folder = result.cut.folder(), .names = {}};
  for (const CheckpointFile& file : result.files) work.names.push_back(file.name());
  work_.push_back(std::move(work));
}

// Of a cut that was refused or failed. It may end the job; what a job drops because it ends, or
// goes back, is judged no more.
void JobMachine::DropCut(const CutCoordinator::Result& result, absl::string_view why,
                         absl::Time now) {
  RemoveFilesOf(result);
  if (why.empty() || over()) {
    if (cuts_->GivenUp() && !over()) {
      End(FAILED, "CheckpointFailed",
          bsp() ? absl::StrCat("servers are past step ", result.cut.step(),
                               ", whose cut the job needs")
                : result.message,
          now);
    }
    return;
  }
  const std::string text =
      absl::StrCat(result.cut.folder().empty()
                       ? std::string("cut")
                       : absl::StrCat("spec.checkpoint.directory: ", result.cut.folder()),
                   ": ", why);
  SayAgain("CheckpointFailed", text, now);
  if (result.cut.manual()) AnswerManual(absl::InternalError(text));
  if (cuts_->GivenUp()) End(FAILED, "CheckpointFailed", text, now);
}

void JobMachine::CompleteCut(uint64_t cut, CheckpointRecord checkpoint, absl::Time now) {
  const CutRecord* found = cuts_->Find(cut);
  const bool manual = found != nullptr && found->manual();
  if (!checkpoint.folder().empty()) SayAgain("CheckpointComplete", checkpoint.folder(), now);
  DropSetAside(checkpoint.folder(), *state_.mutable_set_aside());
  if (manual) AnswerManual(checkpoint);
  cuts_->Complete(cut, std::move(checkpoint));
}

bool JobMachine::UsesCheckpoints() const {
  if (job().checkpoint().directory().empty()) return false;
  return !over() || !state_.removing().empty();
}

void JobMachine::CountCutsFrom(uint64_t first) {
  if (cuts_) return;
  CutBook& book = *state_.mutable_cuts();
  book.set_next_cut(std::max(book.next_cut(), first));
}

void JobMachine::FoundAgain(std::vector<CheckpointRecord> complete,
                            const std::vector<std::string>& replaced,
                            std::optional<Schema> resumed) {
  if (cuts_ || state_.phase() != WAITING) return;
  spec_.clear_resume_schema();
  if (resumed) *spec_.mutable_resume_schema() = *std::move(resumed);
  spec_.mutable_replaced()->Assign(replaced.begin(), replaced.end());
  CutBook& book = *state_.mutable_cuts();
  book.clear_complete();
  for (CheckpointRecord& c : complete) {
    book.set_next_cut(std::max({book.next_cut(), c.step() + 1, c.of_cut() + 1}));
    *book.add_complete() = std::move(c);
  }
}

void JobMachine::LockGone(absl::string_view why, absl::Time now) {
  if (over()) return;
  const bool began = state_.phase() != WAITING;
  End(FAILED, began ? "CheckpointDirectoryLost" : "CheckpointDirectoryTaken", why, now);
}

void JobMachine::LockStalls(absl::string_view why, absl::Time now) {
  if (over()) return;
  if (!held_up_.empty()) held_up_ = std::string(why);
  SayAgain("CheckpointLockStalls", absl::StrCat(why, "; checkpoints wait until that works"), now);
}

void JobMachine::OnManifestWritten(uint64_t cut, const absl::Status& status, absl::Time now) {
  if (over() || !cuts_) return;
  const CutRecord* found = cuts_->Find(cut);
  if (found == nullptr || !found->has_manifest()) return;
  if (!status.ok()) {
    const std::string why(status.message());
    DropCut(cuts_->WritingFailed(cut, why, absl::ToUnixMillis(now), 1000), why, now);
    return;
  }
  CheckpointRecord record;
  const Manifest& manifest = found->manifest();
  record.set_step(manifest.step());
  record.set_folder(found->folder());
  record.set_generation(manifest.generation());
  record.set_cluster_id(manifest.cluster_id());
  record.set_job_uid(manifest.job_uid());
  record.set_model_hash(manifest.model_hash());
  record.set_examples(manifest.examples());
  record.set_bad_lines(manifest.bad_lines());
  record.set_cut(cut);
  record.set_of_cut(cut);
  for (const CheckpointFile& file : manifest.files()) {
    record.set_increments(std::max(record.increments(), file.sequence()));
  }
  SetClosedTasks(manifest.closed_tasks(), record);
  *record.mutable_lanes() = manifest.lanes();
  CompleteCut(cut, std::move(record), now);
}

}  // namespace strata::scheduler
