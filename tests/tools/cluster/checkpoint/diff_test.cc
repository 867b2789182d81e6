// Rows of two checkpoints are compared where they are the same things, wherever they lie.
#include "tools/cluster/checkpoint/diff.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/started_job.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

using testing::CsvJob;
using testing::From;
using testing::LabelledJob;
using testing::Train;

void SetSgd(TrainingJob& job) {
  OptimizersSpec& optimizer = *job.mutable_spec()->mutable_optimizer();
  optimizer.clear_linear();
  for (OptimizerConfig* o : {optimizer.mutable_sparse(), optimizer.mutable_dense()}) {
    o->set_type("sgd");
    o->set_learning_rate(0.05f);
  }
}

TrainingJob Job(const TempFolder& folder, const std::string& type,
                const std::vector<uint32_t>& hidden) {
  TrainingJob job = CsvJob(folder.path() + "/t.csv", type, {"y", "user", "item", "price"});
  job.mutable_spec()->mutable_model()->mutable_hidden()->Assign(hidden.begin(), hidden.end());
  SetSgd(job);
  return job;
}

// "features 54, dense 8": rows that both have, and whose weights are the same but for a step of
// nothing. Others are told as such.
std::string Compared(const CheckpointDifference& difference) {
  std::string text;
  for (const TableDifference& t : difference.tables) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", t.name, " ", t.rows_b);
    if (t.added + t.removed > 0) absl::StrAppend(&text, " (added or removed)");
    if (t.distance > 1e-20) absl::StrAppend(&text, " (moved by ", t.distance, ")");
  }
  return text;
}

std::string Rest(const CheckpointDifference& difference) {
  std::string text;
  for (const NotCompared& n : difference.not_compared) {
    absl::StrAppend(&text, n.part, " ", n.name, ": ", n.why, "\n");
  }
  return text;
}

CheckpointDifference Diff(const std::string& a, const std::string& b) {
  const auto found = DiffCheckpoints(a, b, 3);
  INFO(found.status());
  REQUIRE(found.ok());
  return *found;
}

TEST_CASE("columns of labels that come in another order are not compared", "[diff]") {
  const TempFolder folder;
  TrainingJob job = LabelledJob(folder.path() + "/1.csv", {"y", "z"});
  SetSgd(job);
  const std::string a = Train(job, folder.path() + "/a");
  const std::string b =
      Train(From(LabelledJob(folder.path() + "/2.csv", {"z", "y"}), a), folder.path() + "/b");
  const CheckpointDifference found = Diff(a, b);
  CHECK(Compared(found) == "dense 4");  // two hidden layers
  CHECK(Rest(found) ==
        "table features: by labels\ntensor bias: by labels\ntensor numeric_weight: by labels\n"
        "tensor output_weight: by labels\ntensor output_bias: by labels\n"
        "tensor interaction_weight: by labels\n");
}

TEST_CASE("with other layers, those of one name and shape are compared where they lie", "[diff]") {
  const TempFolder folder;
  const std::string a = Train(Job(folder, "deepfm", {8, 8}), folder.path() + "/a");
  CHECK(Compared(Diff(a, a)) == "features 54, dense 8");
  CHECK(Rest(Diff(a, a)).empty());
  const std::string deeper =
      Train(From(Job(folder, "deepfm", {8, 8, 8}), a), folder.path() + "/deeper");
  CHECK(Compared(Diff(a, deeper)) == "features 54, dense 8");
  CHECK(Rest(Diff(a, deeper)) ==
        "tensor layer_2_weight: in b alone\ntensor layer_2_bias: in b alone\n");
  CHECK(Compared(Diff(deeper, a)) == "features 54, dense 8");
  CHECK(Rest(Diff(deeper, a)) ==
        "tensor layer_2_weight: in a alone\ntensor layer_2_bias: in a alone\n");
  const std::string narrow =
      Train(From(Job(folder, "deepfm", {8, 4}), a), folder.path() + "/narrow");
  CHECK(Compared(Diff(a, narrow)) == "features 54, dense 5");
  CHECK(Rest(Diff(a, narrow)) ==
        "tensor layer_1_weight: other shape\ntensor layer_1_bias: other shape\n"
        "tensor output_weight: other shape\n");
  // Rows that did move are told so.
  CHECK(absl::StrContains(
      Compared(Diff(a, Train(Job(folder, "deepfm", {8, 8, 8}), folder.path() + "/anew"))),
      "dense 8 (moved by "));
}

TEST_CASE("tensors of other models are not compared, though they lie in one place", "[diff]") {
  const TempFolder folder;
  const std::string a = Train(Job(folder, "fm", {}), folder.path() + "/a");
  const std::string b = Train(From(Job(folder, "deepfm", {8}), a), folder.path() + "/b");
  CHECK(Compared(Diff(a, b)) == "features 54, dense 2");
  CHECK(Rest(Diff(a, b)) ==
        "tensor layer_0_weight: in b alone\ntensor layer_0_bias: in b alone\n"
        "tensor output_weight: in b alone\ntensor output_bias: in b alone\n"
        "tensor numeric_embedding: in a alone\n");
}

TEST_CASE("rows of keys that mean other values, or of other optimizers, are not compared",
          "[diff]") {
  const TempFolder folder;
  const TrainingJob job = Job(folder, "deepfm", {8});
  const std::string a = Train(job, folder.path() + "/a");
  TrainingJob other = job;
  other.mutable_spec()->mutable_model()->set_hash_seed(9);
  CheckpointDifference found = Diff(a, Train(other, folder.path() + "/b"));
  REQUIRE(found.tables.size() == 1);
  CHECK(found.tables[0].name == "dense");
  CHECK(absl::StrContains(Rest(found), "table features: field user: hashSeed was 0, is 9\n"));
  other = job;
  other.mutable_spec()->mutable_optimizer()->mutable_dense()->set_type("momentum");
  found = Diff(a, Train(other, folder.path() + "/c"));
  REQUIRE(found.tables.size() == 1);
  CHECK(found.tables[0].name == "features");
  CHECK(absl::StrContains(Rest(found), "tensor output_bias: other optimizer\n"));
}

}  // namespace
}  // namespace strata
