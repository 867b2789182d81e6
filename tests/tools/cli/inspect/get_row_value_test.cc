// What the text of a column stands for: the key, what of the text has it, a bucket's bounds.
#include <catch2/catch.hpp>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/temp_folder.h"
#include "tests/tools/cli/inspect/refused.h"
#include "tools/cli/inspect/get_row_key.h"
#include "tools/cli/inspect/get_row_text.h"
#include "worker/data/formats/feature_hash.h"

namespace strata {
namespace {

using Json = nlohmann::json;

FieldConfig* AddField(JobSpec& spec, const char* name, const char* kind) {
  FieldConfig* field = spec.add_fields();
  field->set_name(name);
  field->set_column(name);
  field->set_kind(kind);
  return field;
}

TEST_CASE("values of spec.fields have the keys that readers give them", "[get-row]") {
  const TempFolder folder;
  std::ofstream(folder.path() + "/items") << "i1\ni2\n";
  JobSpec spec;
  spec.mutable_data()->set_format("csv");
  const auto add = [&](const char* name, const char* kind) {
    FieldConfig* field = AddField(spec, name, kind);
    field->set_column(std::string("column of ") + name);
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
  // The bucket is told, with its bounds.
  CHECK(said("price", " 12.5 ") == "field 2 (price), \"12.5\" is in the bucket from 10 on");
  CHECK(said("price", "-3") == "field 2 (price), \"-3\" is in the bucket below 10");
  CHECK(said("price", "") == "field 2 (price), \"\" is the bucket of lines without a number");
  bucket->add_bounds(1e16);
  CHECK(said("price", "10") == "field 2 (price), \"10\" is in the bucket from 10 to below 1e+16");
  const auto json = [&](const char* value) {
    RowReport row;
    row.category = *KeyOfCategory(spec, "price", value);
    return Json::parse(RowJson(row));
  };
  CHECK(json("10")["bucket"] == Json{{"from", 10}, {"below", 1e16}});
  CHECK(json("1")["bucket"] == Json{{"from", nullptr}, {"below", 10}});
  CHECK(json("")["bucket"].is_null());
  CHECK_FALSE(json("10").contains("hashed"));
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
    FieldConfig* field = AddField(spec, name, kind);
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

TEST_CASE("of a column with separators the one value in it is told", "[get-row]") {
  const TempFolder folder;
  const std::string colours = folder.path() + "/colours";
  std::ofstream(colours) << "blue\nred\n";
  JobSpec spec;
  spec.mutable_data()->set_format("csv");
  const auto add = [&](const char* name, const char* kind) { return AddField(spec, name, kind); };
  add("tags", "multiValued")->set_weight_separator(":");
  add("colours", "multiValued")->mutable_vocabulary()->set_file(colours);
  spec.mutable_fields(1)->set_default_value("blue");
  add("newest", "sequence")->set_max_length(1);
  add("oldest", "sequence")->set_max_length(1);
  spec.mutable_fields(3)->set_truncate("newest");
  const auto check = [&](const char* field, const char* text, const char* value) {
    INFO(field << " " << text);
    const auto category = KeyOfCategory(spec, field, text);
    REQUIRE(category.ok());
    CHECK(category->hashed == value);
    CHECK(category->key == KeyOfCategory(spec, field, value)->key);
    return *category;
  };
  check("tags", "red|", "red");
  check("tags", "||red:0.5|", "red");
  CHECK(KeyOfCategory(spec, "tags", "a:b:2")->hashed == "a:b");
  CHECK(check("colours", "red|", "red").line == 2);
  CHECK(check("colours", "|", "blue").line == 1);
  CHECK_FALSE(check("colours", "red|", "red").is_hashed);
  check("newest", "x|y|", "y");
  check("oldest", "|x|y", "x");
}

TEST_CASE("a text is one value of a field, or is refused", "[get-row]") {
  JobSpec spec;
  spec.mutable_data()->set_format("csv");
  const auto add = [&](const char* name, const char* kind) { return AddField(spec, name, kind); };
  add("city", "categorical");
  add("tags", "multiValued")->set_weight_separator(":");
  add("seen", "sequence")->set_max_length(1);
  spec.mutable_fields(2)->set_separator(";");
  const auto check = [&](const char* field, const char* text) {
    const auto keys = FieldKeys::Make(spec, field);
    REQUIRE(keys.ok());
    return keys->CheckOneValue(text);
  };
  CHECK(check("city", "a|b:c").ok());
  CHECK(check("tags", "red").ok());
  CHECK(check("tags", "a:b:1").ok());
  CHECK(check("seen", "a|b").ok());
  for (const char* text : {"red|", "|red", "red|blue"}) {
    CHECK(Refused(check("tags", text)) ==
          std::string("value '") + text +
              "' of tags has the field's separator '|', at which training parts values, so no line "
              "has it; give one value");
  }
  CHECK(Refused(check("seen", "a;b")).find("separator ';'") != std::string::npos);
  CHECK(
      Refused(check("tags", "red:0.5")) ==
      "value 'red:0.5' of tags has a weight behind ':', and rows have none; leave it out, or make "
      "it 1");
}

TEST_CASE("values that a checkpoint's vocabulary did not have are out of it", "[get-row]") {
  const TempFolder folder;
  const std::string items = folder.path() + "/items";
  std::ofstream(items) << "i1\ni2\n";
  JobSpec spec;
  spec.mutable_data()->set_format("csv");
  for (const char* name : {"user", "item"}) AddField(spec, name, "categorical");
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

}  // namespace
}  // namespace strata
