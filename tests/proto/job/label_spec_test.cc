#include "proto/job/fields/label_spec.h"

#include <google/protobuf/util/message_differencer.h>

#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job/job_spec.h"
#include "proto/strata/job.pb.h"

namespace strata {
namespace {

// Csv with a click, stars and a count of visits, and weights.
TrainingJob Labelled() {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("labels");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("csv");
  spec.mutable_data()->add_train("train.csv");
  ColumnsSpec& columns = *spec.mutable_data()->mutable_columns();
  columns.add_categorical("user");
  columns.add_numeric("age");
  spec.mutable_model()->set_type("deepfm");
  LabelConfig* label = spec.add_labels();
  label->set_name("click");
  label->set_column("clicked");
  label = spec.add_labels();
  label->set_name("stars");
  label->set_kind("real");
  label->set_weight(0.25f);
  label = spec.add_labels();
  label->set_name("visits");
  label->set_kind("count");
  spec.set_sample_weight("weight");
  return job;
}

std::string Problem(const std::function<void(JobSpec&)>& change) {
  TrainingJob job = Labelled();
  change(*job.mutable_spec());
  const absl::Status status = ResolveJob(job);
  if (status.ok()) return "OK";
  CHECK(absl::IsInvalidArgument(status));
  return std::string(status.message());
}

TEST_CASE("labels get the defaults of job.proto", "[label_spec]") {
  TrainingJob job = Labelled();
  REQUIRE(ResolveJob(job).ok());
  const JobSpec& spec = job.spec();
  CHECK(spec.labels(0).kind() == "binary");
  CHECK(spec.labels(0).loss() == "logloss");
  CHECK(spec.labels(0).weight() == 1);
  CHECK(spec.labels(1).column() == "stars");
  CHECK(spec.labels(1).loss() == "squared");
  CHECK_FALSE(spec.labels(1).has_delta());
  CHECK(spec.labels(2).loss() == "poisson");
  TrainingJob again = job;
  REQUIRE(ResolveJob(again).ok());
  CHECK(google::protobuf::util::MessageDifferencer::Equals(job, again));

  const std::vector<TaskSpec> tasks = TasksOf(spec);
  REQUIRE(tasks.size() == 3);
  CHECK((tasks[0].name == "click" && tasks[0].column == "clicked" && tasks[0].binary()));
  CHECK((tasks[1].kind == LabelKind::kReal && tasks[1].loss == TaskLoss::kSquared));
  CHECK(tasks[1].weight == 0.25f);
  CHECK((tasks[2].kind == LabelKind::kCount && tasks[2].loss == TaskLoss::kPoisson));
  CHECK(MetricsOf(spec).by_task);
}

TEST_CASE("the short form is one binary label", "[label_spec]") {
  JobSpec spec;
  CHECK(TasksOf(spec)[0].name == "label");
  spec.mutable_data()->mutable_columns()->set_label("y");
  const std::vector<TaskSpec> tasks = TasksOf(spec);
  REQUIRE(tasks.size() == 1);
  CHECK((tasks[0].name == "y" && tasks[0].column == "y" && tasks[0].binary()));
  CHECK_FALSE(MetricsOf(spec).by_task);
}

TEST_CASE("labels that mean nothing are refused by name", "[label_spec]") {
  CHECK(Problem([](JobSpec&) {}) == "OK");
  CHECK(Problem([](JobSpec& s) { s.mutable_labels(0)->clear_name(); }) ==
        "spec.labels[0].name: is missing; name the label");
  CHECK(Problem([](JobSpec& s) { s.mutable_labels(0)->set_name("a b"); }) ==
        "spec.labels[0].name: 'a b' may hold letters, digits, '_' and '-' only");
  CHECK(Problem([](JobSpec& s) { s.mutable_labels(1)->set_name("click"); }) ==
        "spec.labels[1].name: 'click' is named twice; give each label its own name");
  CHECK(Problem([](JobSpec& s) { s.mutable_labels(1)->set_column("clicked"); }) ==
        "spec.labels[1].column: column 'clicked' is spec.labels[0].column too; a column has one "
        "use: remove one of them");
  CHECK(Problem([](JobSpec& s) { s.mutable_labels(1)->set_column("age"); }) ==
        "spec.labels[1].column: column 'age' is spec.data.columns.numeric[0] too; a column has one "
        "use: remove one of them");
  CHECK(Problem([](JobSpec& s) { s.set_sample_weight("user"); }) ==
        "spec.sampleWeight: column 'user' is spec.data.columns.categorical[0] too; a column has "
        "one use: remove one of them");
  CHECK(Problem([](JobSpec& s) { s.set_sample_weight("stars"); }) ==
        "spec.sampleWeight: column 'stars' is spec.labels[1].column too; a column has one use: "
        "remove one of them");
  CHECK(Problem([](JobSpec& s) { s.mutable_labels(0)->set_kind("bool"); }) ==
        "spec.labels[0].kind: 'bool' is not one of: binary, real, count");
  CHECK(Problem([](JobSpec& s) { s.mutable_labels(1)->set_loss("logloss"); }) ==
        "spec.labels[1].loss: 'logloss' does not fit a label of kind real; give squared or huber, "
        "or another kind");
  CHECK(Problem([](JobSpec& s) { s.mutable_labels(0)->set_loss("squared"); }) ==
        "spec.labels[0].loss: 'squared' does not fit a label of kind binary; give logloss, or "
        "another kind");
  CHECK(Problem([](JobSpec& s) { s.mutable_labels(1)->set_loss("poisson"); }) ==
        "spec.labels[1].loss: 'poisson' does not fit a label of kind real; give squared or huber, "
        "or another kind");
  CHECK(Problem([](JobSpec& s) { s.mutable_labels(2)->set_loss("huber"); }) == "OK");
  CHECK(Problem([](JobSpec& s) { s.mutable_labels(0)->set_weight(0); }) ==
        "spec.labels[0].weight: 0 is outside the limits; give a number above 0 and below 1e+06");
  CHECK(Problem([](JobSpec& s) { s.mutable_labels(1)->set_delta(2); }) ==
        "spec.labels[1].delta: is for loss huber, and this label's is squared; remove it");
  CHECK(Problem([](JobSpec& s) { s.mutable_data()->mutable_columns()->set_label("y"); }) ==
        "spec.data.columns.label: is the short form of spec.labels, and the job has both; remove "
        "one of them");
  CHECK(Problem([](JobSpec& s) {
          s.clear_labels();
          s.clear_sample_weight();
        }) == "spec.data.columns.label: is missing; name the label's column");
  CHECK(Problem([](JobSpec& s) {
          s.mutable_data()->mutable_columns()->set_header(false);
        }).find("is not a position; without a header columns are numbered from 0") !=
        std::string::npos);
  CHECK(Problem([](JobSpec& s) { s.mutable_training()->set_batch_size(1 << 20); }) ==
        "OK");  // 8 lanes
  CHECK(Problem([](JobSpec& s) {
          s.mutable_training()->set_batch_size(1 << 20);
          s.mutable_training()->set_lanes(9);
        }) ==
        "spec.sampleWeight: a step has spec.training.lanes x batchSize = 9437184 lines; with "
        "weights at most 8388608 are supported");
}

TEST_CASE("a label may state its mean", "[label_spec]") {
  TrainingJob job = Labelled();
  job.mutable_spec()->mutable_labels(1)->set_mean(3.2f);
  REQUIRE(ResolveJob(job).ok());
  TrainingJob again = job;
  REQUIRE(ResolveJob(again).ok());
  CHECK(google::protobuf::util::MessageDifferencer::Equals(job, again));
  const std::vector<TaskSpec> tasks = TasksOf(job.spec());
  CHECK_FALSE(tasks[0].mean.has_value());
  CHECK(tasks[1].mean == 3.2f);
}

TEST_CASE("a mean that no label of its kind has is refused by the label's name", "[label_spec]") {
  const auto problem = [](int label, float mean, const char* loss = "") {
    return Problem([&](JobSpec& s) {
      s.mutable_labels(label)->set_mean(mean);
      s.mutable_labels(label)->set_loss(loss);
    });
  };
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  for (const float mean : {-1e18f, -3.0f, 0.0f, 3.2f, 16777216.0f}) {
    CHECK(problem(1, mean) == "OK");
    CHECK(problem(1, mean, "huber") == "OK");
    CHECK(problem(2, mean, "squared") == "OK");
    CHECK(problem(2, mean, "huber") == "OK");
  }
  CHECK(problem(2, 1e-30f) == "OK");
  CHECK(problem(0, 1e-30f) == "OK");
  CHECK(problem(0, 0.99999f) == "OK");
  const std::string binary =
      " cannot be the mean of label 'click', whose kind is binary; give a number above 0 and below "
      "1, about the share of 1, or remove it";
  CHECK(problem(0, 0) == "spec.labels[0].mean: 0" + binary);
  CHECK(problem(0, 1) == "spec.labels[0].mean: 1" + binary);
  CHECK(problem(0, -0.5f) == "spec.labels[0].mean: -0.5" + binary);
  const std::string poisson =
      " cannot be the mean of label 'visits', whose loss is poisson; give a number above 0, about "
      "the mean of the training lines, or remove it";
  CHECK(problem(2, 0) == "spec.labels[2].mean: 0" + poisson);
  CHECK(problem(2, -2, "poisson") == "spec.labels[2].mean: -2" + poisson);
  for (const int label : {0, 1, 2}) {
    CHECK(problem(label, kInfinite)
              .find("as it is no finite number; give about the mean of the "
                    "training lines, or remove it") != std::string::npos);
  }
  // A mean of 1e30 has gradients of 1e30, which end whatever is trained.
  const std::string count =
      " cannot be the mean of label 'visits', whose kind is count; give a number of at most "
      "16777216, the greatest count that a line may have, or remove it";
  CHECK(problem(2, 16777216.0f) == "OK");
  CHECK(problem(2, 1e30f) == "spec.labels[2].mean: 1e+30" + count);
  CHECK(problem(2, 2e7f, "squared") == "spec.labels[2].mean: 2e+07" + count);
  CHECK(problem(1, 1e18f) == "OK");
  const std::string real =
      " cannot be the mean of label 'stars', as squares of its size are no finite numbers; give "
      "one between -1e+18 and 1e+18, and scale the label, or remove it";
  CHECK(problem(1, 1e30f) == "spec.labels[1].mean: 1e+30" + real);
  CHECK(problem(1, -2e18f, "huber") == "spec.labels[1].mean: -2e+18" + real);
  CHECK(problem(1, kNone).substr(0, 68) ==
        "spec.labels[1].mean: nan cannot be the mean of label 'stars', as it ");
}

TEST_CASE("a score of a life cycle wants a binary label first", "[label_spec]") {
  const auto scored = [](JobSpec& s) {
    s.mutable_life_cycle()->mutable_removal()->mutable_score()->set_below(1);
  };
  CHECK(Problem(scored) == "OK");
  CHECK(Problem([&](JobSpec& s) {
          scored(s);
          s.mutable_labels()->SwapElements(0, 2);
        }).find("spec.lifeCycle.removal.score.clickWeight: clicks are") == 0);
}

// The same columns, and a sequence beside the user.
void UseSequence(JobSpec& spec) {
  spec.mutable_data()->clear_columns();
  spec.add_tables()->set_name("users");
  spec.mutable_tables(0)->set_dim(8);
  for (const char* name : {"user", "seen"}) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(name);
    field.set_kind(name == std::string("seen") ? "sequence" : "categorical");
    field.set_table("users");
    if (field.kind() == "sequence") field.set_max_length(5);
  }
}

TEST_CASE("labels and weights are computed on the CPU and on devices", "[label_spec]") {
  for (const char* type :
       {"lr", "fm", "wide_deep", "deepfm", "dcn_v2", "dlrm", "shared_bottom", "mmoe", "din"}) {
    for (const char* device : {"cpu", "auto", "host", "cuda:GPU-5d2c"}) {
      INFO(type << " on " << device);
      CHECK(Problem([&](JobSpec& s) {
              s.mutable_model()->set_type(type);
              if (type == std::string("din")) UseSequence(s);
              s.mutable_worker()->set_device(device);
            }) == "OK");
    }
  }
}

TEST_CASE("formats with one label have one", "[label_spec]") {
  const auto libfm = [](const std::function<void(JobSpec&)>& change) {
    return Problem([&](JobSpec& s) {
      s.mutable_data()->set_format("libfm");
      s.mutable_data()->clear_columns();
      s.clear_sample_weight();
      while (s.labels_size() > 1) s.mutable_labels()->RemoveLast();
      s.mutable_labels(0)->clear_column();
      change(s);
    });
  };
  CHECK(libfm([](JobSpec&) {}) == "OK");
  CHECK(libfm([](JobSpec& s) { s.add_labels()->set_name("b"); }) ==
        "spec.labels[1]: a line of format libfm has one label; give the data as csv for more");
  CHECK(libfm([](JobSpec& s) { s.mutable_labels(0)->set_column("x"); }) ==
        "spec.labels[0].column: is for format csv, and the format is libfm; remove it");
  CHECK(libfm([](JobSpec& s) { s.mutable_labels(0)->set_kind("real"); }) ==
        "spec.labels[0].kind: 'real' is for format csv: the label of format libfm is binary; give "
        "the data as csv");
  CHECK(libfm([](JobSpec& s) { s.set_sample_weight("w"); }) ==
        "spec.sampleWeight: names a column of format csv, and the format is libfm; remove it, or "
        "give the data as csv");
}

TEST_CASE("metrics are named, once, and fit a label", "[label_spec]") {
  const auto metrics = [](const std::vector<std::string>& names,
                          const std::function<void(JobSpec&)>& change = nullptr) {
    return Problem([&](JobSpec& s) {
      for (const std::string& name : names) s.mutable_evaluation()->add_metrics(name);
      if (change != nullptr) change(s);
    });
  };
  CHECK(metrics({"auc", "logloss", "ne", "calibration", "gauc(user)", "mse", "mae"}) == "OK");
  CHECK(metrics({"f1"}) ==
        "spec.evaluation.metrics[0]: 'f1' is not one of: auc, logloss, ne, calibration, "
        "gauc(FIELD), mse, mae");
  CHECK(metrics({"auc", "auc"}) ==
        "spec.evaluation.metrics[1]: 'auc' is the second of its kind; remove one");
  CHECK(metrics({"gauc(FIELD)"}) ==
        "spec.evaluation.metrics[0]: 'FIELD' is none of spec.data.columns.categorical; name "
        "one of them");
  CHECK(metrics({"gauc(age)"}) ==
        "spec.evaluation.metrics[0]: 'age' is none of spec.data.columns.categorical; name "
        "one of them");
  CHECK(metrics({"auc"}, [](JobSpec& s) { s.mutable_labels()->DeleteSubrange(0, 1); }) ==
        "spec.evaluation.metrics[0]: 'auc' is for binary labels, and the job has none; remove it, "
        "or give mse or mae");
  JobSpec spec;
  spec.mutable_evaluation()->add_metrics("gauc(user)");
  CHECK(MetricsOf(spec).gauc_field == "user");
  CHECK(MetricsOf(spec).by_task);
}

}  // namespace
}  // namespace strata
