// What initFrom takes of a checkpoint, under the names that its renames give.
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_start.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/job/schema/compared_schemas.h"
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
        "output_weight, tensor output_bias, field user, field item, field price, label label; "
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

TEST_CASE("a manifest's schema is that of its own job", "[schema]") {
  const Schema made = SchemaOf(CsvJob("deepfm"));
  const auto problem = [&](const auto& change) {
    Schema saved = made;
    change(saved);
    const absl::Status s = CheckSaved(saved, made);
    CHECK(s.ok() != absl::IsDataLoss(s));
    return Lines(s);
  };
  const std::string other = "the manifest's schema is not that of its own job: ";
  CHECK(problem([](Schema& s) { s.set_data_fingerprint("x"); }) == "OK");
  CHECK(problem([](Schema& s) { s.Clear(); }) ==
        "the manifest does not say what its model is made of (schema)");
  CHECK(absl::StartsWith(problem([](Schema& s) { s.clear_tensors(); }), other + "tensor bias"));
  CHECK(problem([](Schema& s) { s.mutable_tables(0)->set_table(7); }) ==
        other + "table features has number 7, not 0");
  CHECK(absl::StartsWith(problem([](Schema& s) { s.mutable_tensors(0)->set_rows(2); }),
                         other + "tensor bias has 2 rows from "));
  CHECK(absl::StartsWith(problem([](Schema& s) { s.mutable_tensors(0)->set_first_row(7); }),
                         other + "tensor bias has 1 rows from 7, not 1 from "));
}

TEST_CASE("what is renamed is loaded under its new name", "[schema]") {
  const JobSpec spec = CsvJob("deepfm");
  const Schema saved = SchemaOf(spec);
  Schema now = saved;
  now.mutable_tables(0)->set_name("all");
  for (SchemaField& f : *now.mutable_fields()) {
    if (!f.table().empty()) f.set_table("all");
  }
  now.mutable_tensors(0)->set_name("offset");
  InitFromSpec init;
  CHECK(absl::StrContains(InitProblem(saved, now, init), "table all"));
  (*init.mutable_rename())["features"] = "all";
  (*init.mutable_rename())["bias"] = "offset";
  CHECK(InitProblem(saved, now, init) == "OK");
  CHECK(absl::StrContains(MappingText(MapSchemas(saved, now, RenamesOf(init))),
                          "renamed: table features as all, tensor bias as offset"));
  // Keys of a csv field hash its column's name.
  const Schema shop = Changed(
      spec, [](JobSpec& s) { s.mutable_data()->mutable_columns()->set_categorical(1, "shop"); });
  InitFromSpec field;
  (*field.mutable_rename())["item"] = "shop";
  CHECK(InitProblem(saved, shop, field) ==
        "field shop: column was item, is shop; set what the checkpoint has, "
        "or leave its table behind with spec.model.initFrom.rename: {features: \"\"}");
  (*init.mutable_rename())["none"] = "x";
  CHECK(absl::StartsWith(InitProblem(saved, now, init),
                         "spec.model.initFrom.rename: the checkpoint has no table, tensor, field, "
                         "label or column 'none'"));
}

// The checkpoint's own one was loaded, or left behind without a word.
TEST_CASE("nothing takes the name of another part of the checkpoint", "[schema]") {
  const Schema saved = SchemaOf(CsvJob("deepfm"));
  const auto problem = [&](const std::map<std::string, std::string>& rename, const Schema& now) {
    InitFromSpec init = Allow(true, false);
    for (const auto& [from, to] : rename) (*init.mutable_rename())[from] = to;
    const absl::Status s = CheckInitFrom(MapSchemas(saved, now, rename), saved, now, init);
    CHECK(s.ok() != absl::IsInvalidArgument(s));
    return Lines(s);
  };
  CHECK(problem({{"output_bias", "layer_0_bias"}}, saved) ==
        "spec.model.initFrom.rename: the checkpoint's tensors layer_0_bias and output_bias would "
        "both be called layer_0_bias; leave one behind, as with layer_0_bias: \"\"");
  CHECK(absl::StrContains(problem({{"layer_0_bias", "output_bias"}}, saved),
                          "would both be called output_bias"));
  CHECK(absl::StrContains(
      problem({{"layer_0_bias", "output_bias"}, {"layer_0_weight", "output_bias"}}, saved),
      "would both be called output_bias"));
  // One of the two stays behind.
  InitFromSpec init = Allow(true, true);
  (*init.mutable_rename())["layer_0_bias"] = "";
  (*init.mutable_rename())["output_bias"] = "layer_0_bias";
  CHECK(InitProblem(saved, saved, init) == "OK");
  CHECK(absl::StrContains(MappingText(MapSchemas(saved, saved, RenamesOf(init))),
                          "; new: tensor output_bias (1); dropped: tensor layer_0_bias (8); "));
  Schema now = saved;  // what exchanges names is no such thing
  now.mutable_tensors(3)->set_name("output_bias");
  now.mutable_tensors(5)->set_name("layer_0_bias");
  CHECK(problem({{"layer_0_bias", "output_bias"}, {"output_bias", "layer_0_bias"}}, now) == "OK");
  CHECK(absl::StrContains(
      MappingText(MapSchemas(saved, saved, {{"layer_0_bias", "output_bias"}})),
      "; dropped: tensor output_bias (1); other shape: tensor output_bias was (8), is (1)"));
}

