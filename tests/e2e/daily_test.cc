// Daily training: jobs that resume with more files than before read the new ones alone, and jobs
// that start from yesterday's checkpoint.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/damage_checkpoint.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/embedded.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr int kLines = 300;

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  REQUIRE(!text.str().empty());
  return text.str();
}

// The small job on a folder of days, which begin as two; nothing in it depends on the step's
// number but what Adam's state goes with.
class Days {
 public:
  explicit Days(const std::string& mode = "bsp") : folder_(Folder()) {
    job_ = testing::SmallJob(folder_.path());
    fs::create_directory(folder_.path() + "/days");
    Add(1);
    Add(2);
    JobSpec& spec = *job_.mutable_spec();
    spec.mutable_data()->set_train(0, folder_.path() + "/days");
    // The optimizers' state counts commits: Adam's.
    spec.mutable_optimizer()->mutable_sparse()->set_type("adam");
    spec.mutable_optimizer()->mutable_dense()->set_type("adam");
    spec.mutable_training()->set_mode(mode);
    if (mode != "bsp") {  // one lane's windows have one order; shuffled, it goes by tasks' numbers
      spec.mutable_training()->set_lanes(1);
      spec.mutable_data()->mutable_shuffle()->set_enabled(false);
    }
    spec.mutable_training()->set_epochs(2);
    spec.mutable_checkpoint()->set_directory(folder_.path() + "/checkpoints");
    spec.mutable_output()->set_predictions(folder_.path() + "/predictions");
  }

  std::string Day(int day) const {
    return folder_.path() + "/days/day" + std::to_string(day) + ".libfm";
  }
  void Add(int day, int lines = kLines) {
    testing::WriteLibfm(Day(day), static_cast<uint64_t>(10 + day), lines, 6, 40 + 10 * day);
  }

  JobSpec& spec() { return *job_.mutable_spec(); }
  const TrainingJob& job() const { return job_; }
  std::string checkpoints() const { return folder_.path() + "/checkpoints"; }
  const std::string& path() const { return folder_.path(); }
  std::string Predictions() const { return ReadAll(folder_.path() + "/predictions"); }

  // Of a job that resumes and must end so.
  JobStatus Ends(JobState state) const {
    EmbeddedOptions options;
    options.job = job_;
    options.resume = true;
    const auto status = RunEmbedded(options);
    INFO(status.status());
    REQUIRE(status.ok());
    for (const JobCondition& c : status->conditions())
      UNSCOPED_INFO(c.reason() << ": " << c.message());
    REQUIRE(status->state() == state);
    return *status;
  }

  // The same days once more, at `where` of the servers and workers.
  void KeepCheckpoints() const {
    fs::copy(checkpoints(), folder_.path() + "/kept", fs::copy_options::recursive);
  }
  void PutBackCheckpoints() const {
    fs::remove_all(checkpoints());
    fs::copy(folder_.path() + "/kept", checkpoints(), fs::copy_options::recursive);
  }

 private:
  ScratchFolder folder_;
  TrainingJob job_;
};

std::string Says(const JobStatus& status, const std::string& reason) {
  std::string text;
  for (const JobCondition& c : status.conditions()) {
    if (c.reason() == reason) text = c.message();
  }
  return text;
}

