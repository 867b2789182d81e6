// Labels, and weights of lines, of a job that resumes.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/strata/job.pb.h"
#include "tests/scheduler/state/saved_jobs.h"

namespace strata::scheduler {
namespace {

TEST_CASE("a job resumes with what its labels mean", "[scheduler][resume]") {
  TrainingJob saved = CsvJob("lr", {"user"});
  saved.mutable_spec()->mutable_data()->mutable_columns()->clear_label();
  LabelConfig& label = *saved.mutable_spec()->add_labels();
  label.set_name("stars");
  label.set_kind("real");
  label.set_loss("huber");
  label.set_weight(0.5f);
  label.set_delta(1);
  CHECK(ResumeProblem(saved, saved) == "OK");
  TrainingJob now = saved;
  LabelConfig& other = *now.mutable_spec()->mutable_labels(0);
  other.set_mean(3.2f);
  CHECK(ResumeProblem(now, now) == "OK");
  CHECK(ResumeProblem(now, saved) ==
        absl::StrCat(kOtherModel, "label stars: mean was none, is 3.2"));
  CHECK(ResumeProblem(saved, now) ==
        absl::StrCat(kOtherModel, "label stars: mean was 3.2, is none"));
  // Nothing of a label hides the rest.
  other.set_weight(0.25f);
  other.set_delta(2);
  CHECK(ResumeProblem(now, saved) ==
        absl::StrCat(
            kOtherModel,
            "label stars: weight was 0.5, is 0.25; delta was 1, is 2; mean was none, is 3.2"));
  // All digits of it.
  TrainingJob close = now;
  close.mutable_spec()->mutable_labels(0)->set_mean(3.2000003f);
  CHECK(ResumeProblem(close, now) ==
        absl::StrCat(kOtherModel, "label stars: mean was 3.2, is 3.2000003"));
}

TEST_CASE("a job resumes with its one label in either form", "[scheduler][resume]") {
  const TrainingJob columns = CsvJob("deepfm", {"user", "item"});
  TrainingJob labels = columns;
  labels.mutable_spec()->mutable_data()->mutable_columns()->clear_label();
  LabelConfig& label = *labels.mutable_spec()->add_labels();
  label.set_column("y");
  label.set_kind("binary");
  label.set_loss("logloss");
  label.set_weight(1);
  // The short form has no name for it.
  for (const char* name : {"y", "label", "click"}) {
    INFO(name);
    label.set_name(name);
    CHECK(ResumeProblem(labels, columns) == "OK");
    CHECK(ResumeProblem(columns, labels) == "OK");
  }
  TrainingJob now = labels;
  now.mutable_spec()->mutable_labels(0)->set_weight(0.5f);
  CHECK(ResumeProblem(now, columns) ==
        absl::StrCat(kOtherModel, "label click: weight was 1, is 0.5"));
  CHECK(ResumeProblem(columns, now) ==
        absl::StrCat(kOtherModel, "label label: weight was 0.5, is 1"));
  // Another column is told, beside what else there is, and nothing that is the same.
  now = labels;
  now.mutable_spec()->mutable_labels(0)->set_column("z");
  CHECK(absl::EndsWith(ResumeProblem(now, columns), ":\n  label click: column was y, is z"));
  CHECK(absl::EndsWith(ResumeProblem(columns, now), ":\n  label label: column was z, is y"));
  now.mutable_spec()->mutable_training()->set_lanes(2);
  now.mutable_spec()->mutable_labels(0)->set_mean(0.25f);
  CHECK(absl::EndsWith(ResumeProblem(now, columns),
                       ":\n  spec.training.lanes is 2, was 0\n"
                       "  label click: column was y, is z; mean was none, is 0.25"));
  // Two labels have names.
  *now.mutable_spec()->add_labels() = label;
  now.mutable_spec()->mutable_labels(1)->set_name("buy");
  CHECK(absl::StrContains(ResumeProblem(columns, now), "label label: the checkpoint has none"));
  CHECK(absl::StrContains(ResumeProblem(columns, now), "label buy: the job has none"));
  // A line of another format has no columns.
  const TrainingJob libfm = JobOf("adagrad", "", "adam");
  now = libfm;
  *now.mutable_spec()->add_labels() = label;
  now.mutable_spec()->mutable_labels(0)->clear_column();
  CHECK(ResumeProblem(now, libfm) == "OK");
  CHECK(ResumeProblem(libfm, now) == "OK");
  now.mutable_spec()->mutable_labels(0)->set_weight(0.5f);
  CHECK(ResumeProblem(libfm, now) ==
        absl::StrCat(kOtherModel, "label label: weight was 0.5, is 1"));
}

// Rows and tensors of other shapes follow from them.
TEST_CASE("a label more or less is told by itself", "[scheduler][resume]") {
  TrainingJob one = CsvJob("deepfm", {"user", "item"});
  one.mutable_spec()->mutable_data()->mutable_columns()->clear_label();
  TrainingJob two = one;
  for (const char* name : {"click", "buy"}) {
    LabelConfig& label = *two.mutable_spec()->add_labels();
    label.set_name(name);
    label.set_kind("binary");
    label.set_loss("logloss");
    label.set_weight(1);
  }
  *one.mutable_spec()->add_labels() = two.spec().labels(0);
  CHECK(ResumeProblem(two, one) == absl::StrCat(kOtherModel, "label buy: the checkpoint has none"));
  CHECK(ResumeProblem(one, two) == absl::StrCat(kOtherModel, "label buy: the job has none"));
  TrainingJob turned = two;
  turned.mutable_spec()->mutable_labels()->SwapElements(0, 1);
  CHECK(ResumeProblem(turned, two) ==
        absl::StrCat(kOtherModel, "label click came before buy, and comes after it now"));
}

TEST_CASE("a job resumes with the labels' weights, all digits of them", "[scheduler][resume]") {
  TrainingJob saved = CsvJob("fm", {"user", "item"});
  saved.mutable_spec()->mutable_data()->mutable_columns()->clear_label();
  LabelConfig& label = *saved.mutable_spec()->add_labels();
  label.set_name("click");
  label.set_kind("binary");
  label.set_loss("logloss");
  label.set_weight(0.2f);
  TrainingJob now = saved;
  now.mutable_spec()->mutable_labels(0)->set_weight(0.2000001f);
  CHECK(ResumeProblem(saved, saved) == "OK");
  CHECK(ResumeProblem(now, saved).ends_with("label click: weight was 0.2, is 0.2000001"));
}

TEST_CASE("a job resumes with the weights of lines that it had", "[scheduler][resume]") {
  const TrainingJob without = CsvJob("fm", {"user", "item"});
  TrainingJob with = without;
  with.mutable_spec()->set_sample_weight("w");
  CHECK(ResumeProblem(with, with) == "OK");
  CHECK(ResumeProblem(without, with) ==
        "spec.sampleWeight is none but the checkpoint to resume from was made with w; resume with "
        "the same value, or start anew with --overwrite");
  CHECK(ResumeProblem(with, without)
            .starts_with("spec.sampleWeight is w but the checkpoint to resume from was made with "
                         "none;"));
}

}  // namespace
}  // namespace strata::scheduler
