// Labels, and weights of lines, of a job that resumes.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "proto/strata/job.pb.h"
#include "tests/scheduler/state/resume_problem.h"
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
        "spec.labels is [stars (real, huber, weight 0.5, delta 1, mean 3.2)] but the checkpoint to "
        "resume from was made with [stars (real, huber, weight 0.5, delta 1)]; resume with the "
        "same value, or start anew with --overwrite");
  CHECK(ResumeProblem(saved, now)
            .starts_with("spec.labels is [stars (real, huber, weight 0.5, "
                         "delta 1)] but"));
  // Nothing of a label hides the rest.
  other.set_weight(0.25f);
  other.set_delta(2);
  CHECK(
      ResumeProblem(now, saved)
          .starts_with("spec.labels is [stars (real, huber, weight 0.25, delta 2, mean 3.2)] but"));
  // All digits of it.
  TrainingJob close = now;
  close.mutable_spec()->mutable_labels(0)->set_mean(3.2000003f);
  CHECK(ResumeProblem(close, now)
            .starts_with("spec.labels is [stars (real, huber, weight 0.25, delta 2, mean "
                         "3.2000003)] but"));
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
  const std::string anew = "; resume with the same value, or start anew with --overwrite";
  TrainingJob now = labels;
  now.mutable_spec()->mutable_labels(0)->set_weight(0.5f);
  CHECK(ResumeProblem(now, columns) ==
        "spec.labels is [click (binary, logloss, weight 0.5)] but the checkpoint to resume from "
        "was made with [click (binary, logloss, weight 1)]" +
            anew);
  CHECK(ResumeProblem(columns, now) ==
        "spec.labels is [label (binary, logloss, weight 1)] but the checkpoint to resume from was "
        "made with [label (binary, logloss, weight 0.5)]" +
            anew);
  // Another column is told, beside what else there is, and nothing that is the same.
  now = labels;
  now.mutable_spec()->mutable_labels(0)->set_column("z");
  CHECK(absl::EndsWith(ResumeProblem(now, columns), ":\n  label click: column was y, is z"));
  CHECK(absl::EndsWith(ResumeProblem(columns, now), ":\n  label label: column was z, is y"));
  now.mutable_spec()->mutable_training()->set_lanes(2);
  now.mutable_spec()->mutable_labels(0)->set_mean(0.25f);
  CHECK(absl::EndsWith(ResumeProblem(now, columns),
                       ":\n  spec.labels is [click (binary, logloss, weight 1, mean 0.25)], was "
                       "[click (binary, logloss, weight 1)]\n  spec.training.lanes is 2, was 0\n"
                       "  label click: column was y, is z"));
  // Two labels have names.
  *now.mutable_spec()->add_labels() = label;
  CHECK(absl::StrContains(ResumeProblem(columns, now),
                          "spec.labels is [label (binary, logloss, weight 1)], was [click (binary, "
                          "logloss, weight 1, mean 0.25), click ("));
  // A line of another format has no columns.
  const TrainingJob libfm = JobOf("adagrad", "", "adam");
  now = libfm;
  *now.mutable_spec()->add_labels() = label;
  now.mutable_spec()->mutable_labels(0)->clear_column();
  CHECK(ResumeProblem(now, libfm) == "OK");
  CHECK(ResumeProblem(libfm, now) == "OK");
  now.mutable_spec()->mutable_labels(0)->set_weight(0.5f);
  CHECK(ResumeProblem(libfm, now) ==
        "spec.labels is [label (binary, logloss, weight 1)] but the checkpoint to resume from was "
        "made with [label (binary, logloss, weight 0.5)]" +
            anew);
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
  CHECK(ResumeProblem(now, saved)
            .starts_with("spec.labels is [click (binary, logloss, weight 0.2000001)] but the "
                         "checkpoint to resume from was made with [click (binary, logloss, weight "
                         "0.2)]; "));
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
