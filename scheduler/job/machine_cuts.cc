// JobMachine: checkpoints, from cuts to manifests.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/core/mutation.h"
#include "proto/core/uid.h"
#include "proto/runtime/files/leftovers.h"
#include "proto/runtime/files/manifest_io.h"
#include "scheduler/job/machine.h"
#include "scheduler/state/checkpoint_identity.h"
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
  std::set<std::string> folders;
  for (const CutCoordinator::Result& dropped : cuts_->Abort()) {
    if (!dropped.cut.folder().empty()) folders.insert(dropped.cut.folder());
  }
  given_up_in_.insert(folders.begin(), folders.end());
  if (!folders.empty()) LookForLeftovers(std::move(folders));
  if (ledger_) ledger_->EndCut();
}

// The metrics are a file that a worker may hold open already: it stays, and nothing is in it.
FileWork JobMachine::WorkOf(const RemovalRecord& removal) const {
  if (removal.path() == job().output().metrics()) {
    return EmptyFileWork{.job = id(), .number = removal.number(), .path = removal.path()};
  }
  RemoveCheckpointWork work{.job = id(), .number = removal.number(), .folder = removal.path()};
  if (removal.has_meant()) work.meant = removal.meant();
  return work;
}

void JobMachine::Remove(RemovalRecord removal) {
  state_.set_removals(state_.removals() + 1);
  removal.set_number(state_.removals());
  work_.push_back(WorkOf(removal));
  *state_.add_removing() = std::move(removal);
}

void JobMachine::Remove(const CheckpointRecord& checkpoint) {
  RemovalRecord removal;
  removal.set_path(checkpoint.folder());
  *removal.mutable_meant() = IdentityOf(checkpoint);
  Remove(std::move(removal));
}

