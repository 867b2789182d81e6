// Quality of wide_deep, dcn_v2 and dlrm on Frappe (Baltrunas et al. 2015, libfm): real where
// `tools/test --data DIR` names it, else on generated data of its shape with bars of its own. The
// settings are those of tools/examples/frappe_*.yaml; they were chosen on a fifth of the training
// lines held out.
//
// Full bars (--long): the mean of 3 seeds. Otherwise one seed, with kLooser taken off.
#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

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

struct Bar {
  std::string model;
  float sparse_rate;
  float dense_rate;
  float init_scale;
  std::vector<uint32_t> hidden;
  uint32_t epochs;
  double auc;  // wanted with 4 bsp lanes of 64, dimension 16
};

void CheckBar(const std::string& train, const std::string& eval, uint64_t lines, const Bar& bar) {
  TrainingJob job = QualityJob("libfm", train, eval, bar.model, bar.sparse_rate, bar.epochs);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_optimizer()->mutable_dense()->set_learning_rate(bar.dense_rate);
  spec.mutable_model()->set_init_scale(bar.init_scale);
  for (uint32_t width : bar.hidden) spec.mutable_model()->add_hidden(width);
  double sum = 0;
  const int seeds = LongRun() ? 3 : 1;
  for (int seed = 1; seed <= seeds; ++seed) {
    SetTraining(job, "bsp", 4, 64, static_cast<uint64_t>(seed));
    sum += TrainAndEvaluate(job, lines).auc();
  }
  const double looser = LongRun() ? 0 : kLooser;
  INFO(bar.model << ", AUC wanted " << bar.auc << ", less " << looser);
  CHECK(sum / seeds >= bar.auc - looser);
}

TEST_CASE("deep models reach their quality on Frappe", "[quality]") {
  if (!DataFolder()) STRATA_SKIP("needs real data: tools/test --data DIR");
  const std::string folder = *DataFolder() + "/frappe";
  const std::string train = folder + "/train.libfm", eval = folder + "/test.libfm";
  uint64_t lines = 0;
  std::ifstream in(train);
  for (std::string line; std::getline(in, line);) ++lines;
  REQUIRE(lines > 0);
  std::fprintf(stderr, "data: %s\n", folder.c_str());
  CheckBar(train, eval, lines, {"wide_deep", 0.2f, 0.001f, 0.01f, {1000}, 10, 0.945});
  CheckBar(train, eval, lines, {"dcn_v2", 0.1f, 0.003f, 0.3f, {400, 400, 400}, 4, 0.945});
  CheckBar(train, eval, lines, {"dlrm", 0.1f, 0.001f, 0.01f, {400, 400, 400}, 4, 0.945});
}

TEST_CASE("deep models reach their quality on generated data", "[quality]") {
  auto folder = ScratchFolder::Make("strata-quality");
  REQUIRE(folder.ok());
  const std::string train = folder->path() + "/train.libfm", eval = folder->path() + "/eval.libfm";
  constexpr uint64_t kLines = 40000;
  testing::WriteLibfm(train, 1, kLines, 10, 50);
  testing::WriteLibfm(eval, 2, 10000, 10, 50);
  std::fprintf(stderr, "data: generated\n");
  CheckBar(train, eval, kLines, {"wide_deep", 0.1f, 0.003f, 0.1f, {400}, 5, 0.94});
  CheckBar(train, eval, kLines, {"dcn_v2", 0.1f, 0.001f, 0.1f, {400}, 7, 0.92});
  CheckBar(train, eval, kLines, {"dlrm", 0.1f, 0.001f, 0.1f, {400}, 9, 0.925});
}

}  // namespace
}  // namespace strata
