// Defaults and limits of spec.model.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job/job_spec.h"
#include "proto/strata/job.pb.h"

namespace strata {
namespace {

TrainingJob JobOf(const std::string& type) {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("model");
  job.mutable_spec()->mutable_data()->set_format("criteo");
  job.mutable_spec()->mutable_data()->add_train("train.tsv");
  job.mutable_spec()->mutable_model()->set_type(type);
  return job;
}

ModelSpec Resolved(const std::string& type) {
  TrainingJob job = JobOf(type);
  REQUIRE(ResolveJob(job).ok());
  TrainingJob again = job;
  REQUIRE(ResolveJob(again).ok());
  REQUIRE(again.SerializeAsString() == job.SerializeAsString());
  return job.spec().model();
}

std::string Problem(const std::string& type, const std::function<void(ModelSpec&)>& change) {
  TrainingJob job = JobOf(type);
  change(*job.mutable_spec()->mutable_model());
  const absl::Status status = ResolveJob(job);
  if (status.ok()) return "OK";
  REQUIRE(absl::IsInvalidArgument(status));
  return std::string(status.message());
}

std::vector<uint32_t> Widths(const google::protobuf::RepeatedField<uint32_t>& field) {
  return {field.begin(), field.end()};
}

TEST_CASE("every model gets its defaults", "[job_spec]") {
  using Layers = std::vector<uint32_t>;
  for (const char* type : {"lr", "fm"}) {
    CHECK(Resolved(type).hidden().empty());
    CHECK(Resolved(type).embedding_dim() == 16);
  }
  for (const char* type : {"wide_deep", "deepfm", "dcn_v2"}) {
    CHECK(Widths(Resolved(type).hidden()) == Layers{400, 400, 400});
    CHECK(Resolved(type).bottom_hidden().empty());
  }
  const ModelSpec dcn = Resolved("dcn_v2");
  CHECK(dcn.cross_layers() == 3);
  CHECK(dcn.has_cross_rank());
  CHECK(dcn.cross_rank() == 0);
  CHECK_FALSE(Resolved("deepfm").has_cross_layers());
  const ModelSpec dlrm = Resolved("dlrm");
  CHECK(Widths(dlrm.hidden()) == Layers{256, 128});
  CHECK(Widths(dlrm.bottom_hidden()) == Layers{256, 64});
  const ModelSpec mmoe = Resolved("mmoe");
  CHECK(mmoe.experts() == 4);
  CHECK(Widths(mmoe.expert_hidden()) == Layers{64});
  CHECK(Widths(mmoe.tower_hidden()) == Layers{32});
  CHECK(mmoe.hidden().empty());
  const ModelSpec din = Resolved("din");
  CHECK(Widths(din.hidden()) == Layers{200, 80});
  CHECK(din.attention_hidden().empty());  // there is no sequence
  CHECK_FALSE(din.has_experts());
}

TEST_CASE("fields of another model are refused, not ignored", "[job_spec]") {
  CHECK(
      Problem("deepfm", [](ModelSpec& m) { m.add_bottom_hidden(8); }) ==
      "spec.model.bottomHidden: is for spec.model.type dlrm, and this job's is deepfm; remove it");
  CHECK(Problem("dlrm", [](ModelSpec& m) { m.set_cross_layers(2); }) ==
        "spec.model.crossLayers: is for spec.model.type dcn_v2, and this job's is dlrm; remove it");
  CHECK(Problem("lr", [](ModelSpec& m) { m.set_cross_rank(2); }) ==
        "spec.model.crossRank: is for spec.model.type dcn_v2, and this job's is lr; remove it");
  CHECK(Problem("din", [](ModelSpec& m) { m.set_experts(2); }) ==
        "spec.model.experts: is for spec.model.type mmoe, and this job's is din; remove it");
  CHECK(Problem("fm", [](ModelSpec& m) { m.add_expert_hidden(2); }) ==
        "spec.model.expertHidden: is for spec.model.type mmoe, and this job's is fm; remove it");
  CHECK(Problem("mmoe", [](ModelSpec& m) { m.add_attention_hidden(2); }) ==
        "spec.model.attentionHidden: is for spec.model.type din, and this job's is mmoe; remove "
        "it");
  CHECK(Problem("din", [](ModelSpec& m) { m.add_attention_hidden(2); }) ==
        "spec.model.attentionHidden: is for sequences, and the job has none; give the history a "
        "field of kind sequence in spec.fields, or remove it");
  CHECK(Problem("din", [](ModelSpec& m) { m.add_tower_hidden(2); }) ==
        "spec.model.towerHidden: is for spec.model.type shared_bottom and mmoe, and this job's is "
        "din; remove it");
  CHECK(Problem("mmoe", [](ModelSpec& m) { m.add_hidden(2); }) ==
        "spec.model.hidden: is not for spec.model.type mmoe, whose layers are expertHidden and "
        "towerHidden; remove it");
}

TEST_CASE("limits of the models' fields", "[job_spec]") {
  CHECK(Problem("dcn_v2", [](ModelSpec& m) { m.set_cross_layers(0); }) ==
        "spec.model.crossLayers: 0 is outside the limits; give a number from 1 to 32");
  CHECK(Problem("dcn_v2", [](ModelSpec& m) { m.set_cross_rank(20000); }) ==
        "spec.model.crossRank: 20000 is outside the limits; give a number from 0 to 16384");
  CHECK(Problem("mmoe", [](ModelSpec& m) { m.set_experts(0); }) ==
        "spec.model.experts: 0 is outside the limits; give a number from 1 to 256");
  CHECK(Problem("mmoe", [](ModelSpec& m) { m.add_expert_hidden(0); }) ==
        "spec.model.expertHidden[0]: 0 is outside the limits; give a number from 1 to 16384");
  CHECK(Problem("dlrm", [](ModelSpec& m) { m.add_bottom_hidden(0); }) ==
        "spec.model.bottomHidden[0]: 0 is outside the limits; give a number from 1 to 16384");
  CHECK(Problem("dlrm", [](ModelSpec& m) {
          for (int i = 0; i < 33; ++i) m.add_hidden(8);
        }) == "spec.model.hidden (layers): 33 is outside the limits; give a number from 0 to 32");
  CHECK(Problem("widedeep", [](ModelSpec&) {}) ==
        "spec.model.type: 'widedeep' is not one of: lr, fm, wide_deep, deepfm, dcn_v2, dlrm, "
        "shared_bottom, mmoe, din");
  CHECK(Problem("", [](ModelSpec&) {}) ==
        "spec.model.type: is missing; give one of: lr, fm, wide_deep, deepfm, dcn_v2, dlrm, "
        "shared_bottom, mmoe, din");
}

}  // namespace
}  // namespace strata
