#include "proto/job/job_spec.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/job/checks/spec_checks.h"
#include "proto/job/data_spec.h"
#include "proto/job/fields/field_spec.h"
#include "proto/job/fields/label_spec.h"
#include "proto/job/fields/sequences.h"
#include "proto/job/model/model_spec.h"
#include "proto/job/storage_spec.h"
#include "proto/job/tables/life_cycle_spec.h"
#include "proto/job/tables/optimizer_spec.h"
#include "proto/job/tables/tables_spec.h"
#include "proto/job/training_spec.h"
#include "proto/job/worker_spec.h"
#include "proto/runtime/credentials/identity.h"

namespace strata {
namespace {

using spec::Bad;
using spec::CheckChoice;
using spec::CheckRange;

// In certificates, and in each call of an operator, they are compared one by one.
constexpr int kMaxOwners = 64;

absl::Status CheckOwners(const Metadata& metadata) {
  if (metadata.owners_size() > kMaxOwners) {
    return Bad("metadata.owners", absl::StrCat("has ", metadata.owners_size(), " names; at most ",
                                               kMaxOwners, " are allowed (\"*\": every operator)"));
  }
  for (int i = 0; i < metadata.owners_size(); ++i) {
    const std::string& owner = metadata.owners(i);
    const std::string field = absl::StrCat("metadata.owners[", i, "]");
    if (owner != "*") {
      const absl::Status named = CheckIdentityName(owner);
      if (!named.ok()) return Bad(field, absl::StrCat(named.message(), "; \"*\": every operator"));
    }
    const auto before = metadata.owners().begin() + i;
    if (std::find(metadata.owners().begin(), before, owner) != before) {
      return Bad(field, absl::StrCat("'", owner, "' is named before; name each once"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckHead(const TrainingJob& job) {
  STRATA_RETURN_IF_BAD(CheckChoice("apiVersion", job.api_version(), {"strata/v1"}));
  STRATA_RETURN_IF_BAD(CheckChoice("kind", job.kind(), {"TrainingJob"}));
  const std::string& name = job.metadata().name();
  if (name.empty()) return Bad("metadata.name", "is missing; name the job");
  if (name.size() > 63) {
    return Bad("metadata.name",
               absl::StrCat("has ", name.size(), " characters; at most 63 are allowed"));
  }
  for (char c : name) {
    if (!absl::ascii_isalnum(c) && c != '-' && c != '_' && c != '.') {
      return Bad("metadata.name",
                 absl::StrCat("'", name, "' may hold letters, digits, '-', '_' and '.' only"));
    }
  }
  if (name[0] == '-' || name[0] == '.') {
    return Bad("metadata.name", absl::StrCat("'", name, "' must not start with '-' or '.'"));
  }
  return CheckOwners(job.metadata());
}

absl::Status CheckAllPaths(const JobSpec& job) {
  STRATA_RETURN_IF_BAD(spec::CheckPaths("spec.data.train", job.data().train()));
  STRATA_RETURN_IF_BAD(spec::CheckPaths("spec.data.eval", job.data().eval()));
  STRATA_RETURN_IF_BAD(
      spec::CheckPath("spec.model.initFrom", job.model().init_from().checkpoint()));
  STRATA_RETURN_IF_BAD(spec::CheckPath("spec.storage.directory", job.storage().directory()));
  STRATA_RETURN_IF_BAD(spec::CheckPath("spec.checkpoint.directory", job.checkpoint().directory()));
  STRATA_RETURN_IF_BAD(spec::CheckPath("spec.output.predictions", job.output().predictions()));
  STRATA_RETURN_IF_BAD(spec::CheckPath("spec.output.metrics", job.output().metrics()));
  return spec::CheckPath("spec.output.removed", job.output().removed());
}

absl::Status ResolveFiles(const JobSpec& job, CheckpointSpec& c, OutputSpec& output) {
  if (!c.has_every_steps()) c.set_every_steps(0);
  if (!c.has_keep()) c.set_keep(3);
  STRATA_RETURN_IF_BAD(CheckRange("spec.checkpoint.keep", c.keep(), 1, 1000000));
  if (!c.has_full_every()) c.set_full_every(1);
  STRATA_RETURN_IF_BAD(CheckRange("spec.checkpoint.fullEvery", c.full_every(), 1, 1000));
  if (c.every_steps() > 0 && c.directory().empty()) {
    return Bad("spec.checkpoint.everySteps",
               absl::StrCat(c.every_steps(), " needs a place; set spec.checkpoint.directory"));
  }
  if (!output.predictions().empty() && job.data().eval().empty()) {
    return Bad("spec.output.predictions", "needs held-out files; name them in spec.data.eval");
  }
  const bool removes =
      job.tables().empty()
          ? job.life_cycle().has_removal()
          : std::any_of(job.tables().begin(), job.tables().end(),
                        [](const TableConfig& t) { return t.life_cycle().has_removal(); });
  if (!output.removed().empty() && !removes) {
    return Bad("spec.output.removed", "nothing is ever removed; set spec.lifeCycle.removal");
  }
  if (!output.removed().empty() && job.storage().replicas() > 1) {
    return Bad("spec.output.removed",
               absl::StrCat("each of ", job.storage().replicas(),
                            " copies of a shard would write it; set spec.storage.replicas to 1 and "
                            "spec.storage.durability to logged, or leave it out"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveJob(TrainingJob& job) {
  STRATA_RETURN_IF_BAD(ResolveAccepted(job));
  STRATA_RETURN_IF_BAD(spec::CheckColumnCount(job.spec().data()));
  return spec::CheckDefaults(job.spec());
}

absl::Status ResolveAccepted(TrainingJob& job) {
  STRATA_RETURN_IF_BAD(CheckHead(job));
  JobSpec& job_spec = *job.mutable_spec();
  STRATA_RETURN_IF_BAD(CheckAllPaths(job_spec));
  STRATA_RETURN_IF_BAD(spec::ResolveData(job_spec));
  STRATA_RETURN_IF_BAD(spec::ResolveModel(*job_spec.mutable_model()));
  STRATA_RETURN_IF_BAD(spec::CheckTableNames(job_spec));
  STRATA_RETURN_IF_BAD(spec::ResolveFields(job_spec));
  STRATA_RETURN_IF_BAD(spec::ResolveAttention(job_spec));
  STRATA_RETURN_IF_BAD(spec::ResolveOptimizers(job_spec.model(), *job_spec.mutable_optimizer()));
  STRATA_RETURN_IF_BAD(spec::ResolveTraining(*job_spec.mutable_training()));
  STRATA_RETURN_IF_BAD(spec::ResolveLabels(job_spec));
  STRATA_RETURN_IF_BAD(spec::ResolveEvaluation(job_spec.data(), job_spec.training(),
                                               *job_spec.mutable_evaluation()));
  STRATA_RETURN_IF_BAD(spec::CheckMetrics(job_spec));
  STRATA_RETURN_IF_BAD(spec::ResolveReplicas(job_spec.training(), *job_spec.mutable_replicas()));
  STRATA_RETURN_IF_BAD(spec::ResolveWorker(*job_spec.mutable_worker()));
  STRATA_RETURN_IF_BAD(spec::ResolveStorage(job_spec.replicas(), *job_spec.mutable_storage()));
  if (job_spec.has_recovery()) {
    STRATA_RETURN_IF_BAD(spec::CheckRecovery(job_spec.recovery()));
  }
  if (job_spec.has_life_cycle()) {
    STRATA_RETURN_IF_BAD(spec::ResolveLifeCycle(job_spec.training(), job_spec.storage(),
                                                *job_spec.mutable_life_cycle()));
  }
  STRATA_RETURN_IF_BAD(spec::ResolveTables(job_spec));
  STRATA_RETURN_IF_BAD(spec::CheckClicks(job_spec));
  STRATA_RETURN_IF_BAD(SequencesOf(job_spec, 0).status());
  return ResolveFiles(job_spec, *job_spec.mutable_checkpoint(), *job_spec.mutable_output());
}

}  // namespace strata
