#include <catch2/catch.hpp>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/temp_folder.h"
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

std::string Refused(const absl::Status& status) {
  CHECK(absl::IsInvalidArgument(status));
  return std::string(status.message());
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

TEST_CASE("values of spec.fields have the keys that readers give them", "[get-row]") {
  const TempFolder folder;
  std::ofstream(folder.path() + "/items") << "i1\ni2\n";
  JobSpec spec;
  spec.mutable_data()->set_format("csv");
  const auto add = [&](const char* name, const char* kind) {
    FieldConfig* field = spec.add_fields();
    field->set_name(name);
    field->set_column(std::string("column of ") + name);
    field->set_kind(kind);
    return field;
  };
  add("user", "categorical")->set_hash_seed(4);
  add("item", "categorical")->mutable_vocabulary()->set_file(folder.path() + "/items");
  TransformConfig* bucket = add("price", "numeric")->mutable_transform();
  bucket->set_type("bucketise");
  bucket->add_bounds(10);
  const auto key = [&](const char* field, const char* value) {
    return KeyOfCategory(spec, field, value)->key;
  };
  CHECK(key("user", "u").value == FeatureKey(NamedFieldSeed(4, "column of user"), "u"));
  CHECK(key("item", "i2").value == VocabularyKey(NamedFieldSeed(0, "column of item"), 2));
  const auto said = [&](const char* field, const char* value) {
    RowReport row;
    row.category = *KeyOfCategory(spec, field, value);
    const std::string text = RowText(row);
    const size_t at = text.find("field ");
    return text.substr(at, text.find('\n', at) - at);
  };
  CHECK(said("item", "i2") == "field 1 (item), \"i2\" is value 2 of the vocabulary");
  CHECK(said("item", "i9") ==
        "field 1 (item), \"i9\" is out of the vocabulary, and hashed: other values that are have "
        "this row, too");
  CHECK(said("item", "") == "field 1 (item)");
  CHECK(said("user", "u") == "field 0 (user), \"u\" is hashed");
  const uint64_t price = NamedFieldSeed(0, "column of price");
  CHECK(key("price", "12.5").value ==
        BucketKey(price, 10, std::numeric_limits<double>::infinity()));
  CHECK(key("price", "").value == MissingBucketKey(price));
  CHECK(Refused(KeyOfCategory(spec, "price", "dear").status()) ==
        "--value 'dear' of price: column column of price: \"dear\" is not a finite number");
}

TEST_CASE("a value has the row that training gives to a column with that text", "[get-row]") {
  const TempFolder folder;
  const std::string items = folder.path() + "/items";
  std::ofstream(items) << "i1\nnone\n";
  JobSpec spec;
  spec.mutable_data()->set_format("csv");
  const auto add = [&](const char* name, const char* kind, const char* default_value = nullptr) {
    FieldConfig* field = spec.add_fields();
    field->set_name(name);
    field->set_column(name);
    field->set_kind(kind);
    if (default_value != nullptr) field->set_default_value(default_value);
    return field;
  };
  add("user", "categorical", "nobody");
  add("city", "categorical");
  add("item", "categorical", "none")->mutable_vocabulary()->set_file(items);
  add("shop", "categorical", "elsewhere")->mutable_vocabulary()->set_file(items);
  TransformConfig* bucket = add("price", "numeric", "7")->mutable_transform();
  bucket->set_type("bucketise");
  bucket->add_bounds(10);
  add("tags", "multiValued", "a")->set_weight_separator(":");
  add("seen", "sequence")->set_max_length(3);
  const auto key = [&](const char* field, const char* value) {
    const auto category = KeyOfCategory(spec, field, value);
    INFO(category.status());
    REQUIRE(category.ok());
    return *category;
  };
  // Without a value it is that of the field's default.
  CHECK(key("user", "").key.value == FeatureKey(NamedFieldSeed(0, "user"), "nobody"));
  CHECK(key("user", "").hashed == "nobody");
  CHECK(key("city", "").key.value == FeatureKey(NamedFieldSeed(0, "city"), ""));
  CHECK(key("item", "").key.value == VocabularyKey(NamedFieldSeed(0, "item"), 2));
  CHECK_FALSE(key("item", "").is_shared);
  const double infinity = std::numeric_limits<double>::infinity();
  const uint64_t below_ten = BucketKey(NamedFieldSeed(0, "price"), -infinity, 10);
  CHECK(key("price", "").key.value == below_ten);
  CHECK(key("price", " ").key.value == below_ten);
  CHECK(key("price", " 3 ").key.value == below_ten);
  CHECK(key("tags", "").key.value == FeatureKey(NamedFieldSeed(0, "tags"), "a"));
  // Values out of a vocabulary share rows.
  CHECK(key("item", "i7").is_shared);
  CHECK(key("item", "i7").key.value ==
        VocabularyKey(NamedFieldSeed(0, "item"), kLastVocabularyKey));
  CHECK_FALSE(key("item", "i1").is_shared);
  CHECK(key("shop", "").is_shared);
  CHECK_FALSE(key("user", "i7").is_shared);
  // A column may become none, or several.
  CHECK(key("tags", "b:0.5").key.value == FeatureKey(NamedFieldSeed(0, "tags"), "b"));
  CHECK(key("tags", "b:0.5").hashed == "b");
  CHECK(Refused(KeyOfCategory(spec, "tags", "a|b").status()) ==
        "--value 'a|b' of tags is 2 values; name one of them");
  CHECK(Refused(KeyOfCategory(spec, "seen", "").status()) ==
        "--value '' of seen: a line without a value has no row of this field, which has no "
        "defaultValue; name a value");
  CHECK(key("seen", "x").key.value == FeatureKey(NamedFieldSeed(0, "seen"), "x"));
}

TEST_CASE("values that a checkpoint's vocabulary did not have are out of it", "[get-row]") {
  const TempFolder folder;
  const std::string items = folder.path() + "/items";
  std::ofstream(items) << "i1\ni2\n";
  JobSpec spec;
  spec.mutable_data()->set_format("csv");
  for (const char* name : {"user", "item"}) {
    spec.add_fields()->set_name(name);
    spec.mutable_fields()->rbegin()->set_column(name);
    spec.mutable_fields()->rbegin()->set_kind("categorical");
  }
  spec.mutable_fields(1)->mutable_vocabulary()->set_file(items);
  Schema saved;
  saved.add_fields()->set_name("item");
  const auto keys = FieldKeys::Make(spec, "item");
  REQUIRE(keys.ok());
  DescribeVocabularies(spec, keys->vocabularies(), &saved);
  REQUIRE(saved.fields(0).vocabulary_values() == 2);
  const auto key = [&](const Schema* of, const char* field, const char* value) {
    return KeyOfCategory(spec, field, value, 0, of);
  };
  const Key bucket = key(&saved, "item", "i3")->key;
  std::ofstream(items) << "i1\ni2\ni3\n";
  CHECK(key(&saved, "item", "i3")->key == bucket);
  CHECK(key(nullptr, "item", "i3")->key.value == VocabularyKey(NamedFieldSeed(0, "item"), 3));
  std::ofstream(items) << "i2\ni1\n";
  CHECK(absl::IsFailedPrecondition(key(&saved, "item", "i1").status()));
  // Of no matter to other fields.
  CHECK(key(&saved, "user", "u").ok());
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
