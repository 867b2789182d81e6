// What the asynchronous modes cost in quality: each against bsp with the same model, 4 lanes of 64,
// on Frappe where `tools/test --data DIR` names it, else on generated data of its shape.
//
// Full bars (--long): the mean of 3 seeds. Otherwise one seed, with Looser() more.
#include <catch2/catch.hpp>
#include <string>

#include "proto/strata/job.pb.h"
#include "tests/quality/data_set.h"
#include "tests/quality/train_job.h"
#include "tests/skip.h"
#include "tools/cluster/scratch_folder.h"

namespace strata {
namespace {

using testing::DataSet;
using testing::MeanOverSeeds;
using testing::QualityJob;
using testing::SetTraining;
using testing::TrainAndEvaluate;

struct Setting {
  std::string mode;
  float rate = 0.05f;  // adagrad's, of the rows of features
  uint32_t epochs = 5;
  uint32_t n = 1;  // nFetch and nPush, or tau
};

double Auc(const DataSet& data, const std::string& model, const Setting& setting) {
  TrainingJob job = QualityJob("libfm", data.train, data.eval, model, setting.rate, setting.epochs);
  TrainingSpec& training = *job.mutable_spec()->mutable_training();
  if (setting.mode == "downpour") {
    training.set_n_fetch(setting.n);
    training.set_n_push(setting.n);
  } else if (setting.mode == "easgd") {
    training.set_tau(setting.n);
  }
  return MeanOverSeeds([&](uint64_t seed) {
    SetTraining(job, setting.mode, 4, 64, seed);
    return TrainAndEvaluate(job, data.train_lines).auc();
  });
}

// The bars, as AUC below bsp's. Settings were chosen on a sixth of the training lines, held out.
void CheckModes(const DataSet& data, const std::string& model, uint32_t epochs, float easgd_rate) {
  const double looser = testing::Looser();
  const double bsp = Auc(data, model, {"bsp", 0.05f, epochs});
  INFO(model << ", bsp " << bsp << ", looser by " << looser);
  CHECK(Auc(data, model, {"downpour", 0.05f, epochs, 1}) >= bsp - 0.004 - looser);
  CHECK(Auc(data, model, {"downpour", 0.05f, epochs, 4}) >= bsp - 0.01 - looser);
  CHECK(Auc(data, model, {"easgd", easgd_rate, epochs, 4}) >= bsp - 0.01 - looser);
}

TEST_CASE("modes keep their quality on Frappe", "[quality]") {
  const auto data = testing::FrappeData();
  if (!data) STRATA_SKIP("needs real data: tools/test --data DIR");
  CheckModes(*data, "deepfm", 5, 0.2f);
  CheckModes(*data, "fm", 20, 0.15f);
}

TEST_CASE("modes keep their quality on generated data", "[quality]") {
  auto folder = ScratchFolder::Make("strata-quality");
  REQUIRE(folder.ok());
  const DataSet data = testing::GeneratedData(folder->path());
  CheckModes(data, "deepfm", 3, 0.2f);
}

}  // namespace
}  // namespace strata
