// What the asynchronous modes cost in quality: each against bsp with the same model, 4 lanes of 64,
// on Frappe where `tools/test --data DIR` names it, else on generated data of its shape.
//
// Full bars (--long): the mean of 3 seeds. Otherwise one seed, with kLooser more.
#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <string>

#include "proto/strata/job.pb.h"
#include "tests/e2e/small_job.h"
#include "tests/quality/train_job.h"
#include "tests/skip.h"
#include "tools/cluster/scratch_folder.h"

namespace strata {
namespace {

using testing::QualityJob;
using testing::SetTraining;
using testing::TrainAndEvaluate;

constexpr double kLooser = 0.004;

struct DataSet {
  std::string train;
  std::string eval;
  uint64_t train_lines = 0;
};

uint64_t CountLines(const std::string& path) {
  std::ifstream in(path);
  REQUIRE(in.good());
  uint64_t lines = 0;
  for (std::string line; std::getline(in, line);) ++lines;
  return lines;
}

struct Setting {
  std::string mode;
  float rate = 0.05f;  // adagrad's, of the rows of features
  uint32_t epochs = 5;
  uint32_t n = 1;  // nFetch and nPush, or tau
};

// Mean over seeds.
double Auc(const DataSet& data, const std::string& model, const Setting& setting) {
  double sum = 0;
  const int seeds = LongRun() ? 3 : 1;
  for (int seed = 1; seed <= seeds; ++seed) {
    TrainingJob job =
        QualityJob("libfm", data.train, data.eval, model, setting.rate, setting.epochs);
    SetTraining(job, setting.mode, 4, 64, static_cast<uint64_t>(seed));
    TrainingSpec& training = *job.mutable_spec()->mutable_training();
    if (setting.mode == "downpour") {
      training.set_n_fetch(setting.n);
      training.set_n_push(setting.n);
    } else if (setting.mode == "easgd") {
      training.set_tau(setting.n);
    }
    sum += TrainAndEvaluate(job, data.train_lines).auc();
  }
  return sum / seeds;
}

// The bars, as AUC below bsp's. Settings were chosen on a sixth of the training lines, held out.
void CheckModes(const DataSet& data, const std::string& model, uint32_t epochs, float easgd_rate) {
  const double looser = LongRun() ? 0 : kLooser;
  const double bsp = Auc(data, model, {"bsp", 0.05f, epochs});
  INFO(model << ", bsp " << bsp << ", looser by " << looser);
  CHECK(Auc(data, model, {"downpour", 0.05f, epochs, 1}) >= bsp - 0.004 - looser);
  CHECK(Auc(data, model, {"downpour", 0.05f, epochs, 4}) >= bsp - 0.01 - looser);
  CHECK(Auc(data, model, {"easgd", easgd_rate, epochs, 4}) >= bsp - 0.01 - looser);
}

TEST_CASE("modes keep their quality on Frappe", "[quality]") {
  if (!DataFolder()) STRATA_SKIP("needs real data: tools/test --data DIR");
  const std::string folder = *DataFolder() + "/frappe";
  const DataSet data = {folder + "/train.libfm", folder + "/test.libfm",
                        CountLines(folder + "/train.libfm")};
  std::fprintf(stderr, "data: %s\n", folder.c_str());
  CheckModes(data, "deepfm", 5, 0.2f);
  CheckModes(data, "fm", 20, 0.15f);
}

TEST_CASE("modes keep their quality on generated data", "[quality]") {
  auto folder = ScratchFolder::Make("strata-quality");
  REQUIRE(folder.ok());
  const DataSet data = {folder->path() + "/train.libfm", folder->path() + "/eval.libfm", 40000};
  testing::WriteLibfm(data.train, 1, 40000, 10, 50);
  testing::WriteLibfm(data.eval, 2, 10000, 10, 50);
  std::fprintf(stderr, "data: generated\n");
  CheckModes(data, "deepfm", 3, 0.2f);
}

}  // namespace
}  // namespace strata