void JobMachine::OnRemoved(uint64_t number, const absl::Status& status, absl::Time now) {
  auto& removing = *state_.mutable_removing();
  const auto it = std::find_if(removing.begin(), removing.end(),
                               [number](const RemovalRecord& r) { return r.number() == number; });
  if (it == removing.end()) return;
  const std::string path = it->path();
  removing.erase(it);
  if (!status.ok() && state_.phase() == OPENING && state_.started_unix_ms() == 0) {
    const bool metrics = path == job().output().metrics();
    const char* const what = metrics ? "spec.output.metrics cannot be begun anew: "
                                     : "an earlier checkpoint cannot be removed: ";
    const char* const field =
        metrics ? "output.metrics to another file" : "checkpoint.directory to another folder";
    End(FAILED, "OverwriteFailed",
        absl::StrCat(what, status.message(), "; remove it yourself, or set spec.", field), now);
  } else if (absl::IsAlreadyExists(status)) {
    SayAgain("CheckpointStays", status.message(), now);
  }
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
    for (const RemovalRecord& removal : spec_.replaced()) Remove(removal);
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
  for (const CutCoordinator::Result& result : cuts_->Settle(now_ms)) {
    FinishCut(result, now);
    if (over()) return;
  }
  writing_.KeepOnly([this](uint64_t cut) { return cuts_->Find(cut) != nullptr; });
  bool hosted = false;
  for (const WorkerSlot& slot : state_.workers()) hosted |= !slot.name().empty();
  if (state_.phase() == TRAINING || state_.phase() == CUTTING) {
    cuts_->Plan(state_.generation(), bsp() ? recovery_.max_clock() : Progress(),
                hosted && EarlierCutsAreOver(), now_ms, state_.removing_size());
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
    return DropCut(result, now);
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
  manifest.set_columns(index_->train().shape().columns());
  *manifest.mutable_numbered_columns() = index_->train().shape().numbered_columns();
  *manifest.mutable_schema() = schema_;
  manifest.mutable_schema()->mutable_data()->mutable_end()->set_bad_lines(record.bad_lines());
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

// Into those folders of checkpoints; none: into all. Returns the look's number; 0: there is no
// directory.
uint64_t JobMachine::LookForLeftovers(std::set<std::string> folders) {
  const auto identity = ParseJobIdentity(cluster_id_, spec_.job_uid());
  if (!cuts_ || !identity || job().checkpoint().directory().empty()) return 0;
  RemoveLeftoversWork work{.job = id(),
                           .number = ++looks_,
                           .directory = job().checkpoint().directory(),
                           .over = {.identity = *identity,
                                    .generation = Generation(state_.generation()),
                                    .below = cuts_->book().next_cut(),
                                    .folders = std::move(folders)}};
  for (const CutRecord& cut : cuts_->book().pending()) {
    work.over.pending.insert(cut.cut());
    work.over.pending_folders.insert(cut.folder());
  }
  work_.push_back(std::move(work));
  return looks_;
}

void JobMachine::LockHeld() {
  held_up_.clear();
  if (!over()) LookForLeftovers({});  // of an earlier run of the scheduler, or of a killed server
}

std::string JobMachine::DescribeFailure(const CutCoordinator::Result& result) const {
  if (result.outcome == CutCoordinator::Outcome::kRefused) {
    return bsp() ? absl::StrCat("servers are past step ", result.cut.step(),
                                ", whose cut the job needs")
                 : result.message;
  }
  const int server = result.server ? static_cast<int>(*result.server) : state_.servers_size();
  return absl::StrCat(
      result.cut.folder().empty() ? "cut" : "spec.checkpoint.directory: ", result.cut.folder(),
      ": ", server < state_.servers_size() ? state_.servers(server).name() + ": " : "",
      result.message);
}

// Of a cut that was refused or failed. Where the job cannot do without it, the job waits for the
// next try, or ends.
void JobMachine::DropCut(const CutCoordinator::Result& result, absl::Time now) {
  if (over()) return;
  if (const std::string& folder = result.cut.folder(); !folder.empty()) {
    given_up_in_.insert(folder);
    LookForLeftovers({folder});
  }
  const bool failed = result.outcome == CutCoordinator::Outcome::kFailed;
  std::string text = DescribeFailure(result);
  if (failed && result.cut.manual()) AnswerManual(absl::InternalError(text));
  if (cuts_->GivenUp()) return End(FAILED, "CheckpointFailed", text, now);
  if (!failed && bsp()) return;
  if (!failed) {
    return SayAgain("CheckpointPutOff", absl::StrCat(text, "; it is begun anew"), now);
  }
  const int64_t seconds = (result.retry_ms + 999) / 1000;
  if (result.retry_ms > 0 && result.passes) {
    absl::StrAppend(&text, "; the job waits for this checkpoint, and tries again in ", seconds,
                    " s");
  } else if (result.retry_ms > 0) {
    absl::StrAppend(&text, "; no try mends this: the job tries again in ", seconds,
                    " s, and fails after ", CutCoordinator::kMaxFailures, " such causes in a row");
  }
  SayAgain("CheckpointFailed", text, now);
}

void JobMachine::CompleteCut(uint64_t cut, CheckpointRecord checkpoint, absl::Time now) {
  const CutRecord* found = cuts_->Find(cut);
  const bool manual = found != nullptr && found->manual();
  if (!checkpoint.folder().empty()) SayAgain("CheckpointComplete", checkpoint.folder(), now);
  DropSetAside(checkpoint.folder(), *state_.mutable_set_aside());
  if (manual) AnswerManual(checkpoint);
  const std::string folder = checkpoint.folder();
  cuts_->Complete(cut, std::move(checkpoint));
  if (over() || folder.empty()) return;
  // A look costs a manifest: into what was looked into before only where a server may have come
  // late.
  given_up_in_.insert(folder);
  LookForLeftovers(std::exchange(given_up_in_, {}));
}

void JobMachine::CountCutsFrom(uint64_t first) {
  if (!IsToBegin()) return;
  CutBook book = cuts_ ? cuts_->book() : state_.cuts();
  if (first <= book.next_cut()) return;
  book.set_next_cut(first);
  *state_.mutable_cuts() = std::move(book);
  if (index_) MakeParts();
}

bool JobMachine::LooksAgain(uint64_t lock) const {
  return IsToBegin() && state_.looked_lock() != lock && !STRATA_MUTATION("checkpoint.stale_look");
}

JobMachine::Looks JobMachine::LooksFor() const {
  if (JustAdopted()) return Looks::kForOwn;
  return state_.own_first() ? Looks::kForOwnFirst : Looks::kForAny;
}

void JobMachine::FoundAgain(FoundInDirectory found, absl::Time now) {
  if (!IsToBegin()) return;
  state_.set_looked_lock(found.lock);
  const bool needs_one = !GoesOnWithServers() || STRATA_MUTATION("adoption.other_format_refused");
  if (needs_one && !found.other_format.ok()) {
    return DoesNotFit(found.other_format.message(), now);
  }
  if (found.keep) return TellDamaged(found.damaged, now);
  if (found.resume_schema) {
    *spec_.mutable_resume_schema() = *std::move(found.resume_schema);
  } else if (found.complete.empty()) {
    spec_.clear_resume_schema();
  }
  spec_.mutable_replaced()->Assign(found.replaced.begin(), found.replaced.end());
  CutBook book = cuts_ ? cuts_->book() : state_.cuts();
  book.clear_complete();
  for (CheckpointRecord& c : found.complete) {
    book.set_next_cut(std::max({book.next_cut(), c.step() + 1, c.of_cut() + 1}));
    *book.add_complete() = std::move(c);
  }
  const bool none = book.complete().empty();
  *state_.mutable_cuts() = std::move(book);
  if (index_) MakeParts();
  TellDamaged(found.damaged, now);
  if (JustAdopted() && state_.adoption().servers().empty() && none) {
    return End(FAILED, "AdoptionUndone",
               absl::StrCat("spec.checkpoint.directory ", job().checkpoint().directory(),
                            " has no checkpoint of the job any more; put one back and adopt it "
                            "again: servers keep their copies"),
               now);
  }
  if (index_) CheckStart(now);
  if (index_ && !over()) CheckEnd(now);
}

void JobMachine::DoesNotFit(absl::string_view why, absl::Time now) {
  if (IsToBegin()) End(FAILED, "CheckpointDoesNotFit", why, now);
}

void JobMachine::LockGone(absl::string_view why, absl::Time now) {
  if (over()) return;
  End(FAILED, IsToBegin() ? "CheckpointDirectoryTaken" : "CheckpointDirectoryLost", why, now);
}

void JobMachine::LockStalls(absl::string_view why, absl::Time now) {
  if (over()) return;
  if (!held_up_.empty() || IsToBegin()) held_up_ = std::string(why);
  SayAgain("CheckpointLockStalls", absl::StrCat(why, "; checkpoints wait until that works"), now);
}

void JobMachine::OnManifestWritten(uint64_t cut, const absl::Status& status, absl::Time now) {
  if (!cuts_) return;
  const CutRecord* found = cuts_->Find(cut);
  if (found == nullptr || !found->has_manifest()) return;
  if (!status.ok()) {
    const absl::Status why(status.code(), absl::StrCat("scheduler: ", status.message()));
    return DropCut(cuts_->WritingFailed(cut, why, absl::ToUnixMillis(now)), now);
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
  if (over()) CompleteAfterEnd();
}

}  // namespace strata::scheduler
