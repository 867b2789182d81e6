// What `initFrom` and `--resume` take of a checkpoint by the names of labels, tables, fields and
// columns.
#include "proto/job/schema/schema_renaming.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

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

InitFromSpec Init(const Renames& rename, bool allow = false) {
  InitFromSpec init;
  init.set_new_tensors(allow ? "allow" : "refuse");
  init.set_dropped_tensors(allow ? "allow" : "refuse");
  for (const auto& [from, to] : rename) (*init.mutable_rename())[from] = to;
  return init;
}

std::string InitProblem(const Schema& saved, const Schema& now, const InitFromSpec& init = {}) {
  const absl::Status s = CheckInitFrom(MapSchemas(saved, now, RenamesOf(init)), saved, now, init);
  return s.ok() ? "OK" : std::string(s.message());
}

std::string ResumeProblem(const Schema& saved, const Schema& now) {
  const absl::Status s = CheckResume(MapSchemas(saved, now));
  return s.ok() ? "OK" : std::string(s.message());
}

std::string Text(const Schema& saved, const Schema& now, const Renames& rename = {}) {
  return MappingText(MapSchemas(saved, now, rename));
}

// By what the job calls a tensor that is loaded: what the checkpoint does.
Renames Loaded(const Schema& saved, const Schema& now, const Renames& rename = {}) {
  Renames names;
  for (const auto& [from, to] : MapSchemas(saved, now, rename).tensors) {
    CHECK(names.emplace(now.tensors(to).name(), saved.tensors(from).name()).second);
  }
  return names;
}

// Two tables, two fields of the first one and a number.
JobSpec OfTables(const char* first, const char* second) {
  JobSpec spec;
  for (const char* name : {first, second}) {
    TableConfig& table = *spec.add_tables();
    table.set_name(name);
    table.set_dim(4);
  }
  for (const auto& [name, table] : std::vector<std::pair<std::string, std::string>>{
           {"item", first}, {"seen", first}, {"user", second}}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_kind("categorical");
    field.set_table(table);
  }
  FieldConfig& price = *spec.add_fields();
  price.set_name("price");
  price.set_kind("numeric");
  spec.add_labels()->set_name("click");
  spec.mutable_model()->set_type("deepfm");
  spec.mutable_model()->add_hidden(8);
  return Resolved(spec);
}

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

JobSpec OfTransform(TransformConfig transform) {
  JobSpec spec = OfTables("item", "user");
  if (transform.type() == "bucketise") spec.mutable_fields(3)->set_table("item");
  *spec.mutable_fields(3)->mutable_transform() = std::move(transform);
  return Resolved(spec);
}

TEST_CASE("transforms are compared by their numbers, all digits of them", "[schema]") {
  TransformConfig bounds, deviation, clip;
  bounds.set_type("bucketise");
  bounds.add_bounds(1700000000);
  bounds.add_bounds(1700000100);
  deviation.set_type("standardise");
  deviation.set_mean(0);
  deviation.set_deviation(1234567.1);
  clip.set_type("clip");
  clip.set_min(0);
  clip.set_max(16777216.5);
  const auto problem = [](const TransformConfig& was, const TransformConfig& is) {
    const Schema saved = SchemaOf(OfTransform(was)), now = SchemaOf(OfTransform(is));
    CHECK(absl::StrContains(InitProblem(saved, now), ResumeProblem(saved, now)));
    return ResumeProblem(saved, now);
  };
  for (const TransformConfig& same : {bounds, deviation, clip}) CHECK(problem(same, same) == "OK");
  TransformConfig other = bounds;
  other.set_bounds(1, 1700003000);
  CHECK(problem(bounds, other) ==
        "field price: transform was bucketise [1.7e+09, 1700000100], is bucketise [1.7e+09, "
        "1700003000]");
  other = deviation;
  other.set_deviation(1234568.9);
  CHECK(problem(deviation, other) ==
        "field price: transform was standardise mean 0 deviation 1234567.1, is standardise mean 0 "
        "deviation 1234568.9");
  other = clip;
  other.set_max(16777217.5);
  CHECK(problem(clip, other) ==
        "field price: transform was clip min 0 max 16777216.5, is clip min 0 max 16777217.5");
  other.clear_min();
  CHECK(absl::EndsWith(problem(clip, other), "is clip max 16777217.5"));
}

TEST_CASE("a label's weight is shown in all digits that differ", "[schema]") {
  JobSpec spec = OfTables("item", "user");
  spec.mutable_labels(0)->set_weight(0.2f);
  const Schema saved = SchemaOf(spec);
  spec.mutable_labels(0)->set_weight(0.2000001f);
  CHECK(ResumeProblem(saved, SchemaOf(spec)) == "label click: weight was 0.2, is 0.2000001");
}

