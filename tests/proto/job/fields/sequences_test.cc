#include "proto/job/fields/sequences.h"

#include <catch2/catch.hpp>
#include <initializer_list>
#include <string>

#include "proto/job/job_spec.h"
#include "tests/proto/job/din_job.h"

namespace strata {
namespace {

TrainingJob Job(std::initializer_list<DinField> fields) {
  return DinJob({"item", "user"}, fields, 7);
}

std::string ProblemOf(TrainingJob job) {
  const absl::Status status = ResolveJob(job);
  return status.ok() ? "OK" : std::string(status.message());
}

TEST_CASE("a sequence is weighed by the one categorical field of its table", "[sequences]") {
  TrainingJob job = Job({{"clicks", "sequence", "item"},
                         {"user", "categorical", "user"},
                         {"price", "numeric", ""},
                         {"item", "categorical", "item"},
                         {"others", "multiValued", "item"},
                         {"carts", "sequence", "item"}});
  REQUIRE(ProblemOf(job) == "OK");
  REQUIRE(ResolveJob(job).ok());
  const auto sequences = SequencesOf(job.spec(), 0);
  REQUIRE(sequences.ok());
  REQUIRE(sequences->size() == 2);
  CHECK((*sequences)[0].name == "clicks");
  CHECK((*sequences)[0].field == 0);
  CHECK((*sequences)[0].max_length == 7);
  CHECK((*sequences)[0].target == 2);  // numbers are not counted
  CHECK((*sequences)[1].name == "carts");
  CHECK((*sequences)[1].field == 4);
  CHECK((*sequences)[1].target == 2);
}

TEST_CASE("a sequence without a target, or with two, is refused by name", "[sequences]") {
  CHECK(ProblemOf(Job({{"clicks", "sequence", "item"}, {"user", "categorical", "user"}})) ==
        "spec.fields: sequence 'clicks' has its rows in table item, and no categorical field has; "
        "din weighs a sequence by the one that does: give that table the field of the item that is "
        "judged");
  CHECK(ProblemOf(Job({{"clicks", "sequence", "item"},
                       {"user", "categorical", "user"},
                       {"item", "categorical", "item"},
                       {"other", "categorical", "item"}})) ==
        "spec.fields: sequence 'clicks' has its rows in table item, and so have item, other; din "
        "weighs a sequence by one field: give the others a table of their own");
  // Without sequences din is its layers alone.
  CHECK(ProblemOf(Job({{"item", "categorical", "item"}, {"user", "categorical", "user"}})) == "OK");
}

TEST_CASE("a sequence whose values have no rows in common with its target is refused",
          "[sequences]") {
  const auto problem = [](auto change) {
    TrainingJob job = Job({{"clicks", "sequence", "item"},
                           {"user", "categorical", "user"},
                           {"item", "categorical", "item"}});
    change(*job.mutable_spec());
    return ProblemOf(job);
  };
  CHECK(problem([](JobSpec&) {}) == "OK");
  CHECK(problem([](JobSpec& s) { s.mutable_fields(0)->set_hash_seed(7); }) ==
        "spec.fields: sequence 'clicks' and field 'item', which din weighs it by, share table item "
        "but no rows: their hashSeed differ; give both the same");
  CHECK(problem([](JobSpec& s) { s.mutable_fields(2)->mutable_vocabulary()->set_file("/v"); }) ==
        "spec.fields: sequence 'clicks' and field 'item', which din weighs it by, share table item "
        "but no rows: their vocabulary differ; give both the same");
  CHECK(
      problem([](JobSpec& s) {
        s.clear_tables();
        for (FieldConfig& f : *s.mutable_fields()) f.clear_table();
      }) ==
      "spec.fields: sequence 'clicks' shares no rows with the item that din weighs it by: without "
      "spec.tables each field has rows of its own; name a table for both");
}

TEST_CASE("other models read no sequences", "[sequences]") {
  TrainingJob job = Job({{"clicks", "sequence", "item"}, {"user", "categorical", "user"}});
  job.mutable_spec()->mutable_model()->set_type("mmoe");
  CHECK(ProblemOf(job) ==
        "spec.fields[0].kind: field 'clicks' is a sequence, and model type mmoe reads none; take "
        "kind multiValued, which is pooled");
}

TEST_CASE("attention has its layers where there is a sequence", "[sequences]") {
  const TrainingJob with = Job({{"clicks", "sequence", "item"},
                                {"item", "categorical", "item"},
                                {"user", "categorical", "user"}});
  TrainingJob job = with;
  REQUIRE(ResolveJob(job).ok());
  REQUIRE(job.spec().model().attention_hidden_size() == 1);
  CHECK(job.spec().model().attention_hidden(0) == 36);
  CHECK(NothingToAttend(job.spec()).empty());
  TrainingJob again = job;
  REQUIRE(ResolveJob(again).ok());
  CHECK(again.SerializeAsString() == job.SerializeAsString());
  job = with;
  job.mutable_spec()->mutable_model()->add_attention_hidden(16385);
  CHECK(ProblemOf(job) ==
        "spec.model.attentionHidden[0]: 16385 is outside the limits; give a number from 1 to "
        "16384");
}

TEST_CASE("a din without a sequence is a perceptron, and that is said", "[sequences]") {
  TrainingJob job = Job({{"clicks", "multiValued", "item"}, {"user", "categorical", "user"}});
  REQUIRE(ResolveJob(job).ok());
  CHECK(job.spec().model().attention_hidden().empty());
  CHECK(NothingToAttend(job.spec()) ==
        "spec.model.type: din weighs sequences by the item, and the job has none, so it is a "
        "perceptron over its fields; give the history a field of kind sequence in spec.fields");
  TrainingJob again = job;
  REQUIRE(ResolveJob(again).ok());
  CHECK(again.SerializeAsString() == job.SerializeAsString());
  job.mutable_spec()->mutable_model()->set_type("deepfm");
  CHECK(NothingToAttend(job.spec()).empty());
}

}  // namespace
}  // namespace strata
