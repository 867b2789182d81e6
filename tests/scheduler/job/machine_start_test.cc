// What a job starts from is compared with it when its data are known: the model of a checkpoint,
// and the files that it had read. What manifests say, and of which jobs users are warned.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/cluster_state.h"
#include "scheduler/state/start.h"
#include "tests/scheduler/job/recovery_cluster.h"

namespace strata::scheduler {
namespace {

constexpr uint64_t kSteps = RecoveryCluster::kSteps;

TEST_CASE("what a job starts from is compared with it again when its data are known",
          "[scheduler][recovery]") {
  const uint32_t fields = GENERATE(2u, 3u);
  const bool allow = GENERATE(false, true);
  INFO(fields << " fields before, " << allow);
  RecoveryCluster cluster(1, 1, 0, [&](ClusterState::Submission& s) {
    s.init_schema = SchemaFor(DeepFm(s), fields);
    s.init.emplace().set_model_hash(std::string(32, '6'));
    InitFromSpec& init = *s.job.mutable_spec()->mutable_model()->mutable_init_from();
    init.set_checkpoint("/old");
    if (!allow) return;
    init.set_new_tensors("allow");
    init.set_dropped_tensors("allow");
    s.init_sample_weight = "w";
  });
  if (fields == 2 && !allow) {
    CHECK(cluster.job().state() == FAILED);
    CHECK(cluster.Says("CheckpointDoesNotFit") ==
          "spec.model.initFrom /old does not fit the job:\n"
          "  tensor layer_0_weight was (8, 8), is (12, 8); let it begin anew with "
          "spec.model.initFrom.newTensors: allow and droppedTensors: allow");
    return;
  }
  CHECK(cluster.job().phase() == OPENING);
  CHECK(cluster.job().restore_from() == "/old");
  CHECK(absl::StartsWith(cluster.Says("StartsFrom"),
                         "spec.model.initFrom /old: loaded: table features, tensor bias, "));
  CHECK(absl::StrContains(cluster.Says("StartsFrom"),
                          "; other shape: tensor layer_0_weight was (8, 8), is (12, 8)") ==
        (fields == 2));
  CHECK(absl::EndsWith(cluster.Says("StartsFrom"), "; changed: spec.sampleWeight was w, is none") ==
        allow);
  // What is to be read does not get lost with the scheduler.
  const auto plan = [&cluster] {
    const NodeDirective directive = cluster.Directive("s0");
    REQUIRE(directive.server_jobs_size() == 1);
    return directive.server_jobs(0).restore_plan();
  };
  CHECK(plan().checkpoint().model_hash() == std::string(32, '6'));
  CHECK(plan().tables_size() == 1);
  CHECK(plan().tensors_size() == (fields == 2 ? 4 : 5));
  const std::string before = plan().SerializeAsString();
  cluster.RestartScheduler();
  CHECK(plan().SerializeAsString() == before);
}

TEST_CASE("a job is warned of an output layer from above another number of layers",
          "[scheduler][recovery]") {
  const bool other = GENERATE(false, true);
  RecoveryCluster cluster(1, 1, 0, [&](ClusterState::Submission& s) {
    JobSpec saved = DeepFm(s);
    if (other) saved.mutable_model()->mutable_hidden()->Add(saved.model().hidden(0));
    s.init_schema = SchemaFor(saved, 3);
    s.init.emplace().set_model_hash(std::string(32, '6'));
    InitFromSpec& init = *s.job.mutable_spec()->mutable_model()->mutable_init_from();
    init.set_checkpoint("/old");
    init.set_new_tensors("allow");
    init.set_dropped_tensors("allow");
  });
  CHECK(cluster.job().phase() == OPENING);
  CHECK(absl::StrContains(
            cluster.Says("StartsFrom"),
            "; warning: loaded above another number of hidden layers: tensor output_weight (above "
            "1, was above 2), tensor output_bias (above 1, was above 2); spec.model.initFrom.rename"
            ": {output_weight: \"\", output_bias: \"\"}, with newTensors and droppedTensors "
            "allowed, begins them anew") == other);
  CHECK(absl::StrContains(cluster.Says("StartsFrom"), "warning") == other);
}

TEST_CASE("a job does not resume over data that make another model of it",
          "[scheduler][recovery]") {
  const uint32_t fields = GENERATE(2u, 3u);
  RecoveryCluster cluster(1, 1, 0, [&](ClusterState::Submission& s) {
    s.resume = true;
    s.resume_schema = SchemaFor(DeepFm(s), fields);
    CheckpointRecord record;
    record.set_step(4);
    record.set_folder("/c/step-000000000004");
    s.complete = {record};
  });
  CHECK((cluster.job().state() == FAILED) == (fields == 2));
  CHECK(absl::StrContains(cluster.Says("CheckpointDoesNotFit"),
                          "tensor layer_0_weight was (8, 8), is (12, 8)") == (fields == 2));
  if (fields == 2) return;
  CHECK(absl::StartsWith(cluster.Says("ResumesFrom"),
                         "/c/step-000000000004: loaded: table features, tensor bias, "));
  CHECK(absl::StrContains(cluster.Says("ResumesFrom"),
                          "; the training files are not those of the checkpoint"));
}

// A checkpoint whose run had read the first of the two files, in 25 steps.
FoundInDirectory AfterTheFirstFile(ClusterState::Submission& s) {
  FoundInDirectory found{.resume_schema = SchemaFor(DeepFm(s), 3)};
  TrainedData& data = *found.resume_schema->mutable_data();
  data.add_files()->set_path("train");
  data.mutable_end()->set_steps(25);
  data.mutable_end()->set_lines(kSteps);
  CheckpointRecord& record = found.complete.emplace_back();
  record.set_step(25);
  record.set_folder("/c/step-000000000025");
  return found;
}

TEST_CASE("what a job reads of files that grew does not get lost with the scheduler",
          "[scheduler][recovery][daily]") {
  RecoveryCluster cluster(1, 1, 0, [&](ClusterState::Submission& s) {
    s.resume = true;
    const FoundInDirectory found = AfterTheFirstFile(s);
    s.resume_schema = found.resume_schema;
    s.complete = found.complete;
  });
  REQUIRE(cluster.job().phase() == OPENING);
  CHECK(absl::EndsWith(cluster.Says("ResumesFrom"),
                       "; 1 training file was read before; reads 1: train.1"));
  CHECK(cluster.job().total_steps() == 25 + kSteps / 2);
  const auto told = [&] {
    const NodeDirective worker = cluster.WorkerDirective();
    REQUIRE(worker.worker_jobs_size() == 1);
    const InputIndex& index = worker.worker_jobs(0).train_index();
    CHECK(index.files_size() == 1);
    CHECK(index.tasks_size() == 2);
    CHECK(index.before().steps() == 25);
    const NodeDirective server = cluster.Directive("s0");
    REQUIRE(server.server_jobs_size() == 1);
    return absl::StrCat(index.SerializeAsString(), server.server_jobs(0).index_fingerprint());
  };
  const std::string before = told();
  cluster.RestartScheduler();
  CHECK(told() == before);
  CHECK(cluster.job().total_steps() == 25 + kSteps / 2);
}

TEST_CASE("a later look into the directory decides anew what of the files is read",
          "[scheduler][recovery][daily]") {
  FoundInDirectory first;
  RecoveryCluster cluster(
      1, 1, 0,
      [&](ClusterState::Submission& s) {
        s.resume = true;
        first = AfterTheFirstFile(s);
      },
      /*stalls=*/true);
  REQUIRE(cluster.job().phase() == INDEXING);
  CHECK(cluster.job().total_steps() == kSteps);
  cluster.FoundAgain(first);
  CHECK(cluster.job().total_steps() == 25 + kSteps / 2);
  // The job's own checkpoints come without a schema, which is what it was.
  cluster.FoundAgain({.complete = first.complete});
  CHECK(cluster.job().total_steps() == 25 + kSteps / 2);
  cluster.FoundAgain({});
  CHECK(cluster.job().total_steps() == kSteps);
}

// Of spec.model.initFrom nobody has looked at anything: its rows would be taken for the job's own.

TEST_CASE("a job whose own checkpoint is gone begins from no other unlooked",
          "[scheduler][recovery]") {
  RecoveryCluster cluster(
      1, 1, 0,
      [&](ClusterState::Submission& s) {
        s.resume = true;
        s.resume_schema = SchemaFor(DeepFm(s), 3);
        s.job.mutable_spec()->mutable_model()->mutable_init_from()->set_checkpoint("/old");
        CheckpointRecord record;
        record.set_step(4);
        record.set_folder("/c/step-000000000004");
        s.complete = {record};
      },
      /*stalls=*/true);
  REQUIRE(cluster.job().phase() != OVER);
  cluster.FoundAgain({.lock = 2});
  CHECK(cluster.job().state() == FAILED);
  CHECK(absl::StrContains(cluster.Says("CheckpointGone"), "submit the job again"));
}

TEST_CASE("what a later look finds is compared with the data, too", "[scheduler][recovery]") {
  const uint32_t fields = GENERATE(2u, 3u);
  Schema saved;
  const auto change = [&](ClusterState::Submission& s) {
    saved = SchemaFor(DeepFm(s), fields);
    s.resume = true;
  };
  RecoveryCluster cluster(1, 1, 0, change, true);
  REQUIRE(cluster.job().phase() == INDEXING);
  CheckpointRecord record;
  record.set_step(4);
  record.set_folder("/c/step-000000000004");
  FoundInDirectory found{.complete = {record}, .resume_schema = saved};
  cluster.FoundAgain(found);
  CHECK((cluster.job().state() == FAILED) == (fields == 2));
  CHECK(absl::StrContains(cluster.Says("CheckpointDoesNotFit"),
                          "tensor layer_0_weight was (8, 8), is (12, 8)") == (fields == 2));
  if (fields == 2) return;
  // The same once more is not told twice.
  CHECK(cluster.Events("ResumesFrom") == 1);
  cluster.FoundAgain(found);
  CHECK(cluster.Events("ResumesFrom") == 1);
  cluster.FoundAgain({});
  CHECK(cluster.job().phase() == INDEXING);
}

TEST_CASE("a look that finds what the job may not begin from ends it, if it has not begun",
          "[scheduler][recovery]") {
  const bool waits = GENERATE(true, false);
  CAPTURE(waits);
  RecoveryCluster cluster(
      1, 1, 0, [](ClusterState::Submission& s) { DeepFm(s); }, waits);
  REQUIRE(cluster.job().phase() == (waits ? INDEXING : OPENING));
  cluster.LookFails(absl::FailedPreconditionError("/c is not empty (newest checkpoint: step 8)"));
  CHECK((cluster.job().state() == FAILED) == waits);
  CHECK(cluster.Says("CheckpointDoesNotFit") ==
        (waits ? "/c is not empty (newest checkpoint: step 8)" : ""));
  if (!waits) return cluster.CheckSucceeds();
  // It is over: another look changes nothing.
  cluster.LookFails(absl::FailedPreconditionError("again"));
  cluster.FoundAgain({.damaged = "/c/step-000000000008 (cut off)"});
  CHECK(cluster.Events("CheckpointDoesNotFit") == 1);
  CHECK(cluster.Says("CheckpointDamaged") == "");
}

// The job over csv with several values a line, which are a category where there is none.
void UseTags(bool columns, ClusterState::Submission& s) {
  JobSpec& spec = *s.job.mutable_spec();
  DeepFm(s);
  spec.mutable_data()->set_format("csv");
  if (columns) {
    ColumnsSpec& list = *spec.mutable_data()->mutable_columns();
    for (const char* name : {"user", "shop"}) list.add_categorical(name);
    list.add_multi_valued()->set_column("tags");
    return;
  }
  for (const char* name : {"user", "shop", "tags"}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_column(name);
    field.set_kind("categorical");
    field.set_table("features");
  }
  spec.mutable_fields(2)->set_kind("multiValued");
  spec.mutable_fields(2)->set_default_value("");
}

// The field of a schema that is multiValued.
SchemaField& Tags(Schema& schema) {
  for (SchemaField& field : *schema.mutable_fields()) {
    if (field.kind() == "multiValued") return field;
  }
  FAIL("there is none");
  return *schema.mutable_fields(0);
}

TEST_CASE("an empty default that an earlier scheduler did not note is no difference",
          "[scheduler][recovery]") {
  const bool columns = GENERATE(true, false), resume = GENERATE(false, true);
  const bool waits = GENERATE(true, false), other = GENERATE(false, true);
  CAPTURE(columns, resume, waits, other);
  CheckpointRecord record;
  record.set_step(4);
  record.set_folder("/c/step-000000000004");
  RecoveryCluster cluster(
      1, 1, 0,
      [&](ClusterState::Submission& s) {
        UseTags(columns, s);
        Schema saved = SchemaFor(s.job.spec(), 3);
        s.resume = resume;
        if (resume) {
          s.complete = {record};
          s.resume_schema = saved;
          return;
        }
        InitFromSpec& init = *s.job.mutable_spec()->mutable_model()->mutable_init_from();
        init.set_checkpoint("/old");
        if (!columns) {
          Tags(saved).set_name("labels");
          (*init.mutable_rename())["labels"] = "tags";
        }
        s.init_schema = saved;
      },
      /*stalls=*/waits);
  REQUIRE(cluster.job().phase() == (waits ? INDEXING : OPENING));
  const auto plan = [&] { return cluster.Directive("s0").server_jobs(0).restore_plan(); };
  const std::string before = waits ? "" : plan().SerializeAsString();
  cluster.RestartWith([&](JobSpecRecord& kept) {
    SchemaField& tags = Tags(resume ? *kept.mutable_resume_schema() : *kept.mutable_init_schema());
    REQUIRE(tags.has_default_value());
    tags.clear_default_value();
    if (other) tags.set_default_value("x");
  });
  if (!waits) {
    if (!other) CHECK(plan().SerializeAsString() == before);
    return;
  }
  cluster.FoundAgain(resume ? FoundInDirectory{.complete = {record}} : FoundInDirectory());
  INFO(cluster.Says("CheckpointDoesNotFit"));
  CHECK((cluster.job().state() == FAILED) == other);
  CHECK(absl::StrContains(cluster.Says("CheckpointDoesNotFit"), "defaultValue was 'x', is ''") ==
        other);
}

TEST_CASE("manifests say what the model is made of", "[scheduler][recovery]") {
  RecoveryCluster cluster(1, 1, 0, [&](ClusterState::Submission& s) { DeepFm(s); });
  cluster.Until([&] { return cluster.job().phase() == TRAINING; });
  cluster.Train(2);
  cluster.TakeCheckpoint();
  const Schema& schema = cluster.manifest.schema();
  CHECK(schema.model() == "deepfm");
  CHECK(schema.tensors_size() == 5);
  CHECK(schema.tensors(1).shape(0) == 12);
  CHECK(schema.data_fingerprint().size() == 32);
}

TEST_CASE("keys that hash positions are warned of", "[scheduler][recovery]") {
  RecoveryCluster cluster(1, 1, 0, [&](ClusterState::Submission& s) {
    DeepFm(s);
    s.job.mutable_spec()->mutable_data()->set_format("csv");
    s.job.mutable_spec()->mutable_data()->mutable_columns()->add_categorical("0");
  });
  CHECK(absl::StartsWith(cluster.Says("KeysByPosition"),
                         "spec.data.columns: the categories of column 0 are hashed with"));
}

TEST_CASE("fields of one table that share no rows are warned of", "[scheduler][recovery]") {
  RecoveryCluster cluster(1, 1, 0, [&](ClusterState::Submission& s) {
    DeepFm(s);
    JobSpec& spec = *s.job.mutable_spec();
    spec.mutable_data()->set_format("csv");
    TableConfig& table = *spec.add_tables();
    table.set_name("items");
    table.set_dim(4);
    table.mutable_optimizer()->set_type("sgd");
    for (const char* name : {"item", "bought", "seen"}) {
      FieldConfig& field = *spec.add_fields();
      field.set_name(name);
      field.set_kind("categorical");
      field.set_table("items");
    }
    spec.mutable_fields(1)->set_hash_seed(9);
  });
  CHECK(absl::StartsWith(cluster.Says("NoSharedRows"),
                         "spec.fields: fields 'item' and 'bought' have their rows in table items"));
}

TEST_CASE("a din without a sequence is warned of", "[scheduler][recovery]") {
  RecoveryCluster cluster(1, 1, 0, [&](ClusterState::Submission& s) {
    DeepFm(s);
    JobSpec& spec = *s.job.mutable_spec();
    spec.mutable_data()->set_format("csv");
    spec.mutable_data()->mutable_columns()->add_categorical("user");
    spec.mutable_model()->set_type("din");
  });
  CHECK(
      absl::StartsWith(cluster.Says("NothingToAttend"),
                       "spec.model.type: din weighs sequences by the item, and the job has none"));
}

}  // namespace
}  // namespace strata::scheduler