JobSpec OfLabels(const char* model, std::initializer_list<const char*> labels) {
  JobSpec spec;
  ColumnsSpec& columns = *spec.mutable_data()->mutable_columns();
  columns.add_categorical("user");
  columns.add_categorical("item");
  columns.add_numeric("price");
  for (const char* name : labels) spec.add_labels()->set_name(name);
  spec.mutable_model()->set_type(model);
  spec.mutable_model()->set_embedding_dim(4);
  return Resolved(spec);
}

TEST_CASE("towers and gates follow their labels to other numbers", "[schema]") {
  const std::string model = GENERATE("mmoe", "shared_bottom");
  INFO(model);
  const auto of = [&](std::initializer_list<const char*> labels) {
    return SchemaOf(OfLabels(model.c_str(), labels));
  };
  const Schema both = of({"click", "buy"}), buy = of({"buy"}), three = of({"cart", "buy", "click"});
  const std::vector<std::string> parts = model == "mmoe" ? std::vector<std::string>{"tower", "gate"}
                                                         : std::vector<std::string>{"tower"};
  const auto check = [&](const Renames& loaded, int saved_label, int now_label) {
    for (const std::string& part : parts) {
      const std::string rest = part == "tower" ? "_0_weight" : "_weight";
      const auto at = loaded.find(absl::StrCat(part, "_", now_label, rest));
      REQUIRE(at != loaded.end());
      CHECK(at->second == absl::StrCat(part, "_", saved_label, rest));
    }
  };
  check(Loaded(both, both), 0, 0);
  check(Loaded(both, both), 1, 1);
  check(Loaded(both, buy), 1, 0);
  check(Loaded(buy, both), 0, 1);
  CHECK_FALSE(Loaded(buy, both).contains("tower_0_0_weight"));
  const Schema swapped = of({"buy", "click"});
  check(Loaded(both, swapped), 1, 0);
  check(Loaded(both, swapped), 0, 1);
  check(Loaded(three, both), 2, 0);
  if (model == "mmoe") {
    CHECK(Loaded(three, both).at("expert_0_0_weight") == "expert_0_0_weight");
  }
  // Nothing is lost, so nothing is refused; to resume is to have the same model.
  CHECK(InitProblem(both, swapped) == "OK");
  CHECK(absl::StrContains(ResumeProblem(both, swapped), "tower_1_0_weight as tower_0_0_weight"));
  CHECK(absl::EndsWith(ResumeProblem(both, swapped),
                       "label click came before buy, and comes after it now"));
  CHECK(absl::StrContains(Text(both, buy), "tensor tower_1_0_weight as tower_0_0_weight"));
  CHECK(absl::StrContains(Text(both, buy), "dropped: "));
  CHECK_FALSE(absl::StrContains(Text(both, buy), "new: "));
  CHECK(absl::StrContains(InitProblem(buy, both), "tensor tower_0_0_weight"));
}

TEST_CASE("towers follow a label that is called otherwise, and a rename of their own", "[schema]") {
  const Schema both = SchemaOf(OfLabels("mmoe", {"click", "buy"}));
  const Schema order = SchemaOf(OfLabels("mmoe", {"order", "click"}));
  const Renames renamed = Loaded(both, order, {{"buy", "order"}});
  CHECK(renamed.at("tower_0_0_weight") == "tower_1_0_weight");
  CHECK(renamed.at("gate_1_bias") == "gate_0_bias");
  CHECK(InitProblem(both, order, Init({{"buy", "order"}})) == "OK");
  // Without it that tower begins anew: it is of another label.
  CHECK_FALSE(Loaded(both, order).contains("tower_0_0_weight"));
  CHECK(Loaded(both, order, {{"tower_1_0_weight", "tower_0_0_weight"}}).at("tower_0_0_weight") ==
        "tower_1_0_weight");
  // A rename is heard where the label says the same, too.
  const Schema buy = SchemaOf(OfLabels("mmoe", {"buy"}));
  CHECK(Loaded(both, buy, {{"tower_1_0_weight", "tower_0_0_weight"}}).at("tower_0_0_weight") ==
        "tower_1_0_weight");
  CHECK(absl::StrContains(InitProblem(both, buy, Init({{"tower_0_0_weight", "tower_0_0_weight"}})),
                          "the checkpoint's tensors tower_0_0_weight and tower_1_0_weight would "
                          "both be called tower_0_0_weight"));
  // The one label of a job may be called anything.
  CHECK(Loaded(buy, SchemaOf(OfLabels("mmoe", {"order"}))).contains("tower_0_0_weight"));
}

