// Which tensors go by one name from one model to another, and what checkpoints of earlier versions
// called them.
#include "proto/job/schema/schema_names.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "proto/job/schema/schema.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_start.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/job/schema/made_schema.h"

namespace strata {
namespace {

using Widths = std::vector<uint32_t>;
using Names = std::map<std::string, std::string>;

// Two labels; vectors of 4 of two categories, and a number: 9 floats an example.
JobSpec Job(const std::string& type, const Widths& hidden = {}) {
  JobSpec spec;
  ColumnsSpec& columns = *spec.mutable_data()->mutable_columns();
  columns.add_categorical("user");
  columns.add_categorical("item");
  columns.add_numeric("price");
  for (const char* label : {"click", "buy"}) spec.add_labels()->set_name(label);
  spec.mutable_model()->set_type(type);
  spec.mutable_model()->set_embedding_dim(4);
  for (const uint32_t width : hidden) spec.mutable_model()->add_hidden(width);
  return spec;
}

JobSpec Dlrm(const Widths& bottom) {
  JobSpec spec = Job("dlrm", {3});
  for (const uint32_t width : bottom) spec.mutable_model()->add_bottom_hidden(width);
  return spec;
}

JobSpec Towers(const std::string& type, const Widths& tower) {
  JobSpec spec = Job(type);
  if (type == "mmoe") spec.mutable_model()->add_expert_hidden(8);
  if (type != "mmoe") spec.mutable_model()->add_hidden(8);
  for (const uint32_t width : tower) spec.mutable_model()->add_tower_hidden(width);
  return spec;
}

// An item, and two sequences of items: one's name begins as the other's, and ends as a layer's.
JobSpec Din(const Widths& attention) {
  JobSpec spec = Job("din", {8, 2});
  spec.mutable_data()->clear_columns();
  for (const uint32_t width : attention) spec.mutable_model()->add_attention_hidden(width);
  TableConfig& table = *spec.add_tables();
  table.set_name("items");
  table.set_dim(4);
  for (const char* name : {"item", "seen", "seen_1"}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_kind(name == std::string("item") ? "categorical" : "sequence");
    field.set_table("items");
    if (field.kind() == "sequence") field.set_max_length(5);
  }
  return spec;
}

JobSpec Cross(uint32_t rank) {
  JobSpec spec = Job("dcn_v2", {8});
  spec.mutable_model()->set_cross_layers(2);
  spec.mutable_model()->set_cross_rank(rank);
  return spec;
}

// The checkpoint of the job as it is written today, but for names: today's -> in the checkpoint.
Manifest SavedAs(const JobSpec& spec, const Names& names) {
  Manifest manifest;
  *manifest.mutable_job()->mutable_spec() = spec;
  *manifest.mutable_schema() = SchemaOf(spec);
  size_t found = 0;
  for (SchemaTensor& tensor : *manifest.mutable_schema()->mutable_tensors()) {
    const auto name = names.find(tensor.name());
    if (name == names.end()) continue;
    tensor.set_name(name->second);
    ++found;
  }
  REQUIRE(found == names.size());
  return manifest;
}

Names Layers(std::initializer_list<std::pair<const char*, const char*>> layers) {
  Names names;
  for (const auto& [now, saved] : layers) {
    for (const char* part : {"_weight", "_bias"}) {
      names.emplace(std::string(now) + part, std::string(saved) + part);
    }
  }
  return names;
}

TEST_CASE("checkpoints of earlier versions have today's names", "[schema_names]") {
  const Names towers = Layers({{"tower_0_output", "tower_0_1"}, {"tower_1_output", "tower_1_1"}});
  const std::vector<std::pair<JobSpec, Names>> cases = {
      {Job("lr"), {}},
      {Job("fm"), {}},
      {Job("wide_deep", {8}), Layers({{"output", "layer_1"}})},
      {Job("deepfm", {8, 2}), Layers({{"output", "layer_2"}})},
      {Dlrm({8, 4}), Layers({{"output", "layer_1"}, {"bottom_output", "bottom_2"}})},
      {Towers("shared_bottom", {3}), towers},
      {Towers("mmoe", {3}), towers},
      {Towers("mmoe", {3, 1}),
       Layers({{"tower_0_output", "tower_0_2"}, {"tower_1_output", "tower_1_2"}})},
      {Din({3}), Layers({{"attention_seen_output", "attention_seen_1"},
                         {"attention_seen_1_output", "attention_seen_1_1"}})},
      {Cross(0), {}},
      {Cross(9), {{"cross_0_u", "cross_0_weight"}, {"cross_1_u", "cross_1_weight"}}}};
  for (const auto& [given, names] : cases) {
    const JobSpec spec = Resolved(given);
    INFO(spec.model().ShortDebugString());
    const Schema now = SchemaOf(spec);
    const Manifest earlier = SavedAs(spec, names);
    CHECK(SavedSchema(earlier).SerializeAsString() == now.SerializeAsString());
    CHECK(CheckResume(MapSchemas(earlier.schema(), now)).ok() == names.empty());
    CHECK(CheckResume(MapSchemas(SavedSchema(earlier), now)).ok());
    CHECK(CheckSaved(SavedSchema(earlier), now).ok());
    CHECK(SavedSchema(SavedAs(spec, {})).SerializeAsString() == now.SerializeAsString());
  }
}

// What one model is made of, by the names under which another one finds it: "layer_1_weight".
std::vector<std::string> Taken(const JobSpec& saved, const JobSpec& now) {
  const Schema from = SchemaOf(Resolved(saved)), to = SchemaOf(Resolved(now));
  std::vector<std::string> names;
  for (const auto& [at, place] : MapSchemas(from, to).tensors) {
    CHECK(from.tensors(at).name() == to.tensors(place).name());
    names.push_back(to.tensors(place).name());
  }
  return names;
}

TEST_CASE("no output is taken for a hidden layer, whatever the depths", "[schema_names]") {
  using List = std::vector<std::string>;
  for (const char* type : {"wide_deep", "deepfm"}) {
    INFO(type);
    const List all = {"bias", "numeric_weight", "layer_0_weight", "layer_0_bias", "output_bias"};
    // The second hidden layer has the shape of the output.
    const JobSpec deep = Job(type, {8, 2}), flat = Job(type, {8});
    for (const auto& [saved, now] : {std::pair(&deep, &flat), std::pair(&flat, &deep)}) {
      List taken = Taken(*saved, *now);
      std::erase(taken, "interaction_weight");
      CHECK(taken == all);
    }
  }
  CHECK(Taken(Job("dlrm", {8, 2}), Job("dlrm", {8})) ==
        Taken(Job("dlrm", {8}), Job("dlrm", {8, 2})));
  CHECK(Taken(Dlrm({3, 4}), Dlrm({3})) == List{"bottom_0_weight", "bottom_0_bias",
                                               "bottom_output_bias", "layer_0_weight",
                                               "layer_0_bias", "output_weight", "output_bias"});
  for (const char* type : {"shared_bottom", "mmoe"}) {
    INFO(type);
    const List taken = Taken(Towers(type, {8, 1}), Towers(type, {8}));
    List towers;
    for (const std::string& name : taken) {
      if (absl::StartsWith(name, "tower_")) towers.push_back(name);
    }
    CHECK(towers == List{"tower_0_0_weight", "tower_0_0_bias", "tower_0_output_bias",
                         "tower_1_0_weight", "tower_1_0_bias", "tower_1_output_bias"});
  }
  CHECK(Taken(Din({3, 1}), Din({3})) ==
        List{"attention_seen_0_weight", "attention_seen_0_bias", "attention_seen_output_bias",
             "attention_seen_1_0_weight", "attention_seen_1_0_bias", "attention_seen_1_output_bias",
             "layer_0_weight", "layer_0_bias", "layer_1_weight", "layer_1_bias", "output_weight",
             "output_bias"});
}

TEST_CASE("a matrix of low rank is taken for no other, nor are outputs over other inputs",
          "[schema_names]") {
  using List = std::vector<std::string>;
  const List taken = {"cross_0_bias", "cross_1_bias",  "layer_0_weight",
                      "layer_0_bias", "output_weight", "output_bias"};
  // Its rank is the width of an example, so that all are (9, 9).
  CHECK(Taken(Cross(9), Cross(0)) == taken);
  CHECK(Taken(Cross(0), Cross(9)) == taken);
  // The output of dcn_v2 reads 9 floats of an example and 8 of the last layer.
  const List deep = {"layer_0_weight", "layer_0_bias", "output_bias"};
  CHECK(SchemaOf(Resolved(Cross(0))).tensors(6).shape(0) == 17);
  CHECK(Taken(Cross(0), Job("wide_deep", {8, 17})) == deep);
  CHECK(Taken(Job("wide_deep", {8, 17}), Cross(0)) == deep);
  const Schema wide = SchemaOf(Resolved(Job("wide_deep", {8, 17}))),
               cross = SchemaOf(Resolved(Cross(0)));
  CHECK(absl::StrContains(MappingText(MapSchemas(wide, cross)),
                          "tensor output_weight (17, 2) goes by the fields in their order"));
}

}  // namespace
}  // namespace strata
