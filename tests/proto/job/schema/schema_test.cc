#include "proto/job/schema/schema.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_start.h"
#include "proto/job/schema/schema_text.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/job/schema/made_schema.h"

namespace strata {
namespace {

// A job over two categories and a number, defaults resolved.
JobSpec CsvJob(const std::string& type) {
  JobSpec spec;
  ColumnsSpec& columns = *spec.mutable_data()->mutable_columns();
  columns.set_label("y");
  columns.add_categorical("user");
  columns.add_categorical("item");
  columns.add_numeric("price");
  spec.mutable_model()->set_type(type);
  spec.mutable_model()->set_embedding_dim(4);
  if (std::string(type) != "mmoe") spec.mutable_model()->add_hidden(8);
  return Resolved(std::move(spec));
}

template <typename Change>
Schema Changed(const JobSpec& spec, const Change& change) {
  JobSpec other = spec;
  change(other);
  return SchemaOf(other);
}

std::string Lines(const absl::Status& status) {
  return status.ok() ? "OK" : std::string(status.message());
}

std::string ResumeProblem(const Schema& saved, const Schema& now) {
  return Lines(CheckResume(MapSchemas(saved, now)));
}

std::string InitProblem(const Schema& saved, const Schema& now, const InitFromSpec& init = {}) {
  return Lines(CheckInitFrom(MapSchemas(saved, now, RenamesOf(init)), saved, now, init));
}

InitFromSpec Allow(bool new_tensors, bool dropped_tensors) {
  InitFromSpec init;
  init.set_new_tensors(new_tensors ? "allow" : "refuse");
  init.set_dropped_tensors(dropped_tensors ? "allow" : "refuse");
  return init;
}

TEST_CASE("a schema names everything that a model is made of", "[schema]") {
  const std::string adam =
      "adam(learningRate 0.001, epsilon 1e-08, beta1 0.9, beta2 0.999)  state m, v\n";
  const std::string adagrad = "adagrad(learningRate 0.05, epsilon 1e-10)  state accumulator\n";
  Schema schema = SchemaOf(CsvJob("deepfm"));
  uint64_t row = 0;
  for (SchemaTensor& t : *schema.mutable_tensors()) t.set_first_row(++row);
  CHECK(SchemaText(schema) ==
        "model deepfm\n"
        "table features  number 0\n"
        "  embedding(4)  normal(0, 0.01)  " +
            adagrad + "  weight(1)  zero  " + adagrad + "tensor bias(1)  1 row from 1  zero  " +
            adam + "tensor numeric_weight(1)  1 row from 2  zero  " + adam +
            "tensor layer_0_weight(9, 8)  1 row from 3  uniform(-0.333333, 0.333333)  " + adam +
            "tensor layer_0_bias(8)  1 row from 4  zero  " + adam +
            "tensor output_weight(8, 1)  1 row from 5  uniform(-0.353553, 0.353553)  " + adam +
            "tensor output_bias(1)  1 row from 6  zero  " + adam +
            "field user  categorical  table features  keys by column\n"
            "field item  categorical  table features  keys by column\n"
            "field price  numeric\n"
            "label label  binary  column y  loss logloss  weight 1\n");
}

TEST_CASE("fields of the short forms", "[schema]") {
  JobSpec spec = CsvJob("lr");
  MultiValuedColumn* tags = spec.mutable_data()->mutable_columns()->add_multi_valued();
  tags->set_column("tags");
  tags->set_pooling("mean");
  const auto names = [](const JobSpec& s, uint32_t fields = 0) {
    std::string text;
    for (const SchemaField& f : SchemaFields(s, fields)) {
      absl::StrAppend(&text, f.name(), ":", f.kind(), f.table().empty() ? "" : "*", " ");
    }
    return text;
  };
  CHECK(names(spec) == "user:categorical* item:categorical* tags:multiValued* price:numeric ");
  CHECK(SchemaFields(spec, 0)[2].pooling() == "mean");
  CHECK(SchemaFields(spec, 0)[2].separator() == "|");
  CHECK(CountFields(spec)->fields == 3);
  CHECK(CountFields(spec)->numeric == 1);
  spec.mutable_data()->set_format("criteo");
  CHECK(SchemaFields(spec, 0)[0].name() == "C1");
  CHECK(CountFields(spec)->fields == 26);
  CHECK(CountFields(spec)->numeric == 13);
  spec.mutable_data()->set_integer_features("bucket");
  CHECK(CountFields(spec)->fields == 39);
  CHECK(CountFields(spec)->numeric == 0);
  spec.mutable_data()->set_format("libffm");
  CHECK(names(spec, 2) == "0:multiValued* 1:multiValued* ");
  CHECK_FALSE(CountFields(spec).has_value());
  spec.mutable_data()->set_format("libfm");
  CHECK(names(spec, 9) == "features:multiValued* ");
}

TEST_CASE("fields have the names and tables that the job gives them", "[schema]") {
  JobSpec spec = CsvJob("fm");
  const auto add_table = [](JobSpec& s, const char* name) {
    TableConfig* table = s.add_tables();
    table->set_name(name);
    table->set_dim(4);
    table->set_init_scale(0.5f);
    *table->mutable_optimizer() = s.optimizer().sparse();
  };
  const auto add_field = [](JobSpec& s, const char* name, const char* column, const char* kind,
                            const char* table) {
    FieldConfig* field = s.add_fields();
    field->set_name(name);
    field->set_column(column);
    field->set_kind(kind);
    field->set_table(table);
  };
  add_table(spec, "things");
  add_table(spec, "people");
  add_field(spec, "price", "", "numeric", "");
  add_field(spec, "buyer", "user", "categorical", "people");
  add_field(spec, "item", "", "categorical", "things");
  const std::string text = SchemaText(SchemaOf(spec));
  INFO(text);
  CHECK(absl::StrContains(text, "table things  number 0\n  embedding(4)  normal(0, 0.5)  "));
  CHECK(absl::StrContains(text, "table people  number 2\n  embedding(4)  normal(0, 0.5)  "));
  CHECK(absl::StrContains(text,
                          "field buyer  categorical  column user  table people  keys by table\n"
                          "field item  categorical  table things  keys by table\n"
                          "field price  numeric\n"));
  CHECK_FALSE(absl::StrContains(text, "features"));
  // Of csv the order of spec.fields is that of the fields, numbers apart.
  JobSpec turned = spec;
  turned.mutable_fields()->SwapElements(0, 1);
  CHECK(SchemaText(SchemaOf(turned)) == text);
  turned.mutable_fields()->SwapElements(0, 2);
  CHECK(absl::StrContains(SchemaText(SchemaOf(turned)),
                          "field item  categorical  table things  keys by table\n"
                          "field buyer  categorical  column user  table people  keys by table\n"
                          "field price  numeric\n"));
  // Of criteo it is the data's, whatever the order of spec.fields.
  JobSpec criteo = spec;
  criteo.clear_fields();
  criteo.mutable_data()->set_format("criteo");
  for (int i = 26; i >= 1; --i) {
    add_field(criteo, i == 2 ? "buyer" : absl::StrCat("C", i).c_str(), absl::StrCat("C", i).c_str(),
              "categorical", i == 2 ? "people" : "things");
  }
  CHECK(absl::StrContains(SchemaText(SchemaOf(criteo)),
                          "field C1  categorical  table things  keys by place\n"
                          "field buyer  categorical  column C2  table people  keys by place\n"
                          "field C3  categorical  table things  keys by place\n"));
  // Of libffm every field is named, and of libfm none.
  spec.mutable_data()->set_format("libffm");
  spec.mutable_fields()->DeleteSubrange(0, 1);
  for (const int f : {0, 1}) spec.mutable_fields(f)->set_column(absl::StrCat(f));
  add_field(spec, "more", "2", "multiValued", "things");
  CHECK(SchemaFields(spec, 3)[2].name() == "more");
  CHECK(SchemaFields(spec, 3)[2].table() == "things");
  // A job file says of these alone what they are, in the data's order.
  spec.mutable_fields()->SwapElements(0, 2);
  const auto declared = DeclaredSchema(spec);
  REQUIRE(declared.ok());
  REQUIRE(declared->fields_size() == 3);
  for (int f = 0; f < 3; ++f) {
    CHECK(declared->fields(f).ShortDebugString() ==
          SchemaFields(spec, 3)[static_cast<size_t>(f)].ShortDebugString());
  }
  spec.mutable_data()->set_format("libfm");
  spec.clear_fields();
  spec.mutable_tables()->RemoveLast();
  CHECK(SchemaFields(spec, 9)[0].table() == "things");
}

std::string WithoutTensors(Schema schema) {
  schema.clear_tensors();
  return SchemaText(schema);
}

TEST_CASE("a job file says its schema as far as it knows", "[schema]") {
  JobSpec spec = CsvJob("deepfm");
  REQUIRE(DeclaredSchema(spec).ok());
  CHECK(SchemaText(*DeclaredSchema(spec)) == SchemaText(SchemaOf(spec)));
  for (const char* type :
       {"lr", "fm", "wide_deep", "deepfm", "dcn_v2", "dlrm", "shared_bottom", "mmoe", "din"}) {
    INFO(type);
    spec = CsvJob(type);
    spec.mutable_data()->set_format("libfm");
    const auto libfm = DeclaredSchema(spec);
    INFO(libfm.status());
    REQUIRE(libfm.ok());
    CHECK(libfm->tables_size() == 1);
    // Whose shapes go by how many fields there are is not known yet.
    Schema of[2];
    for (const uint32_t fields : {2u, 3u}) {
      const auto model = MakeModelTables(spec, fields, 0);
      REQUIRE(model.ok());
      of[fields - 2] = MakeSchema(spec, *model);
    }
    const bool same = SchemaText(of[0]) == SchemaText(of[1]);
    CHECK(same == (std::string(type) == "lr" || std::string(type) == "fm"));
    CHECK(SchemaText(*libfm) == (same ? SchemaText(of[0]) : WithoutTensors(of[0])));
    CHECK(libfm->fields_size() == 1);
    spec.mutable_data()->set_format("libffm");
    CHECK(DeclaredSchema(spec)->fields_size() == 0);
    // The data may have others.
    FieldConfig& field = *spec.add_fields();
    field.set_name("item");
    field.set_column("70");
    field.set_kind("multiValued");
    field.set_table("features");
    const auto libffm = DeclaredSchema(spec);
    REQUIRE(libffm.ok());
    REQUIRE(libffm->fields_size() == 1);
    CHECK(libffm->fields(0).ShortDebugString() == SchemaFields(spec, 71)[70].ShortDebugString());
    CHECK(libffm->fields(0).name() == "item");
  }
  spec.mutable_model()->set_embedding_dim(5000);
  CHECK_FALSE(DeclaredSchema(spec).ok());
}

TEST_CASE("columns without a name are warned of", "[schema]") {
  JobSpec spec = CsvJob("lr");
  DataSpec& data = *spec.mutable_data();
  CHECK(KeysByPosition(spec).empty());
  data.mutable_columns()->set_categorical(1, "3");
  data.mutable_columns()->add_multi_valued()->set_column("7");
  data.mutable_columns()->set_numeric(0, "5");  // nothing is hashed
  // The header may name a column 3: the files say.
  CHECK(KeysByPosition(spec) ==
        "spec.data.columns: the categories of columns 3, 7 are hashed with these numbers, which "
        "are positions where the header has no columns of these names: a file whose columns lie in "
        "another order means other rows then; give names of the header");
  data.mutable_columns()->set_header(false);
  CHECK(KeysByPosition(spec) ==
        "spec.data.columns: the categories of columns 3, 7 are hashed with the column's position, "
        "as it has no name here: a file whose columns lie in another order means other rows; name "
        "columns by a header (spec.data.columns.header: true)");
  data.mutable_columns()->clear_multi_valued();
  for (int i = 10; i < 40; ++i) data.mutable_columns()->add_categorical(absl::StrCat(i));
  CHECK(absl::StrContains(KeysByPosition(spec), " 27, 28, ... and 11 more are hashed with "));
  data.set_format("libfm");
  CHECK(KeysByPosition(spec).empty());
}

TEST_CASE("columns of spec.fields without a name are warned of", "[schema]") {
  JobSpec spec = CsvJob("lr");
  const auto add_field = [&](const char* name, const char* column, const char* kind) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_column(column);
    field.set_kind(kind);
    if (field.kind() != "numeric") field.set_table("features");
  };
  add_field("7", "user", "categorical");  // the column is what is hashed
  add_field("price", "5", "numeric");
  CHECK(KeysByPosition(spec).empty());
  add_field("item", "3", "categorical");
  CHECK(absl::StartsWith(KeysByPosition(spec),
                         "spec.fields: the categories of column 3 are hashed with this number, "
                         "which is a position where the header has no column of this name: a"));
  // Keys of tables hash the table's name.
  spec.add_tables()->set_name("features");
  CHECK(KeysByPosition(spec).empty());
}

TEST_CASE("rows that get a score, or lose it, are no rows to resume from", "[schema]") {
  const JobSpec spec = CsvJob("lr");
  const Schema saved = SchemaOf(spec);
  const Schema scored = Changed(spec, [](JobSpec& s) {
    s.mutable_life_cycle()->mutable_removal()->mutable_score()->set_below(0.5f);
    s.mutable_life_cycle()->mutable_removal()->set_every_steps(3);
  });
  REQUIRE(scored.tables(0).scored());
  CHECK(ResumeProblem(saved, scored) ==
        "table features: rows had no score, and have one now (spec.lifeCycle.removal.score)");
  CHECK(ResumeProblem(scored, saved) ==
        "table features: rows had a score, and have none now (spec.lifeCycle.removal.score)");
  CHECK(ResumeProblem(scored, scored) == "OK");
  // They would be gone with the first sweep.
  CHECK(InitProblem(saved, scored, Allow(true, true)) ==
        "table features: rows had no score, and have one now (spec.lifeCycle.removal.score); leave "
        "that rule out, or begin without the checkpoint: rows that begin at score 0 are removed "
        "before they have been seen");
  CHECK(InitProblem(scored, saved) == "OK");
  CHECK(InitProblem(scored, scored) == "OK");
  InitFromSpec reset;
  reset.set_optimizer_state("reset");
  const auto keeps_score = [&](const Schema& from, const Schema& to, const InitFromSpec& init) {
    return MakeRestorePlan(MapSchemas(from, to), from, to, init).tables(0).keep_score();
  };
  CHECK(keeps_score(scored, scored, reset));
  CHECK_FALSE(keeps_score(scored, scored, {}));
  CHECK_FALSE(keeps_score(scored, saved, reset));
}

TEST_CASE("a mapping of thousands of fields is cut short", "[schema]") {
  JobSpec spec = CsvJob("lr");
  for (int i = 0; i < 500; ++i) {
    spec.mutable_data()->mutable_columns()->add_categorical(absl::StrCat("c", i));
  }
  const Schema schema = SchemaOf(spec);
  const std::string text = MappingText(MapSchemas(schema, schema));
  CHECK(text.size() < 4000);
  CHECK(absl::StrContains(text, ", field c90, "));
  CHECK(absl::EndsWith(text, "and 407 more"));
}

// It took minutes, and the scheduler's lock with it.
TEST_CASE("as many fields as libffm has are compared in no time", "[schema]") {
  constexpr int kFields = 65536;
  Schema saved = SchemaOf(CsvJob("lr"));
  saved.clear_fields();
  for (int i = 0; i < kFields; ++i) saved.add_fields()->set_name(absl::StrCat(i));
  Schema now = saved;
  now.mutable_fields()->SwapElements(0, kFields - 1);
  now.mutable_fields(1)->set_name("x");
  InitFromSpec init = Allow(true, true);
  (*init.mutable_rename())["2"] = "2";
  const SchemaMapping mapping = MapSchemas(saved, now, RenamesOf(init));
  CHECK(mapping.entries.size() > kFields);
  const std::string text = MappingText(mapping);
  CHECK(absl::StrContains(text, "new: field x; dropped: field 1; other fields: "));
  CHECK(absl::StrContains(text, "; other order: field "));
  CHECK(CheckInitFrom(mapping, saved, now, init).ok());
}

TEST_CASE("what is the same resumes, and rates may change", "[schema]") {
  for (const char* type :
       {"lr", "fm", "wide_deep", "deepfm", "dcn_v2", "dlrm", "shared_bottom", "mmoe", "din"}) {
    INFO(type);
    JobSpec spec = CsvJob(type);
    const Schema saved = SchemaOf(spec);
    CHECK(ResumeProblem(saved, saved) == "OK");
    CHECK(InitProblem(saved, saved) == "OK");
    OptimizersSpec& o = *spec.mutable_optimizer();
    o.mutable_sparse()->set_learning_rate(0.5f);
    o.mutable_dense()->mutable_schedule()->set_type("cosine");
    o.mutable_dense()->mutable_schedule()->set_decay_steps(9);
    spec.mutable_model()->set_init_scale(0.2f);
    CHECK(ResumeProblem(saved, SchemaOf(spec)) == "OK");
    CHECK(InitProblem(saved, SchemaOf(spec)) == "OK");
    // The other way: what the data are named does not reach the check.
    Schema other = saved;
    other.set_data_fingerprint("x");
    CHECK(ResumeProblem(saved, other) == "OK");
  }
}

TEST_CASE("every difference of meaning is named in one line", "[schema]") {
  const JobSpec spec = CsvJob("deepfm");
  const Schema saved = SchemaOf(spec);
  const auto problem = [&](const auto& change) {
    return ResumeProblem(saved, Changed(spec, change));
  };
  CHECK(problem([](JobSpec& s) { s.mutable_model()->set_hidden(0, 6); }) ==
        "tensor layer_0_weight was (9, 8), is (9, 6)\n"
        "tensor layer_0_bias was (8), is (6)\n"
        "tensor output_weight was (8, 1), is (6, 1)");
  CHECK(problem([](JobSpec& s) { s.mutable_model()->set_type("wide_deep"); }) ==
        "spec.model.type was deepfm, is wide_deep");
  CHECK(problem([](JobSpec& s) { s.mutable_model()->set_hash_seed(7); }) ==
        "field user: hashSeed was 0, is 7\nfield item: hashSeed was 0, is 7");
  CHECK(absl::StrContains(problem([](JobSpec& s) { s.mutable_model()->set_embedding_dim(2); }),
                          "table features was embedding(4) + weight(1), is embedding(2) + "
                          "weight(1)"));
  CHECK(problem([](JobSpec& s) {
          s.mutable_optimizer()->mutable_sparse()->set_type("ftrl");
          s.mutable_optimizer()->mutable_linear()->set_type("ftrl");
        }) ==
        "table features: embedding: the optimizer was adagrad, is ftrl; weight: the optimizer was "
        "adagrad, is ftrl");
  CHECK(absl::StartsWith(
      problem([](JobSpec& s) { s.mutable_optimizer()->mutable_dense()->set_type("adagrad"); }),
      "tensor bias: the optimizer was adam, is adagrad\ntensor numeric_weight: "));
  CHECK(problem([](JobSpec& s) {
          s.mutable_data()->mutable_columns()->mutable_categorical()->SwapElements(0, 1);
        }) ==
        "tensor layer_0_weight (9, 8) goes by the fields in their order\n"
        "field user came before item, and comes after it now");
  CHECK(problem(
            [](JobSpec& s) { s.mutable_data()->mutable_columns()->set_categorical(1, "shop"); }) ==
        "tensor layer_0_weight (9, 8) goes by the fields in their order\n"
        "field shop: the checkpoint has none\nfield item: the job has none");
  CHECK(problem([](JobSpec& s) { s.mutable_data()->mutable_columns()->set_label("z"); }) ==
        "label label: column was y, is z");
}

// Columns that are inserted or exchanged meant the same rows, and others, as long as keys went by
// the column's place in the list.
TEST_CASE("a linear model takes exchanged columns, as rows go by names", "[schema]") {
  const JobSpec spec = CsvJob("fm");
  JobSpec swapped = spec;
  swapped.mutable_data()->mutable_columns()->clear_numeric();
  const Schema saved = SchemaOf(swapped);
  swapped.mutable_data()->mutable_columns()->mutable_categorical()->SwapElements(0, 1);
  CHECK(InitProblem(saved, SchemaOf(swapped)) == "OK");
  CHECK(ResumeProblem(saved, SchemaOf(swapped)) ==
        "field user came before item, and comes after it now");
}

TEST_CASE("labels have their outputs in their order", "[schema]") {
  JobSpec spec = CsvJob("lr");
  spec.mutable_data()->mutable_columns()->clear_label();
  for (const char* name : {"click", "buy"}) spec.add_labels()->set_name(name);
  const Schema saved = SchemaOf(spec);
  CHECK(saved.tables(0).segments(0).dim() == 2);
  const Schema turned = Changed(spec, [](JobSpec& s) { s.mutable_labels()->SwapElements(0, 1); });
  CHECK(ResumeProblem(saved, saved) == "OK");
  CHECK(ResumeProblem(saved, turned) ==
        "table features weight(2): its columns follow the labels\n"
        "tensor bias (2): its columns follow the labels\n"
        "tensor numeric_weight (2): its columns follow the labels\n"
        "label click came before buy, and comes after it now");
  // Nothing is lost, so nothing is refused.
  CHECK(InitProblem(saved, turned) == "OK");
}

TEST_CASE("the mean of a label is part of what it means", "[schema]") {
  JobSpec spec = CsvJob("lr");
  spec.mutable_data()->mutable_columns()->clear_label();
  for (const char* name : {"click", "stars"}) {
    LabelConfig& label = *spec.add_labels();
    label.set_name(name);
    label.set_kind(name == std::string("stars") ? "real" : "binary");
    label.set_loss(name == std::string("stars") ? "squared" : "logloss");
  }
  const auto stating = [&](std::optional<float> mean) {
    JobSpec job = spec;
    if (mean) job.mutable_labels(1)->set_mean(*mean);
    return SchemaOf(job);
  };
  const Schema none = stating(std::nullopt), some = stating(3.2f);
  CHECK(absl::EndsWith(SchemaText(none),
                       "label click  binary  loss logloss  weight 1\n"
                       "label stars  real  loss squared  weight 1\n"));
  CHECK(absl::EndsWith(SchemaText(some), "  loss squared  weight 1  mean 3.2\n"));
  CHECK(absl::EndsWith(SchemaText(stating(0.0f)), "  loss squared  weight 1  mean 0\n"));
  CHECK(SchemaJson(some).find("\"mean\":3.2") != std::string::npos);
  CHECK(ResumeProblem(some, some) == "OK");
  CHECK(ResumeProblem(none, some) == "label stars: mean was none, is 3.2");
  CHECK(ResumeProblem(some, none) == "label stars: mean was 3.2, is none");
  CHECK(ResumeProblem(none, stating(0.0f)) == "label stars: mean was none, is 0");
  CHECK(ResumeProblem(some, stating(3.2000003f)) == "label stars: mean was 3.2, is 3.2000003");
  CHECK(InitProblem(some, stating(3.0f)) ==
        "label stars: mean was 3.2, is 3; allow it with spec.model.initFrom.newTensors: allow");
  CHECK(InitProblem(some, stating(3.0f), Allow(true, false)) == "OK");
}

// Names of the tensors that are loaded.
std::set<std::string> LoadedTensors(const Schema& saved, const Schema& now) {
  std::set<std::string> names;
  for (const auto& [from, to] : MapSchemas(saved, now).tensors) {
    CHECK(saved.tensors(from).name() == now.tensors(to).name());
    names.insert(now.tensors(to).name());
  }
  return names;
}

JobSpec OfLabels(const char* model, std::initializer_list<const char*> labels) {
  JobSpec spec = CsvJob(model);
  spec.mutable_data()->mutable_columns()->clear_label();
  for (const char* name : labels) spec.add_labels()->set_name(name);
  return spec;
}

TEST_CASE("as many weights of interactions in another shape are others", "[schema]") {
  JobSpec three = OfLabels("fm", {"a", "b", "c"}), two = OfLabels("fm", {"d", "e"});
  three.mutable_model()->set_embedding_dim(8);
  two.mutable_model()->set_embedding_dim(12);
  const Schema saved = SchemaOf(three), now = SchemaOf(two);
  for (const auto& [from, to] : MapSchemas(saved, now).tensors) {
    CHECK(now.tensors(to).name() != "interaction_weight");
  }
}

TEST_CASE("layers over fields whose tables change their widths begin anew", "[schema]") {
  JobSpec spec = OfLabels("mmoe", {"click"});
  for (const char* name : {"wide", "narrow"}) {
    TableConfig& table = *spec.add_tables();
    table.set_name(name);
    table.set_dim(std::string(name) == "wide" ? 6 : 2);
    table.mutable_optimizer()->set_type("sgd");
    FieldConfig& field = *spec.add_fields();
    field.set_name(std::string("of_") + name);
    field.set_column(field.name());
    field.set_kind("categorical");
    field.set_table(name);
  }
  JobSpec other = spec;
  other.mutable_tables(0)->set_dim(2);
  other.mutable_tables(1)->set_dim(6);
  const std::set<std::string> loaded = LoadedTensors(SchemaOf(spec), SchemaOf(other));
  CHECK_FALSE(loaded.contains("expert_0_0_weight"));
  CHECK_FALSE(loaded.contains("gate_0_weight"));
  CHECK(loaded.contains("expert_0_0_bias"));
  CHECK(LoadedTensors(SchemaOf(spec), SchemaOf(spec)).contains("gate_0_weight"));
}

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

// The word of a user that names nothing did what no user wants: the layer began anew.
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
