// What a job must have of the checkpoint that it resumes from; labels: resume_labels_test.cc.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "proto/strata/job.pb.h"
#include "tests/scheduler/state/saved_jobs.h"

namespace strata::scheduler {
namespace {

TEST_CASE("a job resumes with the optimizers that wrote the state", "[scheduler][resume]") {
  const TrainingJob saved = JobOf("adagrad", "ftrl", "adam");
  CHECK(ResumeProblem(saved, saved) == "OK");
  CHECK(ResumeProblem(JobOf("momentum", "ftrl", "adam"), saved) ==
        "spec.optimizer.sparse.type is momentum but the checkpoint to resume from was made with "
        "adagrad; resume with the same value, or start anew with --overwrite");
  CHECK(ResumeProblem(JobOf("adagrad", "adam", "adam"), saved)
            .starts_with("spec.optimizer.linear.type is adam but"));
  CHECK(ResumeProblem(JobOf("adagrad", "ftrl", "ftrl"), saved)
            .starts_with("spec.optimizer.dense.type is ftrl but"));
  // A checkpoint of before there was a `linear`: it was as `sparse`.
  CHECK(ResumeProblem(JobOf("adagrad", "adagrad", "adam"), JobOf("adagrad", "", "adam")) == "OK");
  CHECK(ResumeProblem(JobOf("adagrad", "ftrl", "adam"), JobOf("adagrad", "", "adam")) != "OK");
}

TEST_CASE("a job resumes with the windows that were numbered", "[scheduler][resume]") {
  TrainingJob saved = JobOf("adagrad", "adagrad", "adam");
  TrainingSpec& training = *saved.mutable_spec()->mutable_training();
  training.set_mode("downpour");
  training.set_n_fetch(4);
  training.set_n_push(4);
  TrainingJob now = saved;
  now.mutable_spec()->mutable_training()->set_n_fetch(2);
  CHECK(ResumeProblem(now, saved) == "OK");
  now.mutable_spec()->mutable_training()->set_n_push(2);
  CHECK(ResumeProblem(now, saved).starts_with("spec.training.nPush is 2 but"));
  training.set_mode("easgd");
  training.set_tau(8);
  now = saved;
  now.mutable_spec()->mutable_training()->set_tau(4);
  CHECK(ResumeProblem(now, saved).starts_with("spec.training.tau is 4 but"));
}

TEST_CASE("a job resumes with the lines in the order that they had", "[scheduler][resume]") {
  TrainingJob saved = JobOf("adagrad", "adagrad", "adam");
  ShuffleSpec& order = *saved.mutable_spec()->mutable_data()->mutable_shuffle();
  order.set_enabled(true);
  order.set_buffer_lines(64);
  TrainingJob now = saved;
  now.mutable_spec()->mutable_data()->mutable_shuffle()->set_buffer_lines(32);
  CHECK(ResumeProblem(now, saved).starts_with("spec.data.shuffle.bufferLines is 32 but"));
  now.mutable_spec()->mutable_data()->mutable_shuffle()->set_enabled(false);
  CHECK(ResumeProblem(now, saved).starts_with("spec.data.shuffle.enabled is false but"));
  order.set_enabled(false);
  CHECK(ResumeProblem(now, saved) == "OK");  // nothing is shuffled, whatever the buffer
}

TEST_CASE("a job resumes with the shape of the model that was saved", "[scheduler][resume]") {
  TrainingJob saved = JobOf("adagrad", "", "adam");
  ModelSpec& model = *saved.mutable_spec()->mutable_model();
  model.set_type("dlrm");
  model.add_hidden(8);
  model.add_bottom_hidden(64);
  model.set_cross_layers(3);
  const auto problem = [&](void (*change)(ModelSpec&)) {
    TrainingJob now = saved;
    change(*now.mutable_spec()->mutable_model());
    return ResumeProblem(now, saved, 2);
  };
  CHECK(problem([](ModelSpec&) {}) == "OK");
  CHECK(problem([](ModelSpec& m) {
          m.add_bottom_hidden(8);
        }).starts_with("spec.model.bottomHidden is [64, 8] but"));
  model.set_type("dcn_v2");
  CHECK(problem([](ModelSpec& m) {
          m.set_cross_layers(2);
        }).starts_with("spec.model.crossLayers is 2 but"));
  CHECK(
      problem([](ModelSpec& m) { m.set_cross_rank(4); }).starts_with("spec.model.crossRank is 4"));
}

TEST_CASE("a job resumes with its experts, towers and attention", "[scheduler][resume]") {
  TrainingJob saved = CsvJob("mmoe", {"user", "item"});
  ModelSpec& model = *saved.mutable_spec()->mutable_model();
  model.clear_hidden();
  model.set_experts(3);
  model.add_expert_hidden(8);
  model.add_tower_hidden(5);
  model.add_attention_hidden(4);
  const auto problem = [&](void (*change)(ModelSpec&)) {
    TrainingJob now = saved;
    change(*now.mutable_spec()->mutable_model());
    return ResumeProblem(now, saved);
  };
  const auto is = [](const char* field, const char* now, const char* then) {
    return std::string("spec.model.") + field + " is " + now +
           " but the checkpoint to resume from was made with " + then +
           "; resume with the same value, or start anew with --overwrite";
  };
  CHECK(problem([](ModelSpec&) {}) == "OK");
  CHECK(problem([](ModelSpec& m) { m.set_experts(2); }) == is("experts", "2", "3"));
  CHECK(problem([](ModelSpec& m) { m.add_expert_hidden(4); }) ==
        is("expertHidden", "[8, 4]", "[8]"));
  CHECK(problem([](ModelSpec& m) { m.set_tower_hidden(0, 6); }) == is("towerHidden", "[6]", "[5]"));
  CHECK(problem([](ModelSpec& m) { m.add_attention_hidden(4); }) == "OK");
  model.set_type("shared_bottom");
  model.add_hidden(8);
  CHECK(problem([](ModelSpec& m) { m.set_tower_hidden(0, 6); }) == is("towerHidden", "[6]", "[5]"));
  CHECK(problem([](ModelSpec& m) { m.set_experts(2); }) == "OK");
  model.set_type("din");
  JobSpec& spec = *saved.mutable_spec();
  spec.mutable_data()->mutable_columns()->clear_categorical();
  spec.add_tables()->set_name("item");
  spec.mutable_tables(0)->set_dim(4);
  spec.mutable_tables(0)->mutable_optimizer()->set_type("adagrad");
  for (const char* name : {"item", "clicks"}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_column(name);
    field.set_kind(name == std::string("item") ? "categorical" : "sequence");
    field.set_table("item");
  }
  spec.mutable_fields(1)->set_max_length(5);
  CHECK(problem([](ModelSpec& m) { m.add_attention_hidden(4); }) ==
        is("attentionHidden", "[4, 4]", "[4]"));
  CHECK(problem([](ModelSpec& m) { m.set_hidden(0, 9); }) == is("hidden", "[9]", "[8]"));
  CHECK(problem([](ModelSpec& m) { m.add_tower_hidden(4); }) == "OK");
}

TEST_CASE("what says nothing of a job's model may differ", "[scheduler][resume]") {
  TrainingJob saved = JobOf("adagrad", "", "adam");
  ModelSpec& model = *saved.mutable_spec()->mutable_model();
  TrainingJob now = saved;
  const auto other = [&](const std::string& type) {
    model.set_type(type);
    now = saved;
    ModelSpec& m = *now.mutable_spec()->mutable_model();
    m.add_bottom_hidden(8);
    m.add_tower_hidden(8);
    m.set_cross_layers(2);
    m.set_cross_rank(1);
    m.set_hash_seed(9);  // keys of libfm are the features
    now.mutable_spec()->mutable_training()->set_tau(7);
    now.mutable_spec()->mutable_training()->set_n_push(7);
    return &m;
  };
  ModelSpec* lr = other("lr");
  lr->set_embedding_dim(7);
  lr->add_hidden(3);
  CHECK(ResumeProblem(now, saved) == "OK");
  other("fm")->add_hidden(3);
  CHECK(ResumeProblem(now, saved) == "OK");
  model.add_hidden(8);
  other("deepfm");
  CHECK(ResumeProblem(now, saved) == "OK");
  // Of data without numbers.
  model.set_type("dlrm");
  now = saved;
  now.mutable_spec()->mutable_model()->add_bottom_hidden(8);
  CHECK(ResumeProblem(now, saved) == "OK");
  // The optimizers of easgd are the lanes' own, of which nothing is saved.
  saved.mutable_spec()->mutable_training()->set_mode("easgd");
  now = saved;
  now.mutable_spec()->mutable_optimizer()->mutable_sparse()->set_type("adam");
  CHECK(ResumeProblem(now, saved) == "OK");
}

TEST_CASE("all that differs from the checkpoint is told at once", "[scheduler][resume]") {
  const TrainingJob saved = CsvJob("deepfm", {"user", "item"});
  TrainingJob now = CsvJob("deepfm", {"user", "item", "shop"});
  JobSpec& spec = *now.mutable_spec();
  spec.mutable_training()->set_lanes(2);
  spec.mutable_model()->set_hidden(0, 6);
  spec.mutable_model()->set_hash_seed(9);
  const std::string head =
      "the checkpoint to resume from was made by another job; resume with what it had, start anew "
      "with --overwrite, or start from it with spec.model.initFrom in another "
      "spec.checkpoint.directory:\n  ";
  // The layer's shape follows from hidden and the fields.
  CHECK(ResumeProblem(now, saved) == head +
                                         "spec.model.hashSeed is 9, was 0\n"
                                         "  spec.model.hidden is [6], was [8]\n"
                                         "  spec.training.lanes is 2, was 0\n"
                                         "  tensor layer_0_weight was (8, 8), is (12, 8)\n"
                                         "  field shop: the checkpoint has none");
  // Of many the first.
  std::vector<std::string> columns;
  for (int i = 0; i < 40; ++i) columns.push_back("c" + std::to_string(i));
  now = CsvJob("fm", columns);
  now.mutable_spec()->mutable_training()->set_lanes(2);
  const std::string many = ResumeProblem(now, CsvJob("fm", {"user", "item"}));
  CHECK(std::count(many.begin(), many.end(), '\n') == 21);
  CHECK(absl::EndsWith(many, "\n  ... and 23 more differences"));
}

TEST_CASE("a job resumes with the lines of csv read as they were", "[scheduler][resume]") {
  TrainingJob saved = CsvJob("fm", {"0", "1"});
  ColumnsSpec& columns = *saved.mutable_spec()->mutable_data()->mutable_columns();
  columns.set_header(true);
  columns.set_delimiter("\t");
  TrainingJob now = saved;
  now.mutable_spec()->mutable_data()->mutable_columns()->set_header(false);
  CHECK(ResumeProblem(now, saved).starts_with("spec.data.columns.header is false but"));
  now = saved;
  now.mutable_spec()->mutable_data()->mutable_columns()->set_delimiter(",");
  CHECK(absl::StrContains(ResumeProblem(now, saved),
                          "spec.data.columns.delimiter is ',' but the checkpoint to resume from "
                          "was made with '\\t'; resume with the same value"));
}

}  // namespace
}  // namespace strata::scheduler
