// Vocabularies of a job's fields: compared with those of the checkpoint that it starts from, and
// remembered by its own checkpoints.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/cluster_state.h"
#include "scheduler/state/state.pb.h"
#include "tests/scheduler/job/recovery_cluster.h"

namespace strata::scheduler {
namespace {

// The job over csv with a vocabulary, whose name is its values (SimWorker).
void UseVocabulary(const std::string& values, ClusterState::Submission& s) {
  JobSpec& spec = *s.job.mutable_spec();
  DeepFm(s);
  spec.mutable_data()->set_format("csv");
  for (const char* name : {"item", "user", "shop"}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_column(name);
    field.set_kind("categorical");
    field.set_table("features");
  }
  spec.mutable_fields(0)->mutable_vocabulary()->set_file(values);
  spec.mutable_fields(0)->mutable_vocabulary()->set_out_of_vocabulary(1);
}

// The schema that such a job leaves.
Schema WithVocabulary(const std::string& values) {
  ClusterState::Submission s;
  s.job.mutable_spec()->mutable_storage()->set_partitions(16);
  UseVocabulary(values, s);
  Schema schema = SchemaFor(s.job.spec(), 3);
  schema.mutable_fields(0)->set_vocabulary(values);
  schema.mutable_fields(0)->set_vocabulary_values(values.size());
  return schema;
}

TEST_CASE("a job asks of its vocabularies what its checkpoint knows", "[scheduler][recovery]") {
  const std::string saved = GENERATE("abc", "acb", "abcde", "abcdef");
  const bool resume = GENERATE(false, true);
  INFO(saved << ", " << resume);
  RecoveryCluster cluster(1, 1, 0, [&](ClusterState::Submission& s) {
    UseVocabulary("abcde", s);
    if (!resume) {
      s.init_schema = WithVocabulary(saved);
      s.job.mutable_spec()->mutable_model()->mutable_init_from()->set_checkpoint("/old");
      return;
    }
    s.resume = true;
    s.resume_schema = WithVocabulary(saved);
    CheckpointRecord record;
    record.set_step(4);
    record.set_folder("/c/step-000000000004");
    s.complete = {record};
  });
  const bool begins = std::string("abcde").rfind(saved, 0) == 0;
  CHECK((cluster.job().state() == FAILED) == !begins);
  const std::string refused = cluster.Says("CheckpointDoesNotFit");
  CHECK(absl::StrContains(refused,
                          "field item: vocabulary file abcde does not begin with the 3 "
                          "values that the checkpoint knows") == (saved == "acb"));
  CHECK(absl::StrContains(refused,
                          "abcde has 5 values, and the checkpoint knows 6: line 6 is "
                          "missing") == (saved == "abcdef"));
  CHECK(absl::StrContains(cluster.Says(resume ? "ResumesFrom" : "StartsFrom"),
                          "field item (a vocabulary of 3 values, 5 now)") == (saved == "abc"));
}

TEST_CASE("a weight of lines that an earlier scheduler did not note is not compared",
          "[scheduler][recovery]") {
  const bool noted = GENERATE(false, true);
  INFO("noted " << noted);
  RecoveryCluster cluster(
      1, 1, 0,
      [](ClusterState::Submission& s) {
        UseVocabulary("abc", s);
        s.job.mutable_spec()->set_sample_weight("w");
        s.init_schema = WithVocabulary("abc");
        s.init_sample_weight = "w";
        s.job.mutable_spec()->mutable_model()->mutable_init_from()->set_checkpoint("/old");
      },
      /*stalls=*/true);
  REQUIRE(cluster.job().phase() == INDEXING);
  CHECK_FALSE(absl::StrContains(cluster.Says("StartsFrom"), "sampleWeight"));
  cluster.RestartWith([&](JobSpecRecord& record) {
    REQUIRE(record.init_sample_weight() == "w");
    if (noted) record.set_init_sample_weight("");
    if (!noted) record.clear_init_sample_weight();
  });
  cluster.FoundAgain({});
  CHECK((cluster.job().state() == FAILED) == noted);
  CHECK(absl::StrContains(cluster.Says("CheckpointDoesNotFit"),
                          "spec.sampleWeight was none, is w") == noted);
  CHECK(absl::EndsWith(cluster.Says("StartsFrom"),
                       "; not compared: spec.sampleWeight (an earlier version accepted the job)") ==
        !noted);
}

TEST_CASE("manifests say what the fields' vocabularies have", "[scheduler][recovery]") {
  RecoveryCluster cluster(1, 1, 0, [](ClusterState::Submission& s) { UseVocabulary("abcde", s); });
  cluster.Until([&] { return cluster.job().phase() == TRAINING; });
  // As the scheduler that comes after this one does, which did not see the index being made.
  cluster.RestartScheduler();
  cluster.Train(2);
  cluster.TakeCheckpoint();
  CHECK(cluster.manifest.schema().fields(0).vocabulary() == "abcde");
  CHECK(cluster.manifest.schema().fields(0).vocabulary_values() == 5);
  CHECK(cluster.manifest.schema().fields(1).vocabulary().empty());
}

TEST_CASE("a vocabulary that a later look would compare is told", "[scheduler][recovery]") {
  RecoveryCluster cluster(
      1, 1, 0,
      [](ClusterState::Submission& s) {
        UseVocabulary("abcde", s);
        s.resume = true;
      },
      /*stalls=*/true);
  REQUIRE(cluster.job().phase() == INDEXING);
  CheckpointRecord record;
  record.set_step(4);
  record.set_folder("/c/step-000000000004");
  cluster.FoundAgain({.complete = {record}, .resume_schema = WithVocabulary("abc")});
  CHECK(cluster.job().state() == FAILED);
  CHECK(absl::StrContains(cluster.Says("CheckpointDoesNotFit"),
                          "vocabulary file abcde has 5 values, and was not compared with the 3 of "
                          "a checkpoint that came since"));
}

}  // namespace
}  // namespace strata::scheduler
