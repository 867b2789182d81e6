// What becomes of the rows of a field that is new in its table.
#include "proto/job/schema/schema_readers.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>
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

struct Field {
  std::string name, table;
  std::string column = "", pooling = "";
};

// Of deepfm, whose tables are those of the fields.
JobSpec Job(const std::vector<Field>& fields, uint32_t dim = 4) {
  JobSpec spec;
  spec.mutable_data()->mutable_columns()->set_label("y");
  spec.mutable_model()->set_type("deepfm");
  spec.mutable_model()->add_hidden(8);
  for (const Field& f : fields) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(f.name);
    field.set_column(f.column);
    field.set_kind(f.pooling.empty() ? "categorical" : "multiValued");
    field.set_pooling(f.pooling);
    field.set_table(f.table);
    bool known = false;
    for (const TableConfig& table : spec.tables()) known |= table.name() == f.table;
    if (known) continue;
    TableConfig& table = *spec.add_tables();
    table.set_name(f.table);
    table.set_dim(dim);
  }
  return Resolved(spec);
}

Schema Of(const std::vector<Field>& fields, uint32_t dim = 4) { return SchemaOf(Job(fields, dim)); }

InitFromSpec Init(bool allow_new, bool allow_dropped, const Renames& rename = {}) {
  InitFromSpec init;
  init.set_new_tensors(allow_new ? "allow" : "refuse");
  init.set_dropped_tensors(allow_dropped ? "allow" : "refuse");
  for (const auto& [from, to] : rename) (*init.mutable_rename())[from] = to;
  return init;
}

std::string Problem(const Schema& saved, const Schema& now, const InitFromSpec& init) {
  const absl::Status s = CheckInitFrom(MapSchemas(saved, now, RenamesOf(init)), saved, now, init);
  return s.ok() ? "OK" : std::string(s.message());
}

std::string Text(const Schema& saved, const Schema& now, const Renames& rename = {}) {
  return MappingText(MapSchemas(saved, now, rename));
}

// Its rows began anew without a word, and those of equal values of another field were its own.
TEST_CASE("a field that moves to a table that stays is asked about", "[schema_readers]") {
  const Schema saved = Of({{"ad", "ads"}, {"item", "items"}});
  const Schema now = Of({{"ad", "items"}, {"item", "items"}});
  const std::string moved = "field ad from table ads to items: ";
  const std::string shared = moved + "equal values have the rows of field item, others begin anew";
  CHECK(Problem(saved, now, Init(false, true)) ==
        shared + "; allow it with spec.model.initFrom.newTensors: allow");
  CHECK(Problem(saved, now, Init(true, true)) == "OK");
  CHECK(absl::StrContains(Text(saved, now), "; moved: " + shared));
  CHECK(absl::StrContains(Text(saved, now), "loaded: table items, "));
  // Rows of that table are there, also where their field is not.
  CHECK(absl::StrContains(Text(saved, Of({{"ad", "items"}})), "; moved: " + shared));
  // A table that is new is asked about itself.
  const Schema anew = Of({{"ad", "others"}, {"item", "items"}});
  CHECK(absl::StrContains(Text(saved, anew), "; rows anew: field ad"));
  CHECK(absl::StartsWith(Problem(saved, anew, Init(false, true)), "table others "));
}

TEST_CASE("a field whose table has the rows of another one is asked about", "[schema_readers]") {
  Schema schema = Of({{"ad", "ads"}, {"item", "items"}});
  for (SchemaField& f : *schema.mutable_fields()) f.set_keys("value");
  const Renames rename = {{"ads", ""}, {"items", "ads"}};
  CHECK(absl::StrContains(Text(schema, schema, rename),
                          "; moved: field ad from table ads to ads, which was items: equal values "
                          "have the rows of field item, others begin anew"));
  CHECK(absl::StrContains(Problem(schema, schema, Init(false, true, rename)),
                          "others begin anew; allow it with spec.model.initFrom.newTensors"));
}

TEST_CASE("a field that moves has rows of others where they have its keys", "[schema_readers]") {
  const Schema saved = Of({{"ad", "ads"}, {"item", "items"}, {"seen", "items"}});
  const Schema now = Of({{"ad", "items"}, {"item", "items"}, {"seen", "items"}});
  const auto text = [&](const auto& change) {
    Schema from = saved, to = now;
    for (Schema* schema : {&from, &to}) change(*schema);
    const std::string all = Text(from, to);
    const size_t at = all.find("moved: field ad from table ads to items: ");
    return at == std::string::npos ? all : all.substr(all.find(": ", at + 7) + 2);
  };
  const std::string none = "its rows begin anew";
  CHECK(text([](Schema&) {}) ==
        "equal values have the rows of fields item, seen, others begin anew");
  CHECK(text([](Schema& s) { s.mutable_fields(0)->set_hash_seed(9); }) == none);
  CHECK(text([](Schema& s) { s.mutable_fields(1)->set_hash_seed(9); }) ==
        "equal values have the rows of field seen, others begin anew");
  // Lines of a vocabulary, and buckets of a number, are no values of others.
  CHECK(text([](Schema& s) { s.mutable_fields(0)->set_out_of_vocabulary(1); }) == none);
  CHECK(text([](Schema& s) { s.mutable_fields(0)->mutable_transform()->set_type("bucketise"); }) ==
        none);
  CHECK(text([](Schema& s) {
          for (SchemaField& f : *s.mutable_fields()) f.set_out_of_vocabulary(1);
        }) == "equal values have the rows of fields item, seen, others begin anew");
  // Of libffm the values are the keys; of criteo places are hashed.
  const auto keys = [](const char* by) {
    return [by](Schema& s) {
      for (SchemaField& f : *s.mutable_fields()) f.set_keys(by);
    };
  };
  CHECK(text(keys("value")) ==
        "equal values have the rows of fields item, seen, others begin anew");
  CHECK(text(keys("place")) == none);
}

