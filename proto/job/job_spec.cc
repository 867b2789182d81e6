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
#include "proto/job/tables/life_cycle_spec.h"
#include "proto/job/tables/optimizer_spec.h"
#include "proto/job/tables/tables_spec.h"
#include "proto/job/training_spec.h"
#include "proto/job/worker_spec.h"

namespace strata {
namespace {

using spec::Bad;
using spec::CheckChoice;
using spec::CheckRange;

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
  return absl::OkStatus();
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

absl::Status CheckBytes(absl::string_view field, const std::string& text, uint64_t least) {
  absl::StatusOr<uint64_t> bytes = ParseBytes(text);
  if (!bytes.ok()) return Bad(field, bytes.status().message());
  return CheckRange(field, *bytes, least, uint64_t{1} << 60);
}

absl::Status ResolveStorage(const ReplicasSpec& replicas, StorageSpec& s) {
  if (s.dram_bytes_per_server().empty()) s.set_dram_bytes_per_server("0");
  STRATA_RETURN_IF_BAD(CheckBytes("spec.storage.dramBytesPerServer", s.dram_bytes_per_server(), 0));
  if (s.log_bytes_per_server().empty()) s.set_log_bytes_per_server("1GiB");
  STRATA_RETURN_IF_BAD(CheckBytes("spec.storage.logBytesPerServer", s.log_bytes_per_server(), 1));
  if (s.eviction().empty()) s.set_eviction("lrfu");
  STRATA_RETURN_IF_BAD(CheckChoice("spec.storage.eviction", s.eviction(), {"lrfu", "lfu", "lru"}));
  if (s.snapshot_bytes_per_second().empty()) s.set_snapshot_bytes_per_second("384MiB");
  STRATA_RETURN_IF_BAD(
      CheckBytes("spec.storage.snapshotBytesPerSecond", s.snapshot_bytes_per_second(), 0));
  if (s.durability().empty()) s.set_durability("logged");
  if (s.durability() == "replicated") {
    return Bad(
        "spec.storage.durability",
        "'replicated' is not available in this version; give one of: memory, logged, synced");
  }
  STRATA_RETURN_IF_BAD(
      CheckChoice("spec.storage.durability", s.durability(), {"memory", "logged", "synced"}));
  if (s.ssd().empty()) s.set_ssd("rowfile");
  STRATA_RETURN_IF_BAD(CheckChoice("spec.storage.ssd", s.ssd(), {"rocksdb", "rowfile"}));
  // An explicit 0 takes the tier away, whatever else is said; without a size it was forgotten.
  if (s.gpu_backend() == "host" && s.gpu_bytes_per_server().empty()) {
    return Bad("spec.storage.gpuBackend",
               "host, but there is no GPU tier; give spec.storage.gpuBytesPerServer too");
  }
  if (s.gpu_bytes_per_server().empty()) s.set_gpu_bytes_per_server("0");
  STRATA_RETURN_IF_BAD(CheckBytes("spec.storage.gpuBytesPerServer", s.gpu_bytes_per_server(), 0));
  if (s.gpu_backend().empty()) s.set_gpu_backend("cuda");
  STRATA_RETURN_IF_BAD(CheckChoice("spec.storage.gpuBackend", s.gpu_backend(), {"cuda", "host"}));
  if (!s.has_partitions()) s.set_partitions(4096);
  STRATA_RETURN_IF_BAD(CheckRange("spec.storage.partitions", s.partitions(), 1, 1u << 20));
  if ((s.partitions() & (s.partitions() - 1)) != 0) {
    return Bad("spec.storage.partitions", absl::StrCat(s.partitions(), " is not a power of two"));
  }
  const uint64_t per_server = s.has_shards_per_server() ? s.shards_per_server() : 1;
  STRATA_RETURN_IF_BAD(CheckRange("spec.storage.shardsPerServer", per_server, 1, 1u << 20));
  if (per_server * replicas.servers() > s.partitions()) {
    return Bad("spec.storage.partitions",
               absl::StrCat(s.partitions(), " is less than the ", per_server * replicas.servers(),
                            " shards of ", replicas.servers(),
                            " servers; a shard is at least one partition"));
  }
  return absl::OkStatus();
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
  STRATA_RETURN_IF_BAD(ResolveStorage(job_spec.replicas(), *job_spec.mutable_storage()));
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