// The oracle is a job that never saw the days before: it has their rows by spec.model.initFrom, and
// today's file alone. Adam's count of commits comes with its state, and no other rule of these jobs
// depends on the number of a step.
TEST_CASE("a growing folder resumes: the new day is all that is read", "[e2e][daily]") {
  const std::string mode = GENERATE("bsp", "async", "downpour");
  CAPTURE(mode);
  Days days(mode);
  const JobStatus two = Train(days.job());
  CHECK(two.examples() == 4 * kLines);

  days.Add(3, 200);
  const JobStatus three = Train(days.job(), /*resume=*/true);
  const std::string resumed = days.Predictions();
  CHECK(three.examples() == 4 * kLines + 2 * 200);
  CHECK(three.total_examples() == 4 * kLines + 2 * 200);
  CHECK_THAT(Says(three, "ResumesFrom"),
             Catch::Contains("2 training files were read before; reads 1: " + days.Day(3)));

  TrainingJob today = days.job();
  today.mutable_spec()->mutable_data()->set_train(0, days.Day(3));
  today.mutable_spec()->mutable_model()->mutable_init_from()->set_checkpoint(two.checkpoint());
  today.mutable_spec()->mutable_checkpoint()->set_directory(days.path() + "/today");
  const JobStatus anew = Train(today);
  CHECK(days.Predictions() == resumed);
  CHECK(anew.total_steps() == three.total_steps() - two.total_steps());
  // The mapping report.
  CHECK_THAT(Says(anew, "StartsFrom"), Catch::Contains("loaded: table features, tensor bias"));
  // Nothing of day 3 is left, and the next day goes on from there.
  Train(days.job(), true);
  CHECK(days.Predictions() == resumed);
  days.Add(4, 100);
  const JobStatus four = Train(days.job(), true);
  CHECK(four.examples() == three.examples() + 2 * 100);
  CHECK_THAT(Says(four, "ResumesFrom"),
             Catch::Contains("3 training files were read before; reads 1: " + days.Day(4)));
}

// The manifest would say that all of one epoch's tasks are closed, and that the next file's are
// not; shards know windows of those numbers, and would drop them as repeated.
TEST_CASE("fewer epochs on a day without data are refused, and the next day is trained",
          "[e2e][daily]") {
  const std::string mode = GENERATE("bsp", "async", "downpour", "easgd");
  CAPTURE(mode);
  Days days(mode);
  Train(days.job());
  days.spec().mutable_training()->set_epochs(1);
  CHECK_THAT(Says(days.Ends(FAILED), "NothingToTrain"),
             Catch::StartsWith("spec.training.epochs: 1 epochs of this input are ") &&
                 Catch::EndsWith("; give more epochs, or start anew with --overwrite"));
  days.Add(3, 200);
  CHECK(Train(days.job(), /*resume=*/true).examples() == 4 * kLines + 200);
}

TEST_CASE("bad lines of days before are no reason to end a new one", "[e2e][daily]") {
  const std::string mode = GENERATE("bsp", "async");
  CAPTURE(mode);
  Days days(mode);
  days.spec().mutable_training()->set_epochs(1);
  days.spec().mutable_data()->set_max_bad_lines(2);
  const auto spoil = [&](int day, int lines) {
    for (int i = 0; i < lines; ++i) std::ofstream(days.Day(day), std::ios::app) << "1 x:1\n";
  };
  spoil(1, 2);
  CHECK(Train(days.job()).bad_lines() == 2);
  days.Add(3);
  spoil(3, 2);
  CHECK(Train(days.job(), /*resume=*/true).bad_lines() == 4);
  CHECK(Train(days.job(), /*resume=*/true).bad_lines() == 4);  // which has nothing to read
  days.Add(4);
  spoil(4, 3);
  CHECK_THAT(Says(days.Ends(FAILED), "TooManyBadLines"),
             Catch::StartsWith("3 bad lines; spec.data.maxBadLines is 2"));
}

TEST_CASE("nor are those of a run that patience ended", "[e2e][daily]") {
  Days days;
  days.spec().mutable_training()->set_epochs(20);
  days.spec().mutable_optimizer()->mutable_sparse()->set_learning_rate(0.05f);
  days.spec().mutable_evaluation()->set_every_steps(5);
  days.spec().mutable_evaluation()->set_patience(4);
  days.spec().mutable_data()->set_max_bad_lines(40);
  std::ofstream(days.Day(1), std::ios::app) << "1 x:1\n1 x:1\n";
  const JobStatus two = Train(days.job());
  REQUIRE(two.step() < two.total_steps());
  REQUIRE(two.bad_lines() > 0);
  days.Add(3);
  std::ofstream(days.Day(3), std::ios::app) << "1 x:1\n";
  days.spec().mutable_training()->set_epochs(2);
  days.spec().mutable_evaluation()->set_patience(0);
  days.spec().mutable_data()->set_max_bad_lines(2);
  CHECK(Train(days.job(), /*resume=*/true).bad_lines() > 2);
}

