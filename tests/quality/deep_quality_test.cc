// Quality of wide_deep, dcn_v2 and dlrm on generated data of Frappe's shape, with bars of its own,
// and with `tools/test --long --data DIR` on Frappe itself (Baltrunas et al. 2015, libfm), which
// takes ten times as much work. The settings for Frappe are those of tools/examples/frappe_*.yaml;
// they were chosen on a fifth of the training lines held out.
//
// Full bars (--long): the mean of 3 seeds. Otherwise one seed, with Looser() taken off.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "proto/strata/job.pb.h"
#include "tests/quality/data_set.h"
#include "tests/quality/train_job.h"
#include "tests/skip.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata {
namespace {

using testing::DataSet;
using testing::MeanOverSeeds;
using testing::QualityJob;
using testing::SetTraining;
using testing::TrainAndEvaluate;

struct Bar {
  std::string model;
  float sparse_rate;
  float dense_rate;
  float init_scale;
  std::vector<uint32_t> hidden;
  uint32_t epochs;
  double auc;  // wanted with 4 bsp lanes of 64, dimension 16
};

void CheckBar(const DataSet& data, const Bar& bar) {
  TrainingJob job =
      QualityJob("libfm", data.train, data.eval, bar.model, bar.sparse_rate, bar.epochs);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_optimizer()->mutable_dense()->set_learning_rate(bar.dense_rate);
  spec.mutable_model()->set_init_scale(bar.init_scale);
  for (uint32_t width : bar.hidden) spec.mutable_model()->add_hidden(width);
  const double auc = MeanOverSeeds([&](uint64_t seed) {
    SetTraining(job, "bsp", 4, 64, seed);
    return TrainAndEvaluate(job, data.train_lines).auc();
  });
  const double looser = testing::Looser();
  INFO(bar.model << ", AUC wanted " << bar.auc << ", less " << looser);
  CHECK(auc >= bar.auc - looser);
}

TEST_CASE("deep models reach their quality on Frappe", "[quality]") {
  if (!LongRun()) STRATA_SKIP("takes long: tools/test --long --data DIR");
  const auto data = testing::FrappeData();
  if (!data) STRATA_SKIP("needs real data: tools/test --data DIR");
  CheckBar(*data, {"wide_deep", 0.2f, 0.001f, 0.01f, {1000}, 10, 0.945});
  CheckBar(*data, {"dcn_v2", 0.1f, 0.003f, 0.3f, {400, 400, 400}, 4, 0.945});
  CheckBar(*data, {"dlrm", 0.1f, 0.001f, 0.01f, {400, 400, 400}, 4, 0.945});
}

TEST_CASE("deep models reach their quality on generated data", "[quality]") {
  auto folder = ScratchFolder::Make("strata-quality");
  REQUIRE(folder.ok());
  const DataSet data = testing::GeneratedData(folder->path());
  CheckBar(data, {"wide_deep", 0.1f, 0.003f, 0.1f, {400}, 5, 0.94});
  CheckBar(data, {"dcn_v2", 0.1f, 0.001f, 0.1f, {400}, 7, 0.92});
  CheckBar(data, {"dlrm", 0.1f, 0.001f, 0.1f, {400}, 9, 0.925});
}

}  // namespace
}  // namespace strata
