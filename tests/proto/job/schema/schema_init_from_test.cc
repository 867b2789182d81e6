// What `initFrom` takes of a checkpoint that differs, where the job allows it.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_start.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/job/schema/made_schema.h"

namespace strata {
namespace {

TEST_CASE("initFrom takes what differs where it is allowed", "[schema]") {
  const JobSpec spec = CsvJob("deepfm");
  const Schema saved = SchemaOf(spec);
  const Schema wider = Changed(spec, [](JobSpec& s) { s.mutable_model()->set_hidden(0, 6); });
  CHECK(absl::StartsWith(
      InitProblem(saved, wider),
      "tensor layer_0_weight was (9, 8), is (9, 6); let it begin anew with "
      "spec.model.initFrom.newTensors: allow and droppedTensors: allow\ntensor layer_0_bias"));
  CHECK(InitProblem(saved, wider, Allow(true, false)) != "OK");
  CHECK(InitProblem(saved, wider, Allow(false, true)) != "OK");
  CHECK(InitProblem(saved, wider, Allow(true, true)) == "OK");

  const Schema fm = Changed(spec, [](JobSpec& s) { s.mutable_model()->set_type("fm"); });
  CHECK(absl::StartsWith(InitProblem(fm, saved), "spec.model.type was fm, is deepfm; allow it"));
  CHECK(absl::StrContains(InitProblem(fm, saved),
                          "tensor layer_0_weight (9, 8): the checkpoint has none; allow it with "
                          "spec.model.initFrom.newTensors: allow"));
  CHECK(InitProblem(fm, saved, Allow(true, true)) == "OK");
  CHECK(absl::StrContains(InitProblem(fm, saved, Allow(true, false)),
                          "tensor numeric_embedding (1, 4): the job has none"));

  // By chance of one shape, but inputs of dlrm are products.
  Schema dlrm = saved;
  dlrm.set_model("dlrm");
  CHECK(absl::StrContains(InitProblem(dlrm, saved, Allow(true, false)),
                          "tensor layer_0_weight (9, 8) goes by the fields in their order"));

  const Schema longer = Changed(
      spec, [](JobSpec& s) { s.mutable_data()->mutable_columns()->add_categorical("shop"); });
  CHECK(absl::StrContains(InitProblem(saved, longer, Allow(true, false)),
                          "tensor layer_0_weight was (9, 8), is (13, 8)"));
  const SchemaMapping mapping = MapSchemas(saved, longer);
  CHECK(CheckInitFrom(mapping, saved, longer, Allow(true, true)).ok());
  CHECK(MappingText(mapping) ==
        "loaded: table features, tensor bias, tensor numeric_weight, tensor layer_0_bias, tensor "
        "layer_1_weight, tensor layer_1_bias, field user, field item, field price, label label; "
        "new: field shop; other shape: tensor layer_0_weight was (9, 8), is (13, 8)");

  const Schema seed = Changed(spec, [](JobSpec& s) { s.mutable_model()->set_hash_seed(7); });
  CHECK(absl::StrContains(InitProblem(saved, seed, Allow(true, true)),
                          "field user: hashSeed was 0, is 7; set what the checkpoint has"));
  const Schema adam =
      Changed(spec, [](JobSpec& s) { s.mutable_optimizer()->mutable_sparse()->set_type("adam"); });
  InitFromSpec reset;
  CHECK(absl::StrContains(InitProblem(saved, adam), "spec.model.initFrom.optimizerState: reset"));
  reset.set_optimizer_state("reset");
  CHECK(InitProblem(saved, adam, reset) == "OK");
}

// Rows go with their keys, and keys with the column: a name alone leaves none behind.
TEST_CASE("a field has the rows of its keys, whatever its name was", "[schema]") {
  const JobSpec spec = CsvJob("deepfm");
  const Schema saved = SchemaOf(spec);
  InitFromSpec init = Allow(true, true);
  (*init.mutable_rename())["item"] = "";
  CHECK(InitProblem(saved, saved, init) == "OK");
  CHECK(absl::StrContains(MappingText(MapSchemas(saved, saved, RenamesOf(init))), "field item"));
  CHECK_FALSE(
      absl::StrContains(MappingText(MapSchemas(saved, saved, RenamesOf(init))), "new: field item"));
  Schema now = saved;
  for (SchemaField& f : *now.mutable_fields()) {
    if (f.name() == "item") f.set_pooling("mean");
  }
  CHECK(InitProblem(saved, now, init) ==
        "field item: it would have the rows of the checkpoint's field item, and pooling was none, "
        "is mean; give it a hashSeed of its own or another table, or leave that table behind with "
        "spec.model.initFrom.rename: {features: \"\"}");
  // In another table, or with another seed, it has rows of its own.
  for (SchemaField& f : *now.mutable_fields()) {
    if (f.name() == "item") f.set_hash_seed(9);
  }
  CHECK(InitProblem(saved, now, init) == "OK");
  CHECK(absl::StrContains(MappingText(MapSchemas(saved, now, RenamesOf(init))), "new: field item"));
}

TEST_CASE("what keys hash is compared", "[schema]") {
  const Schema saved = SchemaOf(CsvJob("deepfm"));
  Schema now = saved;
  for (SchemaField& f : *now.mutable_fields()) {
    CHECK(f.keys() == (f.table().empty() ? "" : "column"));
    if (f.name() == "item") f.set_keys("place");
  }
  CHECK(InitProblem(saved, now, Allow(true, true)) ==
        "field item: keys by was column, is place; set what the checkpoint has, "
        "or leave its table behind with spec.model.initFrom.rename: {features: \"\"}");
}

TEST_CASE("weights that went by fields are not those of other fields, whatever they are called",
          "[schema]") {
  const Schema saved = SchemaOf(CsvJob("deepfm"));
  Schema now = saved;
  SchemaTensor* moved = nullptr;
  for (SchemaTensor& t : *now.mutable_tensors()) {
    if (t.name() == "layer_0_weight") moved = &t;
  }
  REQUIRE(moved != nullptr);
  moved->set_name("other");
  moved->set_by_fields(false);
  now.mutable_fields()->SwapElements(0, 1);
  InitFromSpec init;
  (*init.mutable_rename())["layer_0_weight"] = "other";
  CHECK(absl::StrContains(InitProblem(saved, now, init), "goes by the fields in their order"));
}

TEST_CASE("a plan moves rows from where they lay to where they lie", "[schema]") {
  const JobSpec spec = CsvJob("deepfm");
  const Schema fm = Changed(spec, [](JobSpec& s) { s.mutable_model()->set_type("fm"); });
  const Schema now = SchemaOf(spec);
  InitFromSpec init = Allow(true, true);
  RestorePlan plan = MakeRestorePlan(MapSchemas(fm, now), fm, now, init);
  REQUIRE(plan.tables_size() == 1);
  CHECK(plan.tables(0).from() == 0);
  CHECK(plan.tables(0).to() == 0);
  CHECK_FALSE(plan.tables(0).reset_state());
  REQUIRE(plan.tensors_size() == 2);  // bias, numeric_weight
  CHECK(plan.tensors(1).from_row() == fm.tensors(1).first_row());
  CHECK(plan.tensors(1).to_row() == now.tensors(1).first_row());
  CHECK(plan.tensors(1).rows() == 1);
  init.set_optimizer_state("reset");
  plan = MakeRestorePlan(MapSchemas(fm, now), fm, now, init);
  CHECK(plan.tables(0).reset_state());
  CHECK(plan.tensors(0).reset_state());
}

}  // namespace
}  // namespace strata
