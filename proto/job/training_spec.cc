#include "proto/job/training_spec.h"

#include "absl/strings/str_cat.h"
#include "proto/job/checks/spec_checks.h"

namespace strata::spec {
namespace {

// Batches between two pulls, pushes or exchanges. A task has at most 8192 lines, and none of these
// goes over a task's end: more would only read as if it did.
constexpr uint64_t kMaxBatchesBetween = 8192;

// A field of one mode only, given in a job of another.
absl::Status CheckUnused(const TrainingSpec& t, absl::string_view field, bool given,
                         absl::string_view mode) {
  if (!given || t.mode() == mode) return absl::OkStatus();
  return Bad(absl::StrCat("spec.training.", field),
             absl::StrCat("is used in mode ", mode, " only, and spec.training.mode is ", t.mode(),
                          "; remove it"));
}

absl::Status ResolveDownpour(TrainingSpec& t) {
  STRATA_RETURN_IF_BAD(CheckUnused(t, "nFetch", t.has_n_fetch(), "downpour"));
  STRATA_RETURN_IF_BAD(CheckUnused(t, "nPush", t.has_n_push(), "downpour"));
  STRATA_RETURN_IF_BAD(CheckUnused(t, "warmStartSteps", t.has_warm_start_steps(), "downpour"));
  if (t.mode() == "easgd" && t.has_local_learning_rate()) {
    return Bad("spec.training.localLearningRate",
               "is used in mode downpour only; in easgd a lane's step is that of spec.optimizer: "
               "set spec.optimizer.sparse.learningRate and spec.optimizer.dense.learningRate");
  }
  STRATA_RETURN_IF_BAD(
      CheckUnused(t, "localLearningRate", t.has_local_learning_rate(), "downpour"));
  if (t.mode() != "downpour") return absl::OkStatus();
  if (!t.has_n_fetch()) t.set_n_fetch(1);
  if (!t.has_n_push()) t.set_n_push(1);
  if (!t.has_warm_start_steps()) t.set_warm_start_steps(0);
  if (!t.has_local_learning_rate()) t.set_local_learning_rate(0.01f);
  STRATA_RETURN_IF_BAD(CheckRange("spec.training.nFetch", t.n_fetch(), 1, kMaxBatchesBetween));
  STRATA_RETURN_IF_BAD(CheckRange("spec.training.nPush", t.n_push(), 1, kMaxBatchesBetween));
  STRATA_RETURN_IF_BAD(
      CheckRange("spec.training.warmStartSteps", t.warm_start_steps(), 0, 1ull << 40));
  return CheckReal("spec.training.localLearningRate", t.local_learning_rate(), 0.0f, Low::kAllowed,
                   1e6f);
}

absl::Status ResolveEasgd(TrainingSpec& t) {
  STRATA_RETURN_IF_BAD(CheckUnused(t, "tau", t.has_tau(), "easgd"));
  STRATA_RETURN_IF_BAD(CheckUnused(t, "alpha", t.has_alpha(), "easgd"));
  if (t.mode() != "easgd") return absl::OkStatus();
  if (!t.has_tau()) t.set_tau(10);
  if (!t.has_alpha()) t.set_alpha(0.9f / static_cast<float>(t.lanes()));
  STRATA_RETURN_IF_BAD(CheckRange("spec.training.tau", t.tau(), 1, kMaxBatchesBetween));
  if (!(t.alpha() > 0.0f && t.alpha() <= 1.0f)) {
    return Bad("spec.training.alpha",
               absl::StrCat(t.alpha(), " is outside the limits; give a number above 0, at most 1"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveTraining(TrainingSpec& t) {
  if (t.mode().empty()) t.set_mode("bsp");
  STRATA_RETURN_IF_BAD(
      CheckChoice("spec.training.mode", t.mode(), {"bsp", "async", "downpour", "easgd"}));
  if (t.pull_codec().empty()) t.set_pull_codec("float32");
  STRATA_RETURN_IF_BAD(
      CheckChoice("spec.training.pullCodec", t.pull_codec(), {"float32", "bf16", "int8"}));
  if (!t.has_lanes()) t.set_lanes(8);
  if (!t.has_batch_size()) t.set_batch_size(512);
  if (!t.has_epochs()) t.set_epochs(1);
  if (!t.has_seed()) t.set_seed(1);
  if (!t.has_pipeline_depth()) t.set_pipeline_depth(4);
  STRATA_RETURN_IF_BAD(CheckRange("spec.training.lanes", t.lanes(), 1, 4096));
  STRATA_RETURN_IF_BAD(CheckRange("spec.training.batchSize", t.batch_size(), 1, 1u << 20));
  STRATA_RETURN_IF_BAD(CheckRange("spec.training.epochs", t.epochs(), 1, 1000000));
  STRATA_RETURN_IF_BAD(CheckRange("spec.training.pipelineDepth", t.pipeline_depth(), 1, 64));
  if (t.has_threads()) {
    STRATA_RETURN_IF_BAD(CheckRange("spec.training.threads", t.threads(), 1, 1024));
  }
  STRATA_RETURN_IF_BAD(ResolveDownpour(t));
  return ResolveEasgd(t);
}

absl::Status ResolveEvaluation(const DataSpec& data, const TrainingSpec& training,
                               EvaluationSpec& e) {
  if (!e.has_every_steps()) e.set_every_steps(0);
  if (!e.has_patience()) e.set_patience(0);
  if (e.every_steps() > 0 && data.eval().empty()) {
    return Bad("spec.evaluation.everySteps",
               absl::StrCat(e.every_steps(), " needs held-out files; name them in spec.data.eval"));
  }
  if (e.patience() > 0 && e.every_steps() == 0) {
    return Bad("spec.evaluation.patience",
               absl::StrCat(e.patience(), " counts evaluations; set spec.evaluation.everySteps"));
  }
  if (e.patience() > 0 && training.mode() != "bsp") {
    return Bad("spec.evaluation.patience",
               absl::StrCat(e.patience(), " needs spec.training.mode bsp: in ", training.mode(),
                            " no evaluation belongs to one state of the model that could be kept"));
  }
  return absl::OkStatus();
}

absl::Status ResolveReplicas(const TrainingSpec& training, ReplicasSpec& r) {
  if (!r.has_servers()) r.set_servers(1);
  if (!r.has_workers()) r.set_workers(1);
  STRATA_RETURN_IF_BAD(CheckRange("spec.replicas.servers", r.servers(), 1, 1024));
  STRATA_RETURN_IF_BAD(CheckRange("spec.replicas.workers", r.workers(), 1, 4096));
  if (r.workers() > training.lanes()) {
    return Bad("spec.replicas.workers",
               absl::StrCat(r.workers(), " is more than spec.training.lanes, ", training.lanes(),
                            "; a worker hosts at least one lane: use fewer workers or more lanes"));
  }
  return absl::OkStatus();
}

}  // namespace strata::spec