// Din over an item and two sequences of items, which are called after `first` and `second`.
JobSpec OfSequences(const char* first, const char* second, uint32_t attention = 3) {
  JobSpec spec = CsvJob("din");
  spec.mutable_data()->mutable_columns()->clear_categorical();
  spec.mutable_data()->mutable_columns()->clear_numeric();
  spec.mutable_model()->add_attention_hidden(attention);
  TableConfig& table = *spec.add_tables();
  table.set_name("items");
  table.set_dim(4);
  table.mutable_optimizer()->set_type("sgd");
  for (const char* name : {"item", first, second}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_kind(name == std::string("item") ? "categorical" : "sequence");
    field.set_table("items");
    if (field.kind() == "sequence") field.set_max_length(5);
  }
  return spec;
}

// Where each tensor of `prefix` is loaded from: "attention_a_0_weight as attention_b_0_weight".
std::set<std::string> LoadedAs(const Schema& saved, const Schema& now, const char* prefix,
                               const std::map<std::string, std::string>& rename) {
  std::set<std::string> out;
  for (const auto& [from, to] : MapSchemas(saved, now, rename).tensors) {
    if (!absl::StartsWith(saved.tensors(from).name(), prefix)) continue;
    out.insert(absl::StrCat(saved.tensors(from).name(), " as ", now.tensors(to).name()));
  }
  return out;
}

TEST_CASE("attention goes with the sequence that is renamed", "[schema]") {
  using Pairs = std::set<std::string>;
  const auto all = [](const std::string& from, const std::string& to) {
    Pairs pairs;
    for (const char* part : {"_0_weight", "_0_bias", "_output_weight", "_output_bias"}) {
      pairs.insert(absl::StrCat("attention_", from, part, " as attention_", to, part));
    }
    return pairs;
  };
  // One name begins as the other, and both end as a layer's number does.
  const Schema saved = SchemaOf(OfSequences("a", "a_0"));
  CHECK(LoadedAs(saved, saved, "attention_a_0_0", {}).size() == 2);
  const Schema swapped = SchemaOf(OfSequences("a_0", "a"));
  const std::map<std::string, std::string> swap = {{"a", "a_0"}, {"a_0", "a"}};
  Pairs both = all("a", "a_0");
  both.merge(all("a_0", "a"));
  CHECK(LoadedAs(saved, swapped, "attention_", swap) == both);
  InitFromSpec init;
  for (const auto& [from, to] : swap) (*init.mutable_rename())[from] = to;
  CHECK(InitProblem(saved, swapped, init) == "OK");
  // One alone; the other is where it was.
  const Schema renamed = SchemaOf(OfSequences("b", "a_0"));
  both = all("a", "b");
  both.merge(all("a_0", "a_0"));
  CHECK(LoadedAs(saved, renamed, "attention_", {{"a", "b"}}) == both);
  // Left behind, with a new sequence of its name.
  CHECK(LoadedAs(saved, saved, "attention_", {{"a", ""}}) == all("a_0", "a_0"));
  // What a rename says of a tensor counts.
  const auto own =
      LoadedAs(saved, renamed, "attention_", {{"a", "b"}, {"attention_a_output_bias", ""}});
  CHECK(own.size() == 7);
  CHECK_FALSE(own.contains("attention_a_output_bias as attention_b_output_bias"));
  // Layers of other widths are told as such.
  InitFromSpec one;
  (*one.mutable_rename())["a"] = "b";
  CHECK(absl::StartsWith(InitProblem(saved, SchemaOf(OfSequences("b", "a_0", 4)), one),
                         "tensor attention_b_0_weight was (16, 3), is (16, 4); let it"));
}

// The word of a user that names nothing did what no user wants: the layer began anew.
TEST_CASE("what is renamed to a name that the job does not have is refused", "[schema]") {
  const Schema saved = SchemaOf(CsvJob("deepfm"));
  InitFromSpec init = Allow(true, true);
  (*init.mutable_rename())["layer_0_weight"] = "layer_O_weight";
  CHECK(InitProblem(saved, saved, init) ==
        "spec.model.initFrom.rename: 'layer_0_weight' becomes 'layer_O_weight', and the job has no "
        "table, tensor, field, label or column of that name; `strata explain --schema JOB` lists "
        "them, and \"\" leaves 'layer_0_weight' behind");
}

TEST_CASE("a rename is of the kinds of parts that have the new name", "[schema]") {
  const JobSpec spec = CsvJob("deepfm");
  const auto numeric = [&](const char* name) {
    return Changed(spec, [&](JobSpec& s) {
      s.mutable_data()->mutable_columns()->clear_numeric();
      s.mutable_data()->mutable_columns()->add_numeric(name);
    });
  };
  InitFromSpec init;
  (*init.mutable_rename())["bias"] = "bias_score";
  const SchemaMapping mapping = MapSchemas(numeric("bias"), numeric("bias_score"), RenamesOf(init));
  CHECK(InitProblem(numeric("bias"), numeric("bias_score"), init) == "OK");
  const std::string text = MappingText(mapping);
  CHECK(absl::StrContains(text, "loaded: table features, tensor bias, "));
  CHECK(absl::StrContains(text, "renamed: field bias as bias_score"));
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
