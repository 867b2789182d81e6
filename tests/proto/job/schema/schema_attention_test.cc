// Attention is of a sequence and of the item that weighs it: with another item it is another one.
#include "proto/job/schema/schema_attention.h"

#include <catch2/catch.hpp>
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
#include "tests/proto/job/schema/made_schema.h"

namespace strata {
namespace {

using Renames = std::map<std::string, std::string>;

// Din over clicks of `item`, and over searches of a word.
Schema Of(const std::string& item) {
  JobSpec spec;
  spec.mutable_data()->mutable_columns()->set_label("y");
  spec.mutable_model()->set_type("din");
  spec.mutable_model()->add_hidden(8);
  spec.mutable_model()->add_attention_hidden(3);
  for (const char* name : {"items", "words"}) {
    TableConfig& table = *spec.add_tables();
    table.set_name(name);
    table.set_dim(4);
  }
  for (const std::string& name :
       {item, std::string("clicks"), std::string("word"), std::string("searches")}) {
    const bool sequence = name == "clicks" || name == "searches";
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_kind(sequence ? "sequence" : "categorical");
    field.set_table(name == "word" || name == "searches" ? "words" : "items");
    if (sequence) field.set_max_length(5);
  }
  return SchemaOf(Resolved(spec));
}

InitFromSpec Init(bool allow, const Renames& rename = {}) {
  InitFromSpec init;
  init.set_new_tensors(allow ? "allow" : "refuse");
  init.set_dropped_tensors(allow ? "allow" : "refuse");
  for (const auto& [from, to] : rename) (*init.mutable_rename())[from] = to;
  return init;
}

std::string Problem(const Schema& saved, const Schema& now, const InitFromSpec& init) {
  const absl::Status s = CheckInitFrom(MapSchemas(saved, now, RenamesOf(init)), saved, now, init);
  return s.ok() ? "OK" : std::string(s.message());
}

// How many tensors of attention to `sequence` are loaded: four, or none.
size_t LoadedOf(const std::string& sequence, const Schema& saved, const Schema& now,
                const Renames& rename = {}) {
  std::set<std::string> names;
  for (const auto& [from, to] : MapSchemas(saved, now, rename).tensors) {
    const std::string& name = now.tensors(to).name();
    if (absl::StartsWith(name, absl::StrCat("attention_", sequence, "_"))) names.insert(name);
  }
  return names.size();
}

TEST_CASE("attention by another item begins anew, and that is asked about", "[schema_attention]") {
  const Schema saved = Of("item"), now = Of("ad");
  REQUIRE(LoadedOf("clicks", saved, saved) == 4);
  CHECK(LoadedOf("clicks", saved, now) == 0);
  CHECK(LoadedOf("searches", saved, now) == 4);
  const std::string refused = Problem(saved, now, Init(false));
  CHECK(absl::StrContains(
      refused,
      "tensor attention_clicks_0_weight (16, 3) weighed values by field item, and weighs them by "
      "ad; let it begin anew with spec.model.initFrom.newTensors: allow and droppedTensors: "
      "allow\n"));
  for (const char* part : {"0_bias", "output_weight", "output_bias"}) {
    CHECK(absl::StrContains(refused, absl::StrCat("tensor attention_clicks_", part)));
  }
  CHECK_FALSE(absl::StrContains(refused, "attention_searches_"));
  CHECK(Problem(saved, now, Init(true)) == "OK");
  CHECK(absl::StrContains(MappingText(MapSchemas(saved, now)),
                          "tensor attention_clicks_output_bias (1) weighed values by field item"));
}

TEST_CASE("attention goes with the item that is called otherwise", "[schema_attention]") {
  const Schema saved = Of("item"), now = Of("ad");
  const Renames rename = {{"item", "ad"}};
  CHECK(LoadedOf("clicks", saved, now, rename) == 4);
  CHECK(Problem(saved, now, Init(false, rename)) == "OK");
  // One that is left behind is another one, also by its name.
  CHECK(LoadedOf("clicks", saved, saved, {{"item", ""}}) == 0);
  CHECK(LoadedOf("searches", saved, saved, {{"item", ""}}) == 4);
  // What a rename says of a tensor says nothing of the items.
  Renames tensors;
  for (const char* part : {"_0_weight", "_0_bias", "_output_weight", "_output_bias"}) {
    tensors[absl::StrCat("attention_clicks", part)] = absl::StrCat("attention_searches", part);
    tensors[absl::StrCat("attention_searches", part)] = absl::StrCat("attention_clicks", part);
  }
  CHECK(LoadedOf("clicks", saved, saved, tensors) == 0);
  tensors["item"] = "word";
  tensors["word"] = "item";
  CHECK(LoadedOf("clicks", saved, saved, tensors) == 4);
}

TEST_CASE("a tensor of attention names its sequence", "[schema_attention]") {
  CHECK(SequenceOf("attention_clicks_0_weight") == "clicks");
  CHECK(SequenceOf("attention_a_0_1_bias") == "a_0");
  CHECK_FALSE(SequenceOf("attention_clicks").has_value());
  CHECK_FALSE(SequenceOf("layer_0_weight").has_value());
  const Schema schema = Of("item");
  const Items items(schema);
  CHECK(items.Of("attention_searches_output_bias") == "word");
  CHECK(items.Of("layer_0_weight").empty());
  CHECK(items.Of("attention_others_0_weight").empty());
}

// Each sequence looked at all fields for its item, and each layer at all tensors for its biases.
TEST_CASE("as many sequences as din may have are described in no time", "[schema]") {
  constexpr int kSequences = 16384;
  JobSpec spec;
  spec.mutable_data()->mutable_columns()->set_label("y");
  spec.mutable_model()->set_type("din");
  spec.mutable_model()->add_hidden(8);
  spec.mutable_model()->add_attention_hidden(3);
  spec.add_tables()->set_name("items");
  spec.mutable_tables(0)->set_dim(1);
  for (int i = 0; i <= kSequences; ++i) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(i == 0 ? "item" : absl::StrCat("s", i));
    field.set_kind(i == 0 ? "categorical" : "sequence");
    field.set_table("items");
    if (i > 0) field.set_max_length(1);
  }
  const Schema schema = SchemaOf(Resolved(spec));
  REQUIRE(schema.tensors_size() == 4 * kSequences + 4);
  const SchemaTensor& last = schema.tensors(4 * kSequences - 4);
  CHECK(last.name() == absl::StrCat("attention_s", kSequences, "_0_weight"));
  CHECK(last.shape_size() == 2);
  CHECK(last.shape(0) == 4);
  CHECK(last.shape(1) == 3);
  CHECK(CheckResume(MapSchemas(schema, schema)).message() == "");
}

}  // namespace
}  // namespace strata
