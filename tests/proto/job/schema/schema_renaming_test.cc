// What `initFrom` takes of a checkpoint by the names of tables, fields, columns and labels.
#include "proto/job/schema/schema_renaming.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_start.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/job/schema/made_schema.h"

namespace strata {
namespace {

// The rows were loaded, and no field had a key of theirs.
TEST_CASE("a table whose keys hash its name keeps its name", "[schema]") {
  const Schema saved = SchemaOf(OfTables("item", "user"));
  const Schema goods = SchemaOf(OfTables("goods", "user"));
  CHECK(
      InitProblem(saved, goods, Init({{"item", "goods"}})) ==
      "table item as goods: the keys of fields item, seen hash the name item, so that goods would "
      "not find their rows; call the job's table item too, or leave its rows behind with "
      "spec.model.initFrom.rename: {item: \"\"}");
  CHECK(MapSchemas(saved, goods, {{"item", "goods"}}).tables.size() == 1);
  CHECK(InitProblem(saved, goods, Init({{"item", ""}}, true)) == "OK");
  // Those that exchange their names.
  const Schema swapped = SchemaOf(OfTables("user", "item"));
  const std::string problem =
      InitProblem(saved, swapped, Init({{"item", "user"}, {"user", "item"}}, true));
  CHECK(absl::StrContains(problem, "table item as user: the keys of fields item, seen hash"));
  CHECK(absl::StrContains(problem, "table user as item: the keys of field user hash"));
}

TEST_CASE("a table whose keys are values takes another name", "[schema]") {
  Schema saved = SchemaOf(OfTables("item", "user")), now = SchemaOf(OfTables("goods", "user"));
  for (Schema* schema : {&saved, &now}) {
    for (SchemaField& f : *schema->mutable_fields()) {
      if (!f.table().empty()) f.set_keys("value");
    }
  }
  CHECK(InitProblem(saved, now, Init({{"item", "goods"}})) == "OK");
  CHECK(absl::StrContains(Text(saved, now, {{"item", "goods"}}), "renamed: table item as goods"));
}

// The job trained on another column, and was told that the field is loaded.
TEST_CASE("a field that reads another column is refused, unless a rename says so", "[schema]") {
  const Schema saved = SchemaOf(OfTables("item", "user"));
  const auto reading = [](int field, const char* column) {
    JobSpec spec = OfTables("item", "user");
    spec.mutable_fields(field)->set_column(column);
    return SchemaOf(spec);
  };
  const Schema number = reading(3, "cost"), row = reading(0, "goods_id");
  CHECK(InitProblem(saved, number) ==
        "field price: column was price, is cost; if that column is only called otherwise now, say "
        "so with spec.model.initFrom.rename: {price: cost}; else give the field another name, or "
        "that column");
  CHECK(absl::StartsWith(InitProblem(saved, row, Init({}, true)),
                         "field item: column was item, is goods_id; if that column"));
  CHECK(ResumeProblem(saved, row) == "field item: column was item, is goods_id");
  CHECK(InitProblem(saved, number, Init({{"price", "cost"}})) == "OK");
  CHECK(absl::StrContains(Text(saved, number, {{"price", "cost"}}),
                          "renamed: field price (column price as cost)"));
  CHECK(InitProblem(saved, row, Init({{"item", "goods_id"}})) == "OK");
  // What is left behind leaves no column behind.
  CHECK(absl::StrContains(InitProblem(saved, number, Init({{"price", ""}})),
                          "field price: the checkpoint has none"));
  // Whoever has the same table reads its rows, but is another field where it reads another column.
  JobSpec other = OfTables("item", "user");
  other.mutable_fields(1)->set_name("bought");
  other.mutable_fields(1)->set_column("bought");
  const std::string text = Text(saved, SchemaOf(other));
  CHECK(absl::StrContains(text, "new: field bought"));
  CHECK(absl::StrContains(text, "dropped: field seen"));
  other.mutable_fields(1)->set_column("seen");
  CHECK(absl::StrContains(Text(saved, SchemaOf(other)), "renamed: field seen as bought"));
}

TEST_CASE("keys that hash their column's name know it under no other", "[schema]") {
  const auto of = [](const char* column) {
    JobSpec spec = OfLabels("deepfm", {"click"});
    spec.mutable_data()->mutable_columns()->set_categorical(1, column);
    return SchemaOf(spec);
  };
  CHECK(absl::StrContains(InitProblem(of("item"), of("shop"), Init({{"item", "shop"}})),
                          "field shop: column was item, is shop; set what the checkpoint has, or "
                          "leave its table behind"));
}

TEST_CASE("a label's column may be called otherwise", "[schema]") {
  JobSpec spec = OfTables("item", "user");
  const Schema saved = SchemaOf(spec);
  spec.mutable_labels(0)->set_column("clicked");
  const Schema now = SchemaOf(spec);
  CHECK(InitProblem(saved, now) ==
        "label click: column was click, is clicked; if that column is only called otherwise now, "
        "say so with spec.model.initFrom.rename: {click: clicked}; else allow it with "
        "spec.model.initFrom.newTensors: allow");
  CHECK(InitProblem(saved, now, Init({{"click", "clicked"}})) == "OK");
}

TEST_CASE("weights of lines that come or go are said", "[schema]") {
  const Schema schema = SchemaOf(OfTables("item", "user"));
  const auto problem = [&](const char* saved, const char* now, bool allow,
                           const Renames& rename = {}) {
    SchemaMapping mapping = MapSchemas(schema, schema, rename);
    MapSampleWeight(saved, now, rename, mapping);
    if (allow && std::string(saved) != now) {
      CHECK(absl::StrContains(MappingText(mapping), "changed: spec.sampleWeight was "));
    }
    const absl::Status s = CheckInitFrom(mapping, schema, schema, Init(rename, allow));
    return s.ok() ? "OK" : std::string(s.message());
  };
  CHECK(problem("w", "w", false) == "OK");
  CHECK(problem("w", "", false) ==
        "spec.sampleWeight was w, is none; allow it with spec.model.initFrom.newTensors: allow");
  CHECK(absl::StartsWith(problem("", "w", false), "spec.sampleWeight was none, is w; "));
  CHECK(problem("w", "v", true) == "OK");
  CHECK(problem("w", "v", false) ==
        "spec.sampleWeight was w, is v; if that column is only called otherwise now, say so with "
        "spec.model.initFrom.rename: {w: v}; else allow it with spec.model.initFrom.newTensors: "
        "allow");
  CHECK(problem("w", "v", false, {{"w", "v"}}) == "OK");
  // Of another column that rename says nothing, and a column is not left behind.
  CHECK(absl::StrContains(problem("w", "x", false, {{"w", "price"}}),
                          "spec.sampleWeight was w, is x; if that column"));
  CHECK(absl::StrContains(problem("w", "x", false, {{"w", ""}}), "spec.sampleWeight was w, is x"));
  // Nobody has what is renamed.
  CHECK(absl::StrContains(problem("w", "v", false, {{"u", "v"}}),
                          "the checkpoint has no table, tensor, field, label or column 'u'"));
  CHECK(absl::StrContains(problem("w", "v", false, {{"w", "u"}}),
                          "'w' becomes 'u', and the job has no table"));
  CHECK(absl::StrContains(problem("", "", false, {{"", "item"}}),
                          "the checkpoint has no table, tensor, field, label or column ''"));
}

TEST_CASE("a renamed column of weights is told as one", "[schema]") {
  const Schema schema = SchemaOf(OfTables("item", "user"));
  SchemaMapping mapping = MapSchemas(schema, schema);
  MapSampleWeight("w", "v", {{"w", "v"}}, mapping);
  CHECK(absl::EndsWith(MappingText(mapping), "; renamed: spec.sampleWeight w as v"));
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
  const auto problem = [&](const Renames& rename, const Schema& now) {
    InitFromSpec init = Allow(true, false);
    for (const auto& [from, to] : rename) (*init.mutable_rename())[from] = to;
    const absl::Status s = CheckInitFrom(MapSchemas(saved, now, rename), saved, now, init);
    CHECK(s.ok() != absl::IsInvalidArgument(s));
    return Lines(s);
  };
  CHECK(problem({{"layer_1_bias", "layer_0_bias"}}, saved) ==
        "spec.model.initFrom.rename: the checkpoint's tensors layer_0_bias and layer_1_bias would "
        "both be called layer_0_bias; leave one behind, as with layer_0_bias: \"\"");
  CHECK(absl::StrContains(problem({{"layer_0_bias", "layer_1_bias"}}, saved),
                          "would both be called layer_1_bias"));
  CHECK(absl::StrContains(
      problem({{"layer_0_bias", "layer_1_bias"}, {"layer_0_weight", "layer_1_bias"}}, saved),
      "would both be called layer_1_bias"));
  // One of the two stays behind.
  InitFromSpec init = Allow(true, true);
  (*init.mutable_rename())["layer_0_bias"] = "";
  (*init.mutable_rename())["layer_1_bias"] = "layer_0_bias";
  CHECK(InitProblem(saved, saved, init) == "OK");
  CHECK(absl::StrContains(MappingText(MapSchemas(saved, saved, RenamesOf(init))),
                          "; new: tensor layer_1_bias (1); dropped: tensor layer_0_bias (8); "));
  Schema now = saved;  // what exchanges names is no such thing
  now.mutable_tensors(3)->set_name("layer_1_bias");
  now.mutable_tensors(5)->set_name("layer_0_bias");
  CHECK(problem({{"layer_0_bias", "layer_1_bias"}, {"layer_1_bias", "layer_0_bias"}}, now) == "OK");
  CHECK(absl::StrContains(
      MappingText(MapSchemas(saved, saved, {{"layer_0_bias", "layer_1_bias"}})),
      "; dropped: tensor layer_1_bias (1); other shape: tensor layer_1_bias was (8), is (1)"));
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

TEST_CASE("a name that nobody has is told where names are listed, in one line", "[schema]") {
  const Schema saved = SchemaOf(OfTables("item", "user"));
  CHECK(InitProblem(saved, saved, Init({{"it\nem", "item"}})) ==
        "spec.model.initFrom.rename: the checkpoint has no table, tensor, field, label or column "
        "'it\\nem'; `strata checkpoint show` lists them");
  CHECK(absl::StrContains(InitProblem(saved, saved, Init({{"item", "x"}})),
                          "and the job has no table, tensor, field, label or column of that name; "
                          "`strata explain --schema JOB` lists them"));
}

}  // namespace
}  // namespace strata