TEST_CASE("the only label's tower begins anew where it is left behind", "[schema]") {
  const std::string model = GENERATE("mmoe", "shared_bottom");
  INFO(model);
  const Schema buy = SchemaOf(OfLabels(model.c_str(), {"buy"}));
  const Renames loaded = Loaded(buy, buy, {{"buy", ""}});
  for (const SchemaTensor& tensor : buy.tensors()) {
    INFO(tensor.name());
    const bool of_label =
        absl::StartsWith(tensor.name(), "tower_") || absl::StartsWith(tensor.name(), "gate_");
    CHECK(loaded.contains(tensor.name()) == !of_label);
  }
  CHECK_FALSE(loaded.empty());
  CHECK(absl::StrContains(InitProblem(buy, buy, Init({{"buy", ""}})),
                          ", 32): the checkpoint has none; allow it"));
  CHECK(InitProblem(buy, buy, Init({{"buy", ""}}, true)) == "OK");
}

TEST_CASE("a plan reads a tower from where its label's was", "[schema]") {
  const Schema both = SchemaOf(OfLabels("mmoe", {"click", "buy"}));
  const Schema buy = SchemaOf(OfLabels("mmoe", {"buy"}));
  const auto tensor = [](const Schema& schema, const std::string& name) {
    for (const SchemaTensor& t : schema.tensors()) {
      if (t.name() == name) return t;
    }
    FAIL(name);
    return SchemaTensor();
  };
  const RestorePlan plan = MakeRestorePlan(MapSchemas(both, buy), both, buy, Init({}, true));
  const uint64_t to = tensor(buy, "tower_0_0_weight").first_row();
  int found = 0;
  for (const RestoreTensor& t : plan.tensors()) {
    if (t.to_row() != to) continue;
    ++found;
    CHECK(t.from_row() == tensor(both, "tower_1_0_weight").first_row());
  }
  CHECK(found == 1);
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

// A short form's columns are names of fields, whatever characters they have.
TEST_CASE("names that hold line ends break no line of a comparison", "[schema]") {
  JobSpec spec = OfTables("item", "user");
  const Schema saved = SchemaOf(spec);
  Schema other = saved;
  for (SchemaField& f : *other.mutable_fields()) f.set_name(f.name() + "\n");
  other.mutable_fields(0)->set_column("a\nb");
  other.mutable_tables(0)->set_name("item\n");
  other.mutable_tensors(0)->set_name("bias\r");
  other.mutable_labels(0)->set_name("click\x1b");
  other.mutable_labels(0)->set_column("click\n");
  const auto lines = [](const std::string& text) {
    size_t lines = 1;
    for (const char c : text) {
      if (c == '\n') ++lines;
      CHECK((c == '\n' || static_cast<unsigned char>(c) >= ' '));
    }
    return lines;
  };
  const Schema& changed = other;
  for (const auto& [from, to] : {std::pair(&saved, &changed), std::pair(&changed, &saved)}) {
    const SchemaMapping mapping = MapSchemas(*from, *to);
    size_t differences = 0;
    for (const SchemaEntry& e : mapping.entries) {
      CHECK(lines(EntryText(e)) == 1);
      differences += e.change != SchemaChange::kLoaded;
    }
    CHECK(lines(MappingText(mapping)) == 1);
    CHECK(differences <= 20);  // that a refusal lists
    CHECK(lines(ResumeProblem(*from, *to)) == differences);
    CHECK(lines(InitProblem(*from, *to)) <= differences);  // not of what is allowed
    const absl::Status contradiction = CheckSaved(*from, *to);
    CHECK_FALSE(contradiction.ok());
    CHECK(lines(std::string(contradiction.message())) == differences);
  }
  // Those that stay, under other columns.
  Schema columns = saved;
  columns.mutable_fields(3)->set_column("co\nst");
  columns.mutable_labels(0)->set_column("cli\nck");
  CHECK(lines(InitProblem(saved, columns)) == 2);
  CHECK(
      absl::StrContains(InitProblem(saved, columns),
                        "field price: column was price, is co\\nst; if that column is only called "
                        "otherwise now, say so with spec.model.initFrom.rename: {price: co\\nst}"));
  CHECK(lines(Text(saved, columns, {{"price", "co\nst"}, {"click", "cli\nck"}})) == 1);
  Schema twice = saved;
  twice.mutable_fields(0)->set_name("a\nb");
  CHECK(lines(InitProblem(twice, saved, Init({{"a\nb", "user"}}))) == 1);
  SchemaMapping weight = MapSchemas(saved, saved);
  MapSampleWeight("w\n", "", {}, weight);
  CHECK(lines(MappingText(weight)) == 1);
  twice = saved;
  twice.mutable_tables(0)->set_name("i\n");
  for (SchemaField& f : *twice.mutable_fields()) {
    if (f.table() == "item") f.set_table("i\n");
  }
  Schema numbered = twice;
  numbered.mutable_tables(0)->set_table(9);
  CHECK(lines(std::string(CheckSaved(numbered, twice).message())) == 1);
  twice.mutable_tensors(0)->set_name("b\n");
  numbered = twice;
  numbered.mutable_tensors(0)->set_rows(9);
  CHECK(lines(std::string(CheckSaved(numbered, twice).message())) == 1);
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