TEST_CASE("a new field of a table is said to have the rows of equal values", "[schema_readers]") {
  const Schema saved = Of({{"item", "items"}, {"user", "users"}});
  Schema now = Of({{"item", "items"}, {"user", "users"}, {"bought", "items"}});
  const std::string with_rows = "field bought (equal values have the rows of field item)";
  CHECK(absl::StrContains(Text(saved, now), "; new: " + with_rows + "; "));
  CHECK(absl::StrContains(Problem(saved, now, Init(false, true)),
                          with_rows + ": the checkpoint has none; allow it with "));
  for (SchemaField& f : *now.mutable_fields()) {
    if (f.name() == "bought") f.set_hash_seed(9);
  }
  CHECK(absl::StrContains(Text(saved, now), "; new: field bought; "));
  // Where the table begins anew there are none.
  CHECK(absl::StrContains(Text(saved, saved, {{"items", ""}}), "; rows anew: field item"));
}

// Its rows were those of a table that is not loaded.
TEST_CASE("a field of another name is not compared with rows that are not loaded",
          "[schema_readers]") {
  const Schema saved = Of({{"user", "users"}, {"tags", "words", "words", "sum"}});
  const Schema mean = Of({{"user", "users"}, {"topics", "words", "words", "mean"}}, 8);
  CHECK(Problem(saved, mean, Init(true, true)) == "OK");
  CHECK(absl::StrContains(Text(saved, mean), "; new: field topics; "));
  CHECK(absl::StrContains(Text(saved, mean), "field tags; other shape: "));
  // With the table they are its rows.
  CHECK(absl::StartsWith(
      Problem(saved, Of({{"user", "users"}, {"topics", "words", "words", "mean"}}),
              Init(true, true)),
      "field topics: it would have the rows of the checkpoint's field tags, and pooling was sum"));
  // So it begins anew without more than its own name.
  const Schema same = Of({{"user", "users"}, {"tags", "words", "words", "mean"}}, 8);
  CHECK(
      absl::StrContains(Problem(saved, same, Init(true, true)),
                        "let the field begin anew with spec.model.initFrom.rename: {tags: \"\"}"));
  CHECK(Problem(saved, same, Init(true, true, {{"tags", ""}})) == "OK");
}

// Each was compared with each of the checkpoint: it took minutes, and the scheduler's lock with it.
TEST_CASE("as many new fields of vocabularies as there may be are compared in no time",
          "[schema_readers]") {
  const auto schema = [](const std::string& name, const char* keys) {
    Schema out = Of({{"item", "items"}});
    const SchemaField item = out.fields(0);
    out.clear_fields();
    for (int i = 0; i < 65536; ++i) {
      SchemaField& field = *out.add_fields() = item;
      field.set_name(absl::StrCat(name, i));
      field.set_column(field.name());
      field.set_keys(keys);
      field.set_out_of_vocabulary(1);
      field.set_vocabulary("v");
      field.set_vocabulary_values(2);
    }
    return out;
  };
  const std::string by_column = Text(schema("a", "column"), schema("b", "column"));
  CHECK(absl::StrContains(by_column, "new: field b0, field b1, "));
  CHECK(absl::StrContains(by_column, "dropped: field a0, field a1, "));
  // All of them have the lines of one another, and are told so by the first twenty.
  const std::string by_table = Text(schema("a", "table"), schema("b", "table"));
  CHECK(
      absl::StrContains(by_table, "new: field b0 (equal values have the rows of fields a0, a1, "));
  CHECK(absl::StrContains(by_table, "a19 and 65516 more), field b1 "));
}

TEST_CASE("values of a number are not its buckets", "[schema_readers]") {
  JobSpec spec = Job({{"user", "rows"}, {"cost", "rows", "price"}});
  const Schema now = SchemaOf(spec);
  spec.mutable_fields(1)->set_name("price");
  spec.mutable_fields(1)->set_kind("numeric");
  spec.mutable_fields(1)->mutable_transform()->set_type("bucketise");
  spec.mutable_fields(1)->mutable_transform()->add_bounds(2);
  const Schema saved = SchemaOf(Resolved(spec));
  CHECK(Problem(saved, now, Init(true, true)) == "OK");
  CHECK(absl::StrContains(Text(saved, now),
                          "; new: field cost (equal values have the rows of field user); "));
}

}  // namespace
}  // namespace strata
