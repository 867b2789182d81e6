#include "tools/cli/base/job_text.h"

#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/base/progress.h"

namespace strata {
namespace {

JobStatus Finished() {
  JobStatus s;
  s.set_job(7);
  s.set_name("clicks");
  s.set_state(SUCCEEDED);
  s.set_step(100);
  s.set_total_steps(100);
  s.set_examples(1234567);
  s.set_total_examples(1234567);
  s.set_examples_per_second(0);  // nothing runs any more
  s.set_train_seconds(24.7);
  s.set_model_hash("00112233445566778899aabbccddeeff");
  s.mutable_result()->set_step(100);
  s.mutable_result()->set_auc(0.8125);
  s.mutable_result()->set_logloss(0.45);
  s.mutable_result()->set_examples(1000);
  s.set_checkpoint("/c/step-000000000100");
  return s;
}

TEST_CASE("the line of JSON holds what scripts read", "[job_text]") {
  const std::string line = JobJson(Finished());
  CHECK(line.find('\n') == std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(line);
  CHECK(json["auc"] == 0.8125);
  CHECK(json["logloss"] == 0.45);
  CHECK(json["examples"] == 1234567);
  CHECK(json["examplesPerSecond"] == 1234567 / 24.7);
  CHECK(json["trainSeconds"] == 24.7);
  CHECK(json["modelHash"] == "00112233445566778899aabbccddeeff");
  CHECK(json["state"] == "succeeded");
  CHECK(json["error"].is_null());
}

TEST_CASE("what does not exist is null, and bytes that are no text do not stop it", "[job_text]") {
  JobStatus s;
  s.set_state(FAILED);
  s.set_name("bad\xff");
  s.set_training_loss(std::numeric_limits<double>::quiet_NaN());
  s.add_conditions()->set_message("train.tsv:3:1: label 'x'");
  const nlohmann::json json = nlohmann::json::parse(JobJson(s));
  CHECK(json["auc"].is_null());
  CHECK(json["modelHash"].is_null());
  CHECK(json["trainingLoss"].is_null());
  CHECK(json["error"] == "train.tsv:3:1: label 'x'");
}

TEST_CASE("what happened to a job has its time, and asks for nothing once it ended well",
          "[job_text]") {
  JobStatus s = Finished();
  JobCondition* c = s.add_conditions();
  c->set_reason("ServerLost");
  c->set_message("server alpha; start it again");
  c->set_time_unix_ms(1'700'000'000'000);
  const std::string at =
      absl::FormatTime("%H:%M:%S", absl::FromUnixMillis(c->time_unix_ms()), absl::LocalTimeZone());
  const std::string line = "  at " + at + " ServerLost: server alpha; start it again\n";
  const std::string over = "nothing of it is to be done now:\n";
  for (const JobState state : {SUCCEEDED, CANCELLED}) {
    s.set_state(state);
    INFO(JobDetails(s));
    CHECK(JobDetails(s).find(over + line) != std::string::npos);
  }
  for (const JobState state : {PENDING, RUNNING, FAILED}) {
    s.set_state(state);
    INFO(JobDetails(s));
    CHECK(JobDetails(s).find(line) != std::string::npos);
    CHECK(JobDetails(s).find(over) == std::string::npos);
  }
  s.set_state(SUCCEEDED);
  s.clear_conditions();
  CHECK(JobDetails(s).find(over) == std::string::npos);
}

TEST_CASE("a rate that was measured is that of training alone", "[job_text]") {
  JobStatus s = Finished();
  s.set_examples_per_second(60000);  // without evaluations
  CHECK(nlohmann::json::parse(JobJson(s))["examplesPerSecond"] == 60000);
  CHECK(JobSummary(s).find("in 25 s, 60,000 examples/s\n") != std::string::npos);
  s.set_state(CANCELLED);
  CHECK(nlohmann::json::parse(JobJson(s))["examplesPerSecond"] == 1234567 / 24.7);
}

TEST_CASE("rows that were refused are told by field and key where they are known", "[job_text]") {
  JobStatus s = Finished();
  CHECK(nlohmann::json::parse(JobJson(s))["refused"].empty());
  s.set_refused_rows(1204);
  RefusedRow* row = s.add_refused();
  row->set_table(1);
  row->set_key(6);
  row->set_field("bias");
  row->set_refused(1203);
  CHECK(JobSummary(s).find("  1,204 row updates were not finite and not applied\n"
                           "    bias, key 6 of table 1: 1,203 times\n"
                           "  checkpoint") != std::string::npos);
  row = s.add_refused();
  row->set_key(0xffffffffffffffff);
  row->set_refused(1);
  CHECK(JobSummary(s).find("    key 18446744073709551615 of table 0: 1 time\n    (a key of table 0 "
                           "is a feature as the data write it, or of csv and criteo its hash; ") !=
        std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(JobJson(s))["refused"];
  CHECK(json[0]["field"] == "bias");
  CHECK(json[0]["refused"] == 1203);
  CHECK(json[1]["field"].is_null());
  CHECK(json[1]["key"] == "18446744073709551615");
  CHECK(json[1]["table"] == 0);
}

TEST_CASE("files that folders and globs stand for are told", "[job_text]") {
  JobStatus status;
  CHECK(JobJson(status).find("trainInput") == std::string::npos);
  InputListing& listing = *status.mutable_train_input();
  listing.set_files(12);
  listing.set_bytes(3456);
  listing.set_first("/d/day=1/part-0");
  listing.set_last("/d/day=2/part-5");
  CHECK(JobSummary(status).find(
            "  trained from 12 files, 3456 bytes: /d/day=1/part-0 ... /d/day=2/part-5\n") !=
        std::string::npos);
  CHECK(JobJson(status).find("\"trainInput\":{\"files\":12,\"bytes\":3456,\"first\":\"/d/day=1/"
                             "part-0\",\"last\":\"/d/day=2/part-5\"}") != std::string::npos);
}

TEST_CASE("the checkpoint that is being written is told", "[job_text][progress]") {
  JobStatus s = Finished();
  nlohmann::json json = nlohmann::json::parse(JobJson(s));
  CHECK(json["checkpointBytes"] == 0);
  CHECK(json["checkpointWrittenBytes"] == 0);
  CHECK(json["checkpointSecondsLeft"].is_null());
  s.set_state(RUNNING);
  s.set_examples_per_second(50000);
  s.set_checkpoint_bytes(uint64_t{3} << 30);
  s.set_checkpoint_written_bytes(uint64_t{3} << 29);
  CHECK(ProgressLine(s, 0) == "clicks 100%  step 100/100  last checkpoint: 1.50 GiB of 3.00 GiB");
  s.set_checkpoint_seconds_left(12.3);
  CHECK(ProgressLine(s, 0) ==
        "clicks 100%  step 100/100  last checkpoint: 1.50 GiB of 3.00 GiB, 12 s left");
  CHECK(JobDetails(s).find("  a checkpoint is being written: 1.50 GiB of 3.00 GiB, 12 s left\n") !=
        std::string::npos);
  s.mutable_reserved()->set_dram_bytes(uint64_t{1} << 30);
  CHECK(JobDetails(s).find("  each server keeps 1.0 GiB of memory for it\n") != std::string::npos);
  s.set_estimated_rows(1234);
  CHECK(JobDetails(s).find("  each server keeps 1.0 GiB of memory for it, an estimate with 1,234 "
                           "rows of features: spec.storage.dramBytesPerServer is not set\n") !=
        std::string::npos);
  json = nlohmann::json::parse(JobJson(s));
  CHECK(json["checkpointBytes"] == uint64_t{3} << 30);
  CHECK(json["checkpointWrittenBytes"] == uint64_t{3} << 29);
  CHECK(json["checkpointSecondsLeft"] == 12.3);
  // A periodic one, while training goes on.
  s.set_step(50);
  CHECK(ProgressLine(s, 0) ==
        "clicks  50%  step 50/100  50,000 examples/s  loss 0.0000  auc 0.0000  eta 0.0 s  "
        "checkpoint 1.50 GiB of 3.00 GiB, 12 s left");
}

TEST_CASE("people read a summary", "[job_text]") {
  JobStatus untrained = Finished();
  untrained.set_examples(0);
  CHECK(JobSummary(untrained).find("trained on") == std::string::npos);
  CHECK(JobSummary(Finished()) ==
        "job clicks succeeded\n"
        "  AUC 0.8125, logloss 0.4500 on 1,000 held-out examples (step 100)\n"
        "  trained on 1,234,567 examples in 25 s, 49,982 examples/s\n"
        "  checkpoint /c/step-000000000100\n"
        "  model hash 00112233445566778899aabbccddeeff\n");
  JobStatus lost = Finished();
  lost.set_lost_local_steps(12);
  CHECK(
      JobSummary(lost).find("  at most 12 local steps were lost with workers, and done again\n") !=
      std::string::npos);
  JobStatus failed;
  failed.set_name("clicks");
  failed.set_state(FAILED);
  failed.add_conditions()->set_message("disk full");
  CHECK(JobSummary(failed) == "job clicks failed: disk full\n");
}

TEST_CASE("labels of one class have no AUC, and that is told", "[job_text]") {
  JobStatus s = Finished();
  EvaluationResult& result = *s.mutable_result();
  result.set_auc(0.5);
  result.set_positives(0);
  CHECK(JobSummary(s).find("  AUC is not defined (all 1,000 labels are 0), logloss 0.4500 on 1,000 "
                           "held-out examples (step 100)\n") != std::string::npos);
  nlohmann::json json = nlohmann::json::parse(JobJson(s));
  CHECK(json["auc"].is_null());
  CHECK(json["logloss"] == 0.45);
  CHECK(json["evaluatedPositives"] == 0);
  ListJobsReply jobs;
  *jobs.add_jobs() = s;
  CHECK(JobTable(jobs).find("0.5") == std::string::npos);
  result.set_positives(1000);
  CHECK(AucText(result) == "AUC is not defined (all 1,000 labels are 1)");
  *s.add_evaluations() = result;
  json = nlohmann::json::parse(JobJson(s))["evaluations"][0];
  CHECK(json["positives"] == 1000);
  CHECK(json["auc"].is_null());
  result.set_positives(999);
  CHECK(AucText(result) == "AUC 0.5000");
  // From before anybody counted.
  result.clear_positives();
  CHECK(AucText(result) == "AUC 0.5000");
  CHECK(nlohmann::json::parse(JobJson(s))["evaluatedPositives"].is_null());
}

TEST_CASE("a label of one class says why it has no AUC, as the short form does", "[job_text]") {
  EvaluationResult result;
  result.set_examples(1000);
  result.set_positives(10);
  result.set_auc(0.5);
  result.set_logloss(0.25);
  TaskResult& click = *result.add_tasks();
  click.set_label("click");
  click.set_examples(10);  // of the lines that have it
  click.set_positives(10);
  click.set_loss(0.25);
  click.set_logloss(0.25);
  CHECK(EvaluationText(result) ==
        "click: AUC is not defined (all 10 labels are 1), logloss 0.2500");
  JobStatus s = Finished();
  *s.mutable_result() = result;
  CHECK(nlohmann::json::parse(JobJson(s))["auc"].is_null());
  ListJobsReply jobs;
  *jobs.add_jobs() = s;
  CHECK(JobTable(jobs).find("0.5") == std::string::npos);
}

TEST_CASE("what a diverged model scores is told with the remedy", "[job_text]") {
  const std::string told =
      "nothing is defined (the model predicts what is no number; train anew with lower "
      "spec.optimizer learning rates, and look at the condition GradientsNotFinite)";
  JobStatus s = Finished();
  EvaluationResult& result = *s.mutable_result();
  const double none = std::numeric_limits<double>::quiet_NaN();
  result.set_positives(10);
  result.set_auc(none);
  result.set_logloss(none);
  result.set_calibration(none);
  CHECK(EvaluationText(result) == told);
  *s.add_evaluations() = result;
  const nlohmann::json json = nlohmann::json::parse(JobJson(s));
  CHECK(json["auc"].is_null());
  CHECK(json["logloss"].is_null());
  CHECK(json["evaluations"][0]["calibration"].is_null());
  TaskResult& click = *result.add_tasks();
  click.set_label("click");
  click.set_examples(1000);
  click.set_weight(1000);
  click.set_positives(GENERATE(10, 1000));
  CHECK(EvaluationText(result) == "click: " + told);
  s.set_state(RUNNING);
  s.set_training_loss(none);
  CHECK(TrainingText(s, ", AUC").find("loss is no finite number") == 0);
}

TEST_CASE("a metric of many digits is short", "[job_text]") {
  EvaluationResult result;
  TaskResult& visits = *result.add_tasks();
  visits.set_label("visits");
  visits.set_examples(300);
  visits.set_loss(1.1e36);
  visits.set_weight(300);
  visits.set_mse(3.8597363079105398e74);
  visits.set_mae(123456789.25);
  CHECK(EvaluationText(result) == "visits: mse 3.86e+74, mae 123456789.2500");
}

TEST_CASE("a first label that no line has is no result", "[job_text]") {
  JobStatus s = Finished();
  EvaluationResult& result = *s.mutable_result();
  result.set_auc(0.5);
  result.set_logloss(0);
  result.set_positives(0);
  result.add_tasks()->set_label("click");
  *s.add_evaluations() = result;
  const nlohmann::json json = nlohmann::json::parse(JobJson(s));
  CHECK(json["auc"].is_null());
  CHECK(json["logloss"].is_null());
  CHECK(json["evaluations"][0]["auc"].is_null());
  CHECK(json["evaluations"][0]["logloss"].is_null());
  CHECK(json["evaluations"][0]["calibration"].is_null());
  CHECK(EvaluationText(result) == "click: no line has it");
}

TEST_CASE("training without an AUC tells none", "[job_text][progress]") {
  JobStatus s = Finished();
  s.set_state(RUNNING);
  s.set_step(50);
  s.set_examples_per_second(50000);
  s.set_training_loss(0.5);
  s.set_training_auc(std::numeric_limits<double>::quiet_NaN());
  CHECK(nlohmann::json::parse(JobJson(s))["trainingAuc"].is_null());
  CHECK(ProgressLine(s, 0) ==
        "clicks  50%  step 50/100  50,000 examples/s  loss 0.5000  eta 0.0 s");
  CHECK(JobDetails(s).find("  50,000 examples/s, loss 0.5000 while training\n") !=
        std::string::npos);
  s.set_training_auc(0.75);
  CHECK(JobDetails(s).find("  50,000 examples/s, loss 0.5000, AUC 0.7500 while training\n") !=
        std::string::npos);
}

TEST_CASE("tables line up", "[job_text]") {
  ListJobsReply jobs;
  CHECK(JobTable(jobs) == "no jobs\n");
  *jobs.add_jobs() = Finished();
  CHECK(JobTable(jobs) ==
        "JOB  NAME    STATE      DONE  EXAMPLES   EXAMPLES/S  AUC\n"
        "7    clicks  succeeded  100%  1,234,567  49,982      0.8125\n");
}

TEST_CASE("numbers and times are written for people", "[job_text]") {
  CHECK(WithCommas(0) == "0");
  CHECK(WithCommas(999) == "999");
  CHECK(WithCommas(1000) == "1,000");
  CHECK(WithCommas(1234567890) == "1,234,567,890");
  CHECK(Duration(0.25) == "0.2 s");
  CHECK(Duration(59) == "59 s");
  CHECK(Duration(185) == "3:05");
  CHECK(Duration(7385) == "2:03:05");
  CHECK(Duration(-1) == "?");
}

TEST_CASE("progress fits the terminal", "[progress]") {
  JobStatus s = Finished();
  CHECK(ProgressLine(s, 0) == "clicks succeeded");
  s.set_state(RUNNING);
  s.set_examples_per_second(50000.4);
  s.set_step(50);
  s.set_examples(617283);
  s.set_training_loss(0.5);
  s.set_training_auc(0.75);
  CHECK(ProgressLine(s, 0) ==
        "clicks  50%  step 50/100  50,000 examples/s  loss 0.5000  auc 0.7500  eta 12 s");
  CHECK(ProgressLine(s, 120).substr(0, 33) == "[###############...............] ");
  for (int width : {1, 10, 40, 80, 100, 200}) {
    CHECK(static_cast<int>(ProgressLine(s, width).size()) < std::max(width, 2));
  }
}

TEST_CASE("plain progress tells each condition once and rations lines", "[progress]") {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  ProgressOptions options;
  options.out = out;
  {
    ProgressPrinter printer(options);
    JobStatus s = Finished();
    s.set_state(RUNNING);
    s.clear_evaluations();
    s.add_conditions()->set_reason("Started");
    s.mutable_conditions(0)->set_message("on 2 workers");
    absl::Time now = absl::UnixEpoch();
    for (int step = 10; step <= 30; ++step) {
      s.set_step(step);
      printer.Show(s, now);
      now += absl::Milliseconds(500);
    }
  }
  std::fclose(out);
  const std::string shown(text, size);
  std::free(text);
  CHECK(shown.find("clicks Started: on 2 workers\n") == 0);
  CHECK(shown.find("Started", 10) == std::string::npos);
  CHECK(std::count(shown.begin(), shown.end(), '\n') == 1 + 3);  // at 0, 5 and 10 seconds
  CHECK(shown.find('\x1b') == std::string::npos);
}

TEST_CASE("new conditions are shown also where the scheduler drops old ones", "[progress]") {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  ProgressOptions options;
  options.out = out;
  {
    ProgressPrinter printer(options);
    JobStatus s;
    s.set_name("j");
    s.set_state(PENDING);
    const auto say = [&](const std::string& reason, const std::string& message) {
      JobCondition* c = s.add_conditions();
      c->set_reason(reason);
      c->set_message(message);
      c->set_time_unix_ms(1000);  // all of one moment
    };
    const auto show = [&] { printer.Show(s, absl::UnixEpoch()); };
    say("A", "0");
    show();
    say("B", "1");
    say("A", "2");
    show();
    s.mutable_conditions()->DeleteSubrange(0, 2);  // the oldest
    say("B", "3");
    show();
    show();
    s.mutable_conditions(1)->set_message("3, with another text");  // takes the place of it
    show();
    say("C", "4");
    show();
    s.clear_conditions();  // so many that it knows none of them
    say("D", "5");
    show();
  }
  std::fclose(out);
  std::string shown(text, size);
  std::free(text);
  shown.erase(shown.find("j pending\n"), std::string("j pending\n").size());
  CHECK(shown == "j A: 0\nj B: 1\nj A: 2\nj B: 3\nj C: 4\nj D: 5\n");
}

TEST_CASE("evaluations of several labels tell of each", "[job_text]") {
  EvaluationResult result;
  result.set_auc(0.5);
  result.set_logloss(0.75);
  result.set_examples(1000);
  CHECK(EvaluationText(result) == "AUC 0.5000, logloss 0.7500");
  TaskResult* stars = result.add_tasks();
  stars->set_label("stars");
  stars->set_examples(900);
  stars->set_mse(0.912);
  stars->set_mae(0.7);
  stars->set_loss(0.75);
  TaskResult* click = result.add_tasks();
  click->set_label("click");
  click->set_examples(10);
  click->set_positives(4);
  click->set_auc(0.8125);
  click->set_normalised_entropy(0.9);
  click->set_gauc(0.7);
  result.add_tasks()->set_label("buy");
  CHECK(EvaluationText(result) ==
        "stars: mse 0.9120, mae 0.7000; click: AUC 0.8125, normalised entropy 0.9000, GAUC 0.7000; "
        "buy: no line has it");
  // Whatever metrics were asked for, a label has its loss.
  stars->clear_mse();
  stars->clear_mae();
  CHECK(EvaluationText(result).find("stars: loss 0.7500; click: AUC") == 0);
  stars->set_mse(0.912);
  JobStatus status;
  *status.mutable_result() = *status.add_evaluations() = result;
  const auto json = nlohmann::json::parse(JobJson(status));
  CHECK(json["auc"].is_null());  // the first label is no class
  CHECK(json["logloss"] == 0.75);
  const auto& tasks = json["evaluations"][0]["tasks"];
  REQUIRE(tasks.size() == 3);
  CHECK((tasks[0]["mse"] == 0.912 && tasks[0]["auc"].is_null() && tasks[0]["positives"].is_null()));
  CHECK((tasks[1]["auc"] == 0.8125 && tasks[1]["ne"] == 0.9 && tasks[1]["positives"] == 4));
  CHECK(tasks[1]["loss"].is_null());
}

}  // namespace
}  // namespace strata