TEST_CASE("what a grown list makes depends on no number of servers and workers, nor on a stop",
          "[e2e][daily]") {
  Days days;
  Train(days.job());
  days.KeepCheckpoints();
  days.Add(3, 200);
  days.Add(4, 150);
  const JobStatus one = Train(days.job(), true);

  days.PutBackCheckpoints();
  days.spec().mutable_replicas()->set_servers(3);
  days.spec().mutable_replicas()->set_workers(2);
  days.spec().mutable_checkpoint()->set_every_steps(4);
  CHECK(Train(days.job(), true).model_hash() == one.model_hash());

  // Stopped in the midst of the new days, and resumed on other numbers again.
  days.PutBackCheckpoints();
  const uint64_t before = one.total_steps() - 2 * 6;  // of 350 lines, 4 lanes x 16
  std::atomic<bool> stop = false;
  EmbeddedOptions options;
  options.job = days.job();
  options.resume = true;
  options.stop = &stop;
  options.on_progress = [&](const JobStatus& status) {
    if (status.step() > before) stop = true;
  };
  const auto stopped = RunEmbedded(options);
  REQUIRE(stopped.ok());
  days.spec().mutable_replicas()->set_servers(2);
  days.spec().mutable_replicas()->set_workers(3);
  const JobStatus last = Train(days.job(), true);
  CHECK(last.model_hash() == one.model_hash());
  CHECK(last.examples() == 4 * kLines + 2 * 350);
}

// The best step counts as the end of the days before, whether training stopped after it or not.
TEST_CASE("a run that patience ended takes a new day, to the same bits on any cluster",
          "[e2e][daily]") {
  Days days;
  days.spec().mutable_training()->set_epochs(20);  // far past where 600 lines are known by heart
  days.spec().mutable_optimizer()->mutable_sparse()->set_learning_rate(0.05f);
  days.spec().mutable_evaluation()->set_every_steps(5);
  days.spec().mutable_evaluation()->set_patience(GENERATE(4, 1000));
  const JobStatus two = Train(days.job());
  const uint64_t best = two.step();
  REQUIRE(best < two.total_steps());
  days.KeepCheckpoints();

  days.Add(3, 200);
  days.spec().mutable_training()->set_epochs(2);
  days.spec().mutable_evaluation()->set_patience(0);
  const JobStatus one = Train(days.job(), /*resume=*/true);
  const std::string resumed = days.Predictions();
  CHECK(one.total_steps() == best + 2 * 4);  // of 200 lines, 4 lanes x 16
  CHECK(one.examples() == two.examples() + 2 * 200);
  CHECK_THAT(Says(one, "ResumesFrom"),
             Catch::Contains("2 training files were read before; reads 1: " + days.Day(3)));

  days.PutBackCheckpoints();
  days.spec().mutable_replicas()->set_servers(3);
  days.spec().mutable_replicas()->set_workers(2);
  CHECK(Train(days.job(), true).model_hash() == one.model_hash());
  days.Add(4, 100);
  CHECK(Train(days.job(), true).examples() == one.examples() + 2 * 100);

  TrainingJob today = days.job();
  today.mutable_spec()->mutable_data()->set_train(0, days.Day(3));
  today.mutable_spec()->mutable_model()->mutable_init_from()->set_checkpoint(
      days.path() + "/kept" + two.checkpoint().substr(days.checkpoints().size()));
  today.mutable_spec()->mutable_checkpoint()->set_directory(days.path() + "/today");
  Train(today);
  CHECK(days.Predictions() == resumed);
}

