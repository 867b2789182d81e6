#include "proto/job/schema/schema.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/job/schema/schema_text.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/proto/job/schema/compared_schemas.h"
#include "tests/proto/job/schema/made_schema.h"

namespace strata {
namespace {

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

}  // namespace
}  // namespace strata
