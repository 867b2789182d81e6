// Quality on Frappe (Baltrunas et al. 2015, libfm): real where `tools/test --data DIR` names it,
// else on generated data of its shape (10 fields, pairwise interactions) with bars of its own.
//
// Full bars (--long): the mean of 3 seeds. Otherwise one seed, with Looser() taken off: seeds
// differ by .001 to .002, and a broken gradient, rate or shuffle costs far more.
#include <catch2/catch.hpp>
#include <string>

#include "proto/strata/job.pb.h"
#include "tests/quality/data_set.h"
#include "tests/quality/train_job.h"
#include "tests/skip.h"
#include "tools/cluster/embedded.h"
#include "tools/cluster/scratch_folder.h"

namespace strata {
namespace {

using testing::DataSet;
using testing::MeanOverSeeds;
using testing::QualityJob;
using testing::SetTraining;
using testing::TrainAndEvaluate;

// One bar: a model, its optimizer's rate, and the AUC wanted with bsp, one lane, batch 256. What 4
// lanes of 64 may fall short of that: .003 in bsp, .004 in async.
struct Bar {
  std::string model;
  float rate;
  uint32_t epochs;
  double auc;
};

double Auc(const DataSet& data, const Bar& bar, const std::string& mode, uint32_t lanes) {
  TrainingJob job = QualityJob("libfm", data.train, data.eval, bar.model, bar.rate, bar.epochs);
  return MeanOverSeeds([&](uint64_t seed) {
    SetTraining(job, mode, lanes, 256 / lanes, seed);
    return TrainAndEvaluate(job, data.train_lines).auc();
  });
}

void CheckBar(const DataSet& data, const Bar& bar, double looser) {
  INFO(bar.model << ", AUC wanted " << bar.auc << ", less " << looser);
  CHECK(Auc(data, bar, "bsp", 1) >= bar.auc - looser);
  CHECK(Auc(data, bar, "bsp", 4) >= bar.auc - 0.003 - looser);
  CHECK(Auc(data, bar, "async", 4) >= bar.auc - 0.004 - looser);
}

TEST_CASE("models reach their quality on Frappe", "[quality]") {
  const auto data = testing::FrappeData();
  if (!data) STRATA_SKIP("needs real data: tools/test --data DIR");
  const double looser = testing::Looser();
  CheckBar(*data, {"lr", 0.1f, 10, 0.927}, looser);
  CheckBar(*data, {"fm", 0.05f, 20, 0.942}, looser);
  CheckBar(*data, {"deepfm", 0.05f, 5, 0.946}, looser);
}

// The bars stand .003 to .004 below what was measured (seed 1, one lane: .7997, .9557, .9524),
// which in bsp is the same to the bit wherever it is trained.
TEST_CASE("models reach their quality on generated data", "[quality]") {
  auto folder = ScratchFolder::Make("strata-quality");
  REQUIRE(folder.ok());
  const DataSet data = testing::GeneratedData(folder->path());
  CheckBar(data, {"lr", 0.1f, 3, 0.796}, 0);
  // Its order of scores is learnt long before their size: what a wrong rate spoils is the logloss,
  // .5344 here.
  TrainingJob lr = QualityJob("libfm", data.train, data.eval, "lr", 0.1f, 3);
  SetTraining(lr, "bsp", 1, 256, 1);
  CHECK(TrainAndEvaluate(lr, data.train_lines).logloss() < 0.55);
  CheckBar(data, {"fm", 0.05f, 5, 0.952}, 0);
  CheckBar(data, {"deepfm", 0.05f, 3, 0.949}, 0);
}

// Frappe's 5,000 features lie within it; of the generated set's 100,000 most of fm do not.
TEST_CASE("4 MiB of DRAM are admitted, and change no bit", "[quality][storage]") {
  auto folder = ScratchFolder::Make("strata-quality");
  REQUIRE(folder.ok());
  const auto real = testing::FrappeData();
  const DataSet data = real ? *real : testing::GeneratedData(folder->path(), 100000);
  for (const char* model : {"lr", "fm"}) {
    TrainingJob job = QualityJob("libfm", data.train, data.eval, model, 0.1f, 1);
    SetTraining(job, "bsp", 1, 256, 1);
    const auto hash = [&] {
      EmbeddedOptions options;
      options.job = job;
      const auto status = RunEmbedded(options);
      INFO(status.status());
      REQUIRE(status.ok());
      REQUIRE(status->state() == SUCCEEDED);
      return status->model_hash();
    };
    const std::string unlimited = hash();
    job.mutable_spec()->mutable_storage()->set_dram_bytes_per_server("4MiB");
    INFO(model);
    CHECK(hash() == unlimited);
  }
}

}  // namespace
}  // namespace strata