TEST_CASE("where a run ended is written again until it is kept, or said not to be",
          "[e2e][daily]") {
  Days days;
  days.spec().mutable_training()->set_epochs(20);
  days.spec().mutable_optimizer()->mutable_sparse()->set_learning_rate(0.05f);
  days.spec().mutable_evaluation()->set_every_steps(5);
  days.spec().mutable_evaluation()->set_patience(4);
  const bool passes = GENERATE(true, false);
  JobStatus two;
  {
    const absl::Status why =
        passes ? absl::ResourceExhaustedError("no room") : absl::PermissionDeniedError("not yours");
    const ScopedFailpoint fails("scheduler.run.end", {.act = FailWith(why), .hits = 1});
    two = Train(days.job());
  }
  const std::string said = Says(two, "CheckpointFailed");
  CHECK_THAT(said, Catch::Contains("its newest checkpoint cannot say that the run ended at step " +
                                   std::to_string(two.step())));
  CHECK_THAT(said, Catch::Contains(passes ? "no room; the job tries again in 1 s"
                                          : "not yours; a job that resumes from it with more"));
  days.Add(3);
  if (passes) {
    days.Ends(SUCCEEDED);
  } else {
    CHECK_THAT(Says(days.Ends(FAILED), "DataDoNotFit"), Catch::Contains(" is new, but "));
  }
}

// Days of csv, with column item.
void MakeCsv(Days& days) {
  DataSpec& data = *days.spec().mutable_data();
  data.set_format("csv");
  data.clear_eval();
  data.mutable_columns()->add_categorical("item");
  data.mutable_columns()->add_ignored("*");
  days.spec().clear_output();
}

// Where the days before have all that the new one lacks.
TEST_CASE("a new day that has nothing to learn is told", "[e2e][daily]") {
  Days days;
  MakeCsv(days);
  days.spec().add_labels()->set_name("click");
  days.spec().set_sample_weight("w");
  const auto write = [&](int day, const std::string& targets) {
    std::ofstream out(days.Day(day));
    out << "item,click,w\n";
    for (int line = 0; line < kLines; ++line) out << 'i' << line % 7 << ',' << targets << '\n';
  };
  write(1, "1,1");
  write(2, "0,1");
  Train(days.job());
  const auto refused = [&] { return Says(days.Ends(FAILED), "WorkerFailed"); };
  SECTION("no line has a weight") {
    write(3, "1,0");
    CHECK_THAT(refused(), Catch::Contains("input file " + days.Day(3) +
                                          ": column w gives no good "
                                          "line a weight above 0; mend it"));
    write(4, "1,0");
    CHECK_THAT(refused(), Catch::Contains("input file " + days.Day(3) + " and those after it: "));
  }
  SECTION("no line with a weight has a label") {
    write(3, ",1");
    CHECK_THAT(refused(), Catch::Contains("input file " + days.Day(3) +
                                          ": no good line of a weight "
                                          "above 0 has a label (column click); mend them"));
  }
  SECTION("one line is enough") {
    write(3, ",1");
    std::ofstream(days.Day(3), std::ios::app) << "i1,1,0.5\n";
    days.Ends(SUCCEEDED);
  }
  SECTION("or a line of a day that comes later") {
    write(3, ",1");
    CHECK_THAT(refused(), Catch::Contains("; mend them, or resume later, when further files have "
                                          "it (a file is read by one run alone)"));
    write(4, "1,1");
    days.Ends(SUCCEEDED);
  }
}

