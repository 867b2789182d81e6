#include "proto/job/schema/schema_depths.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/job/schema/made_schema.h"

namespace strata {
namespace {

using Renames = std::map<std::string, std::string>;

// Widths of a model's layers, where it has such.
struct Layers {
  std::vector<uint32_t> hidden = {}, tower = {}, bottom = {}, expert = {}, attention = {};
};

JobSpec JobOf(const std::string& type, const Layers& layers) {
  JobSpec spec;
  spec.mutable_data()->mutable_columns()->set_label("y");
  ModelSpec& model = *spec.mutable_model();
  model.set_type(type);
  model.set_embedding_dim(4);
  model.mutable_hidden()->Assign(layers.hidden.begin(), layers.hidden.end());
  model.mutable_tower_hidden()->Assign(layers.tower.begin(), layers.tower.end());
  if (type == "dlrm") {
    model.mutable_bottom_hidden()->Assign(layers.bottom.begin(), layers.bottom.end());
  }
  model.mutable_expert_hidden()->Assign(layers.expert.begin(), layers.expert.end());
  if (type == "din") {
    model.mutable_attention_hidden()->Assign(layers.attention.begin(), layers.attention.end());
  }
  for (const char* name : {"item", "price", "clicks"}) {
    const bool sequence = name == std::string("clicks");
    if (sequence && type != "din") continue;
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_kind(sequence                       ? "sequence"
                   : name == std::string("price") ? "numeric"
                                                  : "categorical");
    if (sequence) field.set_max_length(5);
    if (field.kind() != "numeric") field.set_table("items");
  }
  TableConfig& table = *spec.add_tables();
  table.set_name("items");
  table.set_dim(4);
  return Resolved(std::move(spec));
}

std::string Warning(const std::string& type, const Layers& saved, const Layers& now,
                    const Renames& rename = {}) {
  const Schema from = SchemaOf(JobOf(type, saved)), to = SchemaOf(JobOf(type, now));
  return DepthWarning(MapSchemas(from, to, rename), from, to);
}

TEST_CASE("an output layer above another number of hidden layers is warned of", "[schema]") {
  for (const char* type : {"wide_deep", "deepfm", "dlrm", "din"}) {
    INFO(type);
    const Layers two = {.hidden = {6, 8}, .bottom = {5}, .attention = {3}};
    const Layers one = {.hidden = {8}, .bottom = {5}, .attention = {3}};
    CHECK(Warning(type, two, one) ==
          "loaded above another number of hidden layers: tensor output_weight (above 1, was above "
          "2), tensor output_bias (above 1, was above 2); spec.model.initFrom.rename: "
          "{output_weight: \"\", output_bias: \"\"}, with newTensors and droppedTensors allowed, "
          "begins them anew");
    CHECK(absl::StartsWith(Warning(type, one, two),
                           "loaded above another number of hidden layers: tensor output_weight "
                           "(above 2, was above 1), "));
    CHECK(Warning(type, one, one).empty());
    // What the remedy does.
    CHECK(Warning(type, two, one, {{"output_weight", ""}, {"output_bias", ""}}).empty());
    // Of another width it is not loaded; its bias is.
    CHECK(absl::StartsWith(Warning(type, two, {{6}, {}, {5}, {}, {3}}),
                           "loaded above another number of hidden layers: tensor output_bias "));
  }
}

TEST_CASE("the warning is of every kind of output layer", "[schema]") {
  const auto names = [](const std::string& type, const Layers& saved, const Layers& now) {
    std::string text = Warning(type, saved, now);
    text = text.substr(text.find("rename: {") + 9);
    return text.substr(0, text.find('}'));
  };
  CHECK(names("dlrm", {.hidden = {8}, .bottom = {5}}, {.hidden = {8}, .bottom = {7, 5}}) ==
        "bottom_output_weight: \"\", bottom_output_bias: \"\"");
  CHECK(names("din", {.hidden = {8}, .attention = {3}}, {.hidden = {8}, .attention = {4, 3}}) ==
        "attention_clicks_output_weight: \"\", attention_clicks_output_bias: \"\"");
  for (const char* type : {"shared_bottom", "mmoe"}) {
    INFO(type);
    const auto layers = [&](const std::vector<uint32_t>& below,
                            const std::vector<uint32_t>& tower) {
      Layers out = {.tower = tower};
      (type == std::string("mmoe") ? out.expert : out.hidden) = below;
      return out;
    };
    CHECK(names(type, layers({8}, {4}), layers({8}, {6, 4})) ==
          "tower_0_output_weight: \"\", tower_0_output_bias: \"\"");
    // A tower's first layer is above those that tasks share.
    CHECK(names(type, layers({8}, {4}), layers({6, 8}, {4})) ==
          "tower_0_0_weight: \"\", tower_0_0_bias: \"\"");
    CHECK(Warning(type, layers({8}, {4}), layers({8}, {4})).empty());
  }
}

TEST_CASE("the warning names a tensor as it was called, and does not grow without end",
          "[schema]") {
  Schema saved, now;
  SchemaMapping mapping;
  for (int i = 0; i < 30; ++i) {
    const std::string name = absl::StrCat("attention_", i, "\n");
    saved.add_tensors()->set_name(absl::StrCat(name, "_output_weight"));
    now.add_tensors()->set_name(absl::StrCat(name, "new_output_weight"));
    mapping.tensors.emplace_back(i, i);
  }
  for (int i = 0; i < 30; ++i) {
    now.add_tensors()->set_name(absl::StrCat("attention_", i, "\nnew_0_weight"));
  }
  const std::string text = DepthWarning(mapping, saved, now);
  CHECK(absl::StrContains(text, "tensor attention_3\\nnew_output_weight (above 1, was above 0)"));
  CHECK(absl::StrContains(text, "attention_3\\n_output_weight: \"\""));
  CHECK(absl::StrContains(text, ", and 10 more}"));
  CHECK_FALSE(absl::StrContains(text, "attention_20"));
  CHECK_FALSE(absl::StrContains(text, "\n"));
  CHECK(text.size() < 3000);
}

}  // namespace
}  // namespace strata
