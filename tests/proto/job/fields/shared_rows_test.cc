#include "proto/job/fields/shared_rows.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/job/job_spec.h"
#include "proto/strata/job.pb.h"

namespace strata {
namespace {

// Of deepfm over categories of table items, and a user in a table of its own.
TrainingJob Job() {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("j");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("csv");
  spec.mutable_data()->add_train("/a");
  spec.mutable_data()->mutable_columns()->set_label("y");
  spec.mutable_model()->set_type("deepfm");
  for (const char* name : {"items", "user"}) {
    TableConfig& table = *spec.add_tables();
    table.set_name(name);
    table.set_dim(4);
  }
  for (const char* name : {"item", "bought", "seen", "user"}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_kind(field.name() == "bought" ? "multiValued" : "categorical");
    field.set_table(field.name() == "user" ? "user" : "items");
  }
  return job;
}

template <typename Change>
std::string Warning(const Change& change) {
  TrainingJob job = Job();
  change(*job.mutable_spec());
  const absl::Status resolved = ResolveJob(job);
  INFO(resolved);
  REQUIRE(resolved.ok());
  return NoSharedRows(job.spec());
}

void AddVocabulary(JobSpec& spec, int field, const char* file = "/items.txt") {
  spec.mutable_fields(field)->mutable_vocabulary()->set_file(file);
}

TEST_CASE("fields of one table that share no rows are warned of", "[shared_rows]") {
  CHECK(Warning([](JobSpec&) {}).empty());
  CHECK(Warning([](JobSpec& s) { AddVocabulary(s, 1); }) ==
        "spec.fields: fields 'item' and 'bought' have their rows in table items and share none, as "
        "only 'bought' has a vocabulary: an equal value has two rows; give both the same, or each "
        "a table of its own");
  const std::string both = Warning([](JobSpec& s) { AddVocabulary(s, 0); });
  CHECK(absl::StrContains(both, "as only 'item' has a vocabulary: "));
  CHECK(absl::EndsWith(both, " (and so of 1 more field)"));
  CHECK(Warning([](JobSpec& s) { s.mutable_fields(2)->set_hash_seed(9); }) ==
        "spec.fields: fields 'item' and 'seen' have their rows in table items and share none, as "
        "their hashSeed is 0 and 9: an equal value has two rows; give both the same, or each a "
        "table of its own");
  CHECK(Warning([](JobSpec& s) {
          for (const int field : {0, 1, 2}) AddVocabulary(s, field);
        }).empty());
  // The user shares no table with them.
  CHECK(Warning([](JobSpec& s) {
          AddVocabulary(s, 3);
          s.mutable_fields(3)->set_hash_seed(9);
        }).empty());
}

TEST_CASE("fields that are to have no rows in common are not warned of", "[shared_rows]") {
  // Two vocabularies in one table must have seeds of their own.
  CHECK(Warning([](JobSpec& s) {
          s.mutable_fields()->DeleteSubrange(2, 1);
          AddVocabulary(s, 0);
          AddVocabulary(s, 1, "/others.txt");
          s.mutable_fields(1)->set_hash_seed(9);
        }).empty());
  // Buckets are values of no other field, whatever these have.
  CHECK(Warning([](JobSpec& s) {
          for (const int field : {0, 1, 2}) AddVocabulary(s, field);
          FieldConfig& price = *s.add_fields();
          price.set_name("price");
          price.set_kind("numeric");
          price.set_table("items");
          price.mutable_transform()->set_type("bucketise");
          price.mutable_transform()->add_bounds(2);
        }).empty());
  // Without spec.tables every column has keys of its own.
  CHECK(Warning([](JobSpec& s) {
          s.clear_tables();
          for (FieldConfig& f : *s.mutable_fields()) f.clear_table();
          AddVocabulary(s, 1);
        }).empty());
}

TEST_CASE("a warning is one line, whatever names hold", "[shared_rows]") {
  TrainingJob job = Job();
  AddVocabulary(*job.mutable_spec(), 1);
  job.mutable_spec()->mutable_fields(0)->set_name("it\nem");
  CHECK(absl::StrContains(NoSharedRows(job.spec()), "fields 'it\\nem' and 'bought' have"));
}

}  // namespace
}  // namespace strata