// What comes into its file afterwards, no run would read.
TEST_CASE("a new day without one of the labels is told", "[e2e][daily]") {
  Days days;
  MakeCsv(days);
  days.spec().add_labels()->set_name("click");
  days.spec().add_labels()->set_name("stars");
  days.spec().mutable_labels(1)->set_kind("real");
  const auto write = [&](int day, const std::string& last) {
    std::ofstream out(days.Day(day));
    out << "item,click,stars\n";
    for (int line = 0; line < kLines; ++line) out << 'i' << line % 7 << ',' << line % 2 << ",\n";
    out << "i1,,2x\ni1,1," << last << '\n';
  };
  days.spec().mutable_data()->set_max_bad_lines(100);
  write(1, "2.5");
  write(2, "");
  Train(days.job());
  write(3, "");
  const std::string refused = Says(days.Ends(FAILED), "WorkerFailed");
  CHECK_THAT(refused,
             Catch::Contains("input file " + days.Day(3) +
                             ": no good line has label stars (column stars), so there is nothing "
                             "to learn for it; mend them, or resume later, when further files have "
                             "it (a file is read by one run alone); the first bad line is " +
                             days.Day(3) + ":302:5: column stars: label stars: \"2x\" is not"));
  write(4, "1.5");
  days.Ends(SUCCEEDED);
}

TEST_CASE("old files that are gone, changed or elsewhere are named", "[e2e][daily]") {
  Days days;
  Train(days.job());
  const auto refused = [&] { return Says(days.Ends(FAILED), "DataDoNotFit"); };
  SECTION("gone") {
    fs::remove(days.Day(1));
    days.Add(3);
    CHECK_THAT(refused(), Catch::Contains("training file " + days.Day(1) +
                                          ", number 1 of the checkpoint to resume from, is not "
                                          "among the job's files any more") &&
                              Catch::Contains("spec.model.initFrom"));
  }
  SECTION("the last one gone, and none new") {
    fs::remove(days.Day(2));
    CHECK_THAT(refused(),
               Catch::Contains(days.Day(2) + ", number 2 of") && Catch::Contains("is not among"));
  }
  SECTION("changed") {
    std::ofstream(days.Day(2), std::ios::app) << "1 7:1\n";
    days.Add(3);
    CHECK_THAT(refused(), Catch::Contains(days.Day(2) + ", number 2 of") &&
                              Catch::Contains("has changed: it had "));
  }
  SECTION("a new one before them") {
    days.Add(0);
    CHECK_THAT(refused(), Catch::Contains(days.Day(1) + ", number 1 of") &&
                              Catch::Contains("is number 2 now"));
  }
  SECTION("in another folder they are the same") {
    fs::rename(days.path() + "/days", days.path() + "/moved");
    days.spec().mutable_data()->set_train(0, days.path() + "/moved");
    days.Ends(SUCCEEDED);
  }
}

TEST_CASE("more files are refused while the earlier ones are not read to the end", "[e2e][daily]") {
  Days days;
  days.spec().mutable_checkpoint()->set_every_steps(7);
  days.spec().mutable_checkpoint()->set_keep(5);
  const JobStatus two = Train(days.job());
  const std::string last = two.checkpoint();
  days.KeepCheckpoints();
  days.Add(3);
  SECTION("no checkpoint is of the end") {
    fs::remove_all(last);
    const std::string text = Says(days.Ends(FAILED), "DataDoNotFit");
    CHECK_THAT(text, Catch::Contains(days.Day(3) + " is new, but checkpoint ") &&
                         Catch::Contains("has not read the 2 training files before it to the end "
                                         "(step 14 of 20); resume with those alone first"));
    // As it says.
    fs::remove(days.Day(3));
    CHECK(days.Ends(SUCCEEDED).model_hash() == two.model_hash());
    days.Add(3);
    days.Ends(SUCCEEDED);
  }
  SECTION("the one of the end is damaged") {
    testing::FlipBit(last);
    days.spec().mutable_replicas()->set_servers(2);
    CHECK_THAT(
        Says(days.Ends(FAILED), "CheckpointBeforeNewFiles"),
        Catch::Contains("step-000000000014, the one before, is of a run without " + days.Day(3)));
  }
}

}  // namespace
}  // namespace strata
