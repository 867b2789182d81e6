// What the job's model is made of, and what it takes of the checkpoint that it starts from.
#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/job/fields/sequences.h"
#include "proto/job/fields/shared_rows.h"
#include "proto/job/index_fingerprint.h"
#include "proto/job/same_files.h"
#include "proto/job/schema/schema.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_start.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "scheduler/job/machine.h"
#include "scheduler/job/new_files.h"
#include "scheduler/state/start.h"

namespace strata::scheduler {

// Where the files do not follow those of the checkpoint, CheckStart ends the job. Of an adopted job
// nobody knows for sure which checkpoint it resumed from: the one that was found counts if the
// job's own index follows from it.
void JobMachine::FindNewFiles() {
  new_files_.reset();
  index_fingerprint_ = IndexFingerprint(index_->train(), index_->eval());
  const bool adopted = state_.has_adoption();
  const TrainedData& saved = adopted ? state_.adoption().data() : spec_.resume_schema().data();
  const auto files = FindFilesToRead(saved, index_->train());
  if (!files.ok() || files->first == 0) return;
  InputIndex reads = IndexToRead(index_->train(), *files);
  const uint64_t fingerprint = IndexFingerprint(reads, index_->eval());
  if (adopted && fingerprint != state_.adoption().index_fingerprint()) return;
  new_files_ = std::move(reads);
  index_fingerprint_ = fingerprint;
}

bool JobMachine::IsBeforeNewFiles(const CheckpointRecord& checkpoint) const {
  if (!new_files_) return false;
  const DataProgress& before = new_files_->before();
  return bsp() ? checkpoint.step() < before.steps() : checkpoint.closed_below() < before.tasks();
}

void JobMachine::EndBeforeNewFiles(const CheckpointRecord& checkpoint, absl::string_view why,
                                   absl::Time now) {
  End(FAILED, "CheckpointBeforeNewFiles",
      absl::StrCat(why, "; checkpoint ", checkpoint.folder(), ", the one before, is of a run ",
                   "without ", new_files_->files(0).path(),
                   "; resume from it with the files before that one alone, then with all"),
      now);
}

void JobMachine::CompleteSchemas() {
  if (spec_.has_init_schema()) {
    *spec_.mutable_init_schema() =
        StoredSchema(spec_.init_schema(), job(), RenamesOf(job().model().init_from()));
  }
  if (spec_.has_resume_schema()) {
    *spec_.mutable_resume_schema() = StoredSchema(spec_.resume_schema(), job(), {});
  }
}

// Needs the index. What is no model has no schema: servers say why.
void JobMachine::MakeJobSchema() {
  const InputIndex& train = index_->train();
  auto schema =
      SchemaOf(job(), train.shape().fields(), train.shape().numeric(), DataFingerprint(train));
  if (!schema.ok()) return;
  schema_ = *std::move(schema);
  const VocabularyContents files = VocabulariesOf(train);
  DescribeVocabularies(job(), files, &schema_);
  *schema_.mutable_data() = TrainedDataOf(job(), train, Reads());
  if (!spec_.has_init_schema()) return;
  const InitFromSpec& init = job().model().init_from();
  const Schema& saved = spec_.init_schema();
  restore_plan_ =
      MakeRestorePlan(MapSchemas(saved, schema_, RenamesOf(init), files), saved, schema_, init);
  if (spec_.has_init()) *restore_plan_.mutable_checkpoint() = spec_.init();
}

// The submission compared what it knew; now the data are known too. Again with each later look into
// the directory.
void JobMachine::CheckStart(absl::Time now) {
  if (schema_.model().empty()) return;
  SayOnce("KeysByPosition", KeysByPosition(job()), now);
  SayOnce("NothingToAttend", NothingToAttend(job()), now);
  SayOnce("NoSharedRows", NoSharedRows(job()), now);
  SayOnce("SameFiles", SameFiles(index_->train(), index_->eval()), now);
  if (JustAdopted()) return;  // it began long ago, and CheckInput knows that its data are the same
  const VocabularyContents vocabularies = VocabulariesOf(index_->train());
  if (const CheckpointRecord* from = cuts_->NewestOnDisk(); from != nullptr) {
    if (!spec_.has_resume_schema()) return;
    const Schema& saved = spec_.resume_schema();
    const absl::Status s = CheckResumed(saved, schema_, vocabularies);
    if (!s.ok()) return End(FAILED, "CheckpointDoesNotFit", s.message(), now);
    const auto files = FindFilesToRead(saved.data(), index_->train());
    absl::Status follow = files.status();
    if (follow.ok()) {
      follow = CheckReadToEnd(*files, saved.data(), index_->train(), *from, bsp());
    }
    if (!follow.ok()) return End(FAILED, "DataDoNotFit", follow.message(), now);
    const std::string read = FilesToReadText(*files, index_->train());
    SayOnce("ResumesFrom",
            absl::StrCat(from->folder(), ": ", ResumedText(saved, schema_, vocabularies),
                         read.empty() ? "" : "; ", read),
            now);
    return;
  }
  const InitFromSpec& init = job().model().init_from();
  if (!spec_.has_init_schema()) {
    if (init.checkpoint().empty()) return;
    // It was to go on from a checkpoint of its own: nobody has looked at the other one.
    return End(FAILED, "CheckpointGone",
               absl::StrCat("spec.checkpoint.directory ", job().checkpoint().directory(),
                            " has no checkpoint to resume from any more; submit the job again, "
                            "and it starts from spec.model.initFrom ",
                            init.checkpoint()),
               now);
  }
  const Schema& saved = spec_.init_schema();
  std::optional<std::string> weight;
  if (spec_.has_init_sample_weight()) weight = spec_.init_sample_weight();
  const absl::Status s = CheckInit(saved, weight, schema_, job(), vocabularies);
  if (!s.ok()) return End(FAILED, "CheckpointDoesNotFit", s.message(), now);
  SayOnce("StartsFrom",
          absl::StrCat("spec.model.initFrom ", init.checkpoint(), ": ",
                       InitText(saved, weight, schema_, job(), vocabularies)),
          now);
}

std::string JobMachine::NewestFolder() const {
  std::string newest;
  for (const CheckpointRecord& c : (cuts_ ? cuts_->book() : state_.cuts()).complete()) {
    if (!c.folder().empty()) newest = c.folder();
  }
  return newest;
}

void JobMachine::TellDamaged(absl::string_view damaged, absl::Time now) {
  if (damaged.empty()) return;
  const std::string newest = NewestFolder();
  const bool kept = JustAdopted() && !state_.adoption().servers().empty();
  SayOnce("CheckpointDamaged",
          absl::StrCat(damaged,
                       kept             ? "; the job goes on with what its servers kept"
                       : newest.empty() ? "; the job has no other checkpoint"
                                        : "; the job goes on from ",
                       kept ? "" : newest),
          now);
}

void JobMachine::SayOnce(absl::string_view reason, absl::string_view message, absl::Time now) {
  const auto same = [&](const JobCondition& c) {
    return reason == c.reason() && message == c.message();
  };
  const auto& said = state_.conditions();
  if (!message.empty() && std::none_of(said.begin(), said.end(), same)) Say(reason, message, now);
}

}  // namespace strata::scheduler
