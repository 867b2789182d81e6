// What a model may depend on: each of it changes the model, or the P3 table would show nothing.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <string>

#include "ops/cpu_features.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/e2e/p3/models.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

// The model hash of SmallJob on every machine, with AVX-512 or without. It changes with whatever is
// meant to change a model or its hash, and with nothing else.
constexpr char kSmallJobHash[] = "88779caab928356eac48e2b9cec18bd7";

TEST_CASE("a small job's model is the one written here", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = SmallJob(folder.path());
  const JobStatus reference = Train(job);
  CHECK(reference.result().auc() > 0.55);
  CHECK(reference.step() == 20);
  CHECK(reference.model_hash() == kSmallJobHash);
  const ops::IsaLevel before = ops::SetActiveIsaLevel(ops::IsaLevel::kV3);
  CHECK(Train(job).model_hash() == kSmallJobHash);
  ops::SetActiveIsaLevel(before);
  job.mutable_spec()->mutable_training()->set_seed(2);
  CHECK(Train(job).model_hash() != kSmallJobHash);
  job.mutable_spec()->mutable_training()->clear_seed();
  job.mutable_spec()->mutable_training()->set_lanes(8);
  CHECK(Train(job).model_hash() != kSmallJobHash);
}

TEST_CASE("schedules, ftrl, momentum, decay and clipping each have an effect", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = SmallJob(folder.path());
  UseManyOptimizers(*job.mutable_spec());
  job.mutable_spec()->mutable_training()->set_epochs(6);
  const JobStatus reference = Train(job);
  CHECK(reference.result().auc() > 0.55);
  CHECK(reference.clipped_rows() > 0);
  CHECK(reference.refused_rows() == 0);
  const auto differs = [&](const std::string& what,
                           const std::function<void(OptimizersSpec&)>& change) {
    TrainingJob changed = job;
    change(*changed.mutable_spec()->mutable_optimizer());
    INFO(what);
    CHECK(Train(changed).model_hash() != reference.model_hash());
  };
  differs("sparse schedule", [](auto& o) { o.mutable_sparse()->clear_schedule(); });
  differs("sparse decay", [](auto& o) { o.mutable_sparse()->clear_weight_decay(); });
  differs("sparse clipping", [](auto& o) { o.mutable_sparse()->clear_clip_norm(); });
  differs("linear schedule", [](auto& o) { o.mutable_linear()->clear_schedule(); });
  differs("linear l1", [](auto& o) { o.mutable_linear()->set_l1(0); });
  differs("dense schedule", [](auto& o) { o.mutable_dense()->clear_schedule(); });
  differs("nesterov", [](auto& o) { o.mutable_dense()->set_nesterov(false); });
}

TEST_CASE("a codec changes the model, a little", "[e2e][p3][codec]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = SmallJob(folder.path());
  const JobStatus exact = Train(job);
  std::string seen = exact.model_hash();
  for (const char* codec : {"bf16", "int8"}) {
    INFO(codec);
    job.mutable_spec()->mutable_training()->set_pull_codec(codec);
    const JobStatus lossy = Train(job);
    CHECK(lossy.model_hash() != exact.model_hash());
    CHECK(lossy.model_hash() != seen);
    seen = lossy.model_hash();
    CHECK(std::fabs(lossy.result().auc() - exact.result().auc()) < 0.02);
  }
  job.mutable_spec()->mutable_training()->set_pull_codec("float32");
  CHECK(Train(job).model_hash() == exact.model_hash());
}

TEST_CASE("a life cycle changes the model", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  for (const Model& model : Models()) {
    if (!model.life_cycle) continue;
    INFO(model.name);
    const Reference reference = MakeReference(model, folder.path());
    TrainingJob without = reference.job;
    without.mutable_spec()->clear_life_cycle();
    for (TableConfig& table : *without.mutable_spec()->mutable_tables()) table.clear_life_cycle();
    CHECK(Train(without).model_hash() != reference.status.model_hash());
  }
}

}  // namespace
}  // namespace strata::testing
