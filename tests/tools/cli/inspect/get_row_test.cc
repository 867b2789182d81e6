#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "proto/core/ids.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/job.pb.h"
#include "tests/tools/cli/inspect/refused.h"
#include "tools/cli/inspect/get_row_key.h"
#include "tools/cli/inspect/get_row_text.h"
#include "worker/data/formats/feature_hash.h"

namespace strata {
namespace {

using Json = nlohmann::json;

JobSpec Criteo(const std::string& integers) {
  JobSpec spec;
  spec.mutable_data()->set_format("criteo");
  spec.mutable_data()->set_integer_features(integers);
  return spec;
}

TEST_CASE("numbers are decimal or hexadecimal, all 64 bits", "[get-row]") {
  CHECK(*ParseNumber64("--key", "0") == 0);
  CHECK(*ParseNumber64("--key", "18446744073709551615") == ~uint64_t{0});
  CHECK(*ParseNumber64("--key", "0xffffffffffffffff") == ~uint64_t{0});
  for (const char* bad : {"", "x", "-1", "1.5", "18446744073709551616", "0x", "1 2"}) {
    INFO(bad);
    CHECK(Refused(ParseNumber64("--key", bad).status()).find("--key") == 0);
  }
}

// Keys that the Python of feature_hash.h gives.
TEST_CASE("a category's key is what the readers make of it", "[get-row]") {
  auto key = KeyOfCategory(Criteo("dense"), "C1", "05db9164");
  REQUIRE(key.ok());
  CHECK(key->field == 0);
  CHECK(key->key == KeyOfCategory(Criteo("dense"), "0", "05db9164")->key);
  CHECK(key->key == KeyOfCategory(Criteo("dense"), "c1", "05db9164")->key);
  CHECK(key->key != KeyOfCategory(Criteo("dense"), "C2", "05db9164")->key);
  JobSpec seeded = Criteo("dense");
  seeded.mutable_model()->set_hash_seed(9);
  CHECK(key->key != KeyOfCategory(seeded, "C1", "05db9164")->key);
  // An integer becomes its bucket: floor(ln(1000)^2) = 47.
  auto bucket = KeyOfCategory(Criteo("bucket"), "I3", "1000");
  REQUIRE(bucket.ok());
  CHECK(bucket->field == 28);
  CHECK(bucket->hashed == "47");
  CHECK(KeyOfCategory(Criteo("bucket"), "I3", "")->hashed.empty());
}

TEST_CASE("a row's table is that which is named, or its field's, or the only one", "[get-row]") {
  ModelTables one;
  one.tables.resize(2);
  one.tables[0].name = "features";
  one.tables[1].name = "dense";
  JobSpec spec;
  spec.mutable_data()->set_format("csv");
  for (const char* c : {"site", "app"}) spec.mutable_data()->mutable_columns()->add_categorical(c);
  CHECK(*FindRowTable(one, spec, "", "") == 0);
  CHECK(*FindRowTable(one, spec, "", "app") == 0);
  CHECK(*FindRowTable(one, spec, "features", "app") == 0);
  CHECK(*FindRowTable(one, spec, "dense", "app") == 1);
  CHECK(Refused(FindRowTable(one, spec, "apps", "").status()) ==
        "no table 'apps'; the model has features and dense");
  ModelTables two = one;
  two.tables[0].name = "sites";
  two.tables.emplace_back().name = "apps";
  two.field_tables = {0, 2};
  CHECK(*FindRowTable(two, spec, "", "app") == 2);
  CHECK(*FindRowTable(two, spec, "", "site") == 0);
  CHECK(*FindRowTable(two, spec, "apps", "") == 2);
  CHECK(*FindRowTable(two, spec, "apps", "app") == 2);
  CHECK(*FindRowTable(two, spec, "dense", "") == 1);
  CHECK(Refused(FindRowTable(two, spec, "", "").status()) ==
        "get-row: name the row's --table; the model has sites and dense and apps");
  CHECK(Refused(FindRowTable(two, spec, "sites", "app").status()) ==
        "field app is of table apps, not of sites");
}

TEST_CASE("columns of csv are fields, by name or by number", "[get-row]") {
  JobSpec spec;
  spec.mutable_data()->set_format("csv");
  spec.mutable_data()->mutable_columns()->add_categorical("site");
  spec.mutable_data()->mutable_columns()->add_categorical("app");
  spec.mutable_data()->mutable_columns()->add_multi_valued()->set_column("tags");
  CHECK(KeyOfCategory(spec, "app", "x")->field == 1);
  CHECK(KeyOfCategory(spec, "tags", "x")->field == 2);
  CHECK(KeyOfCategory(spec, "1", "x")->name == "app");
  CHECK(Refused(KeyOfCategory(spec, "3", "x").status()).find("site, app, tags") !=
        std::string::npos);
  // A missing one has a row there, and a column may have several.
  CHECK(KeyOfCategory(spec, "tags", "")->key.value == FeatureKey(NamedFieldSeed(0, "tags"), ""));
  CHECK(Refused(KeyOfCategory(spec, "tags", "x|y").status()).find("is 2 values") !=
        std::string::npos);
  // By the column's name, wherever it stands in the list; as tests/worker/data/formats pins it.
  spec.mutable_data()->mutable_columns()->add_categorical("C1");
  CHECK(KeyOfCategory(spec, "C1", "68fd1e64")->key.value == 0x83ad16dd6cdc9ae9ull);
}

TEST_CASE("a name goes before a column, and a column before a number", "[get-row]") {
  JobSpec spec;
  spec.mutable_data()->set_format("csv");
  ColumnsSpec& columns = *spec.mutable_data()->mutable_columns();
  columns.set_header(false);
  for (const char* c : {"2", "1", "4"}) columns.add_categorical(c);
  const auto key = [&](const char* field) { return KeyOfCategory(spec, field, "x"); };
  CHECK(key("2")->name == "2");
  CHECK(key("2")->key.value == FeatureKey(NamedFieldSeed(0, "2"), "x"));
  CHECK(key("4")->field == 2);
  // The first field is no other way to column 2.
  CHECK(Refused(key("0").status()) == "--field 0 is no field of the job's data; there are 2, 1, 4");
  // A header may name columns by numbers, too.
  columns.set_header(true);
  columns.set_categorical(2, "city");
  CHECK(key("1")->field == 1);
  CHECK(Refused(key("0").status()).find("is no field") != std::string::npos);
  spec.mutable_data()->clear_columns();
  const auto add = [&](const char* name, const char* column) {
    FieldConfig* field = spec.add_fields();
    field->set_name(name);
    field->set_column(column);
    field->set_kind("categorical");
  };
  add("user", "2");
  add("1", "3");
  add("item", "1");
  CHECK(key("2")->name == "user");
  CHECK(key("1")->name == "1");  // by its name, though it reads column 3
  CHECK(key("3")->name == "1");
  CHECK(Refused(key("0").status()).find("there are user, 1, item") != std::string::npos);
  add("again", "2");
  CHECK(Refused(key("2").status()) ==
        "--field 2 is a column that several fields read; name one: user, again");
}

TEST_CASE("fields of libffm have numbers, and names where the job gives them", "[get-row]") {
  JobSpec spec;
  spec.mutable_data()->set_format("libffm");
  const auto key = [&](const char* field, const char* value) {
    return KeyOfCategory(spec, field, value, 3);
  };
  REQUIRE(key("2", "17").ok());
  CHECK((key("2", "17")->field == 2 && key("2", "17")->key == Key(17)));
  CHECK_FALSE(key("2", "17")->is_hashed);
  CHECK(key("2", "0xffffffffffffffff")->key == Key(~uint64_t{0}));
  CHECK(Refused(key("3", "17").status()) ==
        "--field 3 is no field of the job's data; there are 0, 1, 2");
  CHECK(Refused(key("2", "x").status()).find("--value 'x' is not a whole number") == 0);
  for (const char* column : {"1", "0"}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(std::string("field of ") + column);
    field.set_column(column);
    field.set_kind("multiValued");
  }
  CHECK(key("field of 1", "17")->field == 1);
  CHECK(key("field of 0", "17")->field == 0);
  CHECK(key("1", "17")->name == "field of 1");
  CHECK(key("2", "17")->name == "2");
  CHECK(Refused(key("user", "17").status()).find("field of 0, field of 1, 2") != std::string::npos);
  // The table is that of the field.
  ModelTables tables;
  tables.fields = 3;
  tables.tables.resize(3);
  tables.tables[0].name = "a";
  tables.tables[1].name = "dense";
  tables.tables[2].name = "b";
  tables.field_tables = {2, 0, 2};
  CHECK(*FindRowTable(tables, spec, "", "field of 0") == 2);
  CHECK(*FindRowTable(tables, spec, "", "1") == 0);
  CHECK(Refused(FindRowTable(tables, spec, "a", "2").status()) ==
        "field 2 is of table b, not of a");
}

TEST_CASE("fields that are none are told", "[get-row]") {
  CHECK(Refused(KeyOfCategory(Criteo("dense"), "I3", "4").status()).find("is a number") !=
        std::string::npos);
  CHECK(Refused(KeyOfCategory(Criteo("bucket"), "I3", "four").status()).find("four") !=
        std::string::npos);
  CHECK(Refused(KeyOfCategory(Criteo("dense"), "C27", "a").status()).find("C26") !=
        std::string::npos);
  JobSpec libfm;
  libfm.mutable_data()->set_format("libfm");
  CHECK(Refused(KeyOfCategory(libfm, "0", "a").status()).find("--key") != std::string::npos);
}

TEST_CASE("rows of tensors", "[get-row]") {
  TableSpec table;
  table.name = "dense";
  table.kind = TableKind::kDense;
  table.segments.emplace_back();
  table.segments[0].dim = 4;
  table.tensors.emplace_back();
  table.tensors[0].name = "w";
  table.tensors[0].elements = 6;
  table.tensors[0].first = Position(100);
  CHECK(TensorRowOf(table, Key(100))->elements == 4);
  CHECK(TensorRowOf(table, Key(101))->elements == 2);
  CHECK(TensorRowOf(table, Key(101))->first_element == 4);
  for (uint64_t none : {uint64_t{0}, uint64_t{99}, uint64_t{102}, ~uint64_t{0}}) {
    CHECK(Refused(TensorRowOf(table, Key(none)).status()).find("w 100 to 101") !=
          std::string::npos);
  }
}

TEST_CASE("a row as text and as JSON", "[get-row]") {
  RowReport row;
  row.table = "features";
  row.key = Key(~uint64_t{0});
  row.checkpoint = "ck/step-7";
  row.segments = {{{"weight", {0.1f}}, {{"m", {2.0f}}}}};
  CHECK(RowText(row).find("no row: reads as its initial value\n") != std::string::npos);
  CHECK(RowText(row).find("weight: 0.100000001\n  m: 2\n") != std::string::npos);
  const Json json = Json::parse(RowJson(row));
  CHECK(json["key"] == "18446744073709551615");
  CHECK(json["exists"] == false);
  CHECK(json["segments"][0]["weights"][0].get<float>() == 0.1f);
  CHECK(json["segments"][0]["state"]["m"][0] == 2.0);
  row.checkpoint.clear();
  row.server = "server-1";
  row.clock = 12;
  CHECK(RowText(row).find("server server-1, shard 0, clock 12\n") != std::string::npos);
  CHECK(Json::parse(RowJson(row))["clock"] == 12);
}

}  // namespace
}  // namespace strata
