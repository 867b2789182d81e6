// What users are told of durations, whose beginning an earlier run of the scheduler has seen.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/strata/control.pb.h"
#include "scheduler/store/memory_metadata_store.h"
#include "scheduler/store/rocks_metadata_store.h"
#include "tests/scheduler/failing_store.h"
#include "tests/scheduler/one_job.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

// A scheduler whose runs have clocks of their own, and a job whose nodes live on.
class Cluster {
 public:
  Cluster() { Run(absl::Hours(24)); }

  // Kills the scheduler and starts it where the wall clock is so long after that of ManualTimer.
  void Run(absl::Duration set_to) {
    fails_ = true;
    scheduler_.reset();
    fails_ = false;
    timer_ = std::make_unique<ManualTimer>();
    timer_->Advance(set_to);
    auto store = OpenRocksMetadataStore(folder_.path() + "/metadata");
    REQUIRE(store.ok());
    scheduler_ = Start(std::make_unique<FailingStore>(&fails_, *std::move(store)), timer_.get());
  }
  // The nodes report, and nothing is computed.
  void Pass(absl::Duration time) {
    timer_->Advance(time);
    Report();
  }
  // Nobody reports before the scheduler dies.
  void PassUnheard(absl::Duration time) { timer_->Advance(time); }

  void Begin() {
    SubmitRequest request = Job("job", folder_.path() + "/c");
    request.mutable_job()->mutable_spec()->mutable_checkpoint()->set_every_steps(every_steps);
    REQUIRE(scheduler_->Submit(request, kTimeout).ok());
    nodes_.works = false;
    nodes_.Until(*scheduler_, [this] { return status().state() == RUNNING; });
  }
  void Finish() {
    nodes_.works = true;
    nodes_.Until(*scheduler_, [this] { return status().state() == SUCCEEDED; });
  }
  JobStatus status() { return Get(*scheduler_, "job"); }
  double train_seconds() { return status().train_seconds(); }
  std::string last_condition() { return status().conditions().rbegin()->message(); }

  bool server_has_trouble = false;
  bool worker_is_silent = false;
  uint64_t every_steps = 0;
  CutReport cut;          // of the server, where it has a number
  RefusedRow refused;     // where it was refused
  RefusedRow not_finite;  // of the worker, where it has a key
  WorkerJobReport more;   // of the worker, beside what it reports

 private:
  void Report() {
    NodeReport report = nodes_.servers.at("s0").Report();
    if (server_has_trouble) {
      report.mutable_server_jobs(0)->add_troubles()->set_reason("DiskFull");
    }
    if (cut.cut() > 0) *report.mutable_server_jobs(0)->add_cuts() = cut;
    if (refused.refused() > 0) *report.mutable_server_jobs(0)->add_refused() = refused;
    REQUIRE(scheduler_->Sync(report, kTimeout).ok());
    if (worker_is_silent) return;
    NodeReport of_worker = nodes_.worker.Report();
    if (not_finite.key() > 0) *of_worker.mutable_worker_jobs(0)->add_not_finite() = not_finite;
    for (WorkerJobReport& job : *of_worker.mutable_worker_jobs()) job.MergeFrom(more);
    REQUIRE(scheduler_->Sync(of_worker, kTimeout).ok());
  }

  const TempFolder folder_;
  Nodes nodes_;
  bool fails_ = false;
  std::unique_ptr<ManualTimer> timer_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_CASE("the time of training is added up run by run, wherever the clock was set between",
          "[scheduler]") {
  const absl::Duration set_to = GENERATE(absl::ZeroDuration(), absl::Hours(48));
  Cluster cluster;
  cluster.Begin();
  CHECK(cluster.train_seconds() == 0);
  cluster.Pass(absl::Seconds(30));
  CHECK(cluster.train_seconds() == 30);
  cluster.PassUnheard(absl::Seconds(9));  // less than is stored
  CHECK(cluster.train_seconds() == 39);
  cluster.Run(set_to);
  CHECK(cluster.train_seconds() == 30);
  cluster.Pass(absl::Milliseconds(5500));
  CHECK(cluster.train_seconds() == 35.5);
  cluster.Finish();
  CHECK(cluster.train_seconds() == 35.5);
  cluster.Pass(absl::Hours(1));
  CHECK(cluster.train_seconds() == 35.5);
  cluster.Run(absl::Hours(24));
  CHECK(cluster.train_seconds() == 35.5);
}

TEST_CASE("too many bad lines end a job, and the first one is named", "[scheduler]") {
  Cluster cluster;
  cluster.Begin();
  cluster.more.set_bad_lines(1);
  Trouble& trouble = *cluster.more.add_troubles();
  trouble.set_reason("LinesAreBad");
  trouble.set_message("the first bad line is train.csv:3:1: label \"x\"");
  cluster.Pass(absl::Seconds(1));
  CHECK(cluster.status().state() == FAILED);
  CHECK(cluster.last_condition() ==
        "1 bad lines; spec.data.maxBadLines is 0; the first bad line is train.csv:3:1: label "
        "\"x\"; mend such lines, or raise the limit");
}

TEST_CASE("the checkpoint that is being written has bytes and a time left", "[scheduler]") {
  Cluster cluster;
  cluster.every_steps = 4;
  cluster.Begin();
  CHECK(cluster.status().checkpoint_bytes() == 0);
  cluster.cut.set_cut(99);  // one that nobody asked for
  cluster.cut.set_total_bytes(1);
  cluster.Pass(absl::Seconds(1));
  CHECK(cluster.status().checkpoint_bytes() == 0);
  cluster.cut.set_cut(1);
  cluster.cut.set_written_bytes(100);
  cluster.cut.set_total_bytes(1000);
  cluster.Pass(absl::Seconds(1));
  CHECK(cluster.status().checkpoint_written_bytes() == 100);
  CHECK(cluster.status().checkpoint_bytes() == 1000);
  CHECK(cluster.status().checkpoint_seconds_left() == 0);
  cluster.cut.set_written_bytes(400);
  cluster.Pass(absl::Seconds(1));
  CHECK(cluster.status().checkpoint_written_bytes() == 400);
  CHECK(cluster.status().checkpoint_seconds_left() == 2);
  cluster.cut.set_cut(0);
  cluster.Finish();
  CHECK(cluster.status().checkpoint_bytes() == 0);
  CHECK(cluster.status().checkpoint_written_bytes() == 0);
}

// A synchronous job that runs on two workers of a lane each.
struct TwoWorkers {
  TwoWorkers() {
    nodes.works = false;
    other.Start(3);
    SubmitRequest request = Job("job", folder.path() + "/c");
    request.mutable_job()->mutable_spec()->mutable_replicas()->set_workers(2);
    REQUIRE(scheduler->Submit(request, kTimeout).ok());
    nodes.Until(*scheduler, [&] {
      auto told = scheduler->Sync(other.Report(), kTimeout);
      REQUIRE(told.ok());
      other.Act(*told);
      return status().state() == RUNNING;
    });
  }
  JobStatus status() const { return Get(*scheduler, "job"); }
  // The worker reports, with that. True when it has lane 0.
  bool Say(const SimWorker& worker, const std::function<void(WorkerJobReport&)>& fill) const {
    NodeReport report = worker.Report();
    REQUIRE(report.worker_jobs_size() == 1);
    fill(*report.mutable_worker_jobs(0));
    report.set_seen_version(0);
    const auto told = scheduler->Sync(report, kTimeout);
    REQUIRE(told.ok());
    REQUIRE(told->worker_jobs(0).lanes_size() == 1);
    return told->worker_jobs(0).lanes(0) == 0;
  }

  const TempFolder folder;
  ManualTimer timer;
  std::unique_ptr<Scheduler> scheduler = Start(MakeMemoryMetadataStore(), &timer);
  Nodes nodes;
  SimWorker other{"w1", nodes.job, &nodes.servers};
};

TEST_CASE(
    "bsp: the rate is that of lane 0's host, for all lanes; the AUC is of workers that have one",
    "[scheduler]") {
  const TwoWorkers two;
  const SimWorker &worker = two.nodes.worker, &other = two.other;
  const double none = std::numeric_limits<double>::quiet_NaN();
  const auto say = [&two](const SimWorker& of, double rate, double auc) {
    return two.Say(of, [&](WorkerJobReport& report) {
      report.set_examples_per_second(rate);
      report.set_examples(10);
      report.set_training_auc(auc);
      report.set_training_auc_weight(std::isnan(auc) ? 0 : 10);
    });
  };
  // It evaluates, and its clock stands; to the other one a step takes long.
  const bool first_hosts = say(worker, 100, none);
  say(other, 100, none);
  CHECK(std::isnan(two.status().training_auc()));
  say(first_hosts ? other : worker, 1, 0.75);
  CHECK(two.status().training_auc() == 0.75);
  CHECK(two.status().examples_per_second() == 200);
  // One that has measured nothing yet: what the others have.
  say(first_hosts ? worker : other, 0, 0.25);
  CHECK(two.status().training_auc() == 0.5);
  CHECK(two.status().examples_per_second() == 1);
}

// Examples of one worker weigh more than those of the other, and not all have the first label.
TEST_CASE("loss and AUC of training are means by the weights of what was measured", "[scheduler]") {
  const TwoWorkers two;
  const auto say = [&two](const SimWorker& of, double weight, double loss, double auc_weight,
                          double auc) {
    two.Say(of, [&](WorkerJobReport& report) {
      report.set_examples(10);
      report.set_training_weight(weight);
      report.set_training_loss(loss);
      report.set_training_auc_weight(auc_weight);
      report.set_training_auc(auc);
    });
  };
  say(two.nodes.worker, 30, 0.25, 1, 0.5);
  say(two.other, 10, 0.75, 3, 0.75);
  CHECK(two.status().training_loss() == 0.375);
  CHECK(two.status().training_auc() == 0.6875);
  // One whose examples weigh nothing has no mean.
  say(two.other, 0, 0, 0, std::numeric_limits<double>::quiet_NaN());
  CHECK(two.status().training_loss() == 0.25);
  CHECK(two.status().training_auc() == 0.5);
}

// A cluster's workers meet the lines of a bad file together.
TEST_CASE("of two workers that fail at once the first one's text is the job's, whole",
          "[scheduler]") {
  const bool fatal = GENERATE(false, true);
  CAPTURE(fatal);
  const TwoWorkers two;
  const auto line = [](int worker) {
    return absl::StrCat("/data/", std::string(2000, 'x'), worker, ".csv:3:", worker,
                        ": column price: \"dear\" is not a finite number");
  };
  const std::string remedy = " (mend the line, or set spec.data.maxBadLines to skip such lines)";
  int number = 0;
  for (const SimWorker* worker : {&two.other, &two.nodes.worker}) {
    NodeReport report = worker->Report();
    REQUIRE(report.worker_jobs_size() == 1);
    WorkerJobReport& job = *report.mutable_worker_jobs(0);
    ++number;
    if (fatal) {
      job.set_fatal(line(number) + remedy);
    } else {
      job.set_bad_lines(1);
      Trouble& trouble = *job.add_troubles();
      trouble.set_reason("LinesAreBad");
      trouble.set_message("the first bad line is " + line(number));
    }
    report.set_seen_version(0);
    REQUIRE(two.scheduler->Sync(report, kTimeout).ok());
  }
  const JobStatus status = two.status();
  REQUIRE(status.state() == FAILED);
  CHECK(status.conditions().rbegin()->message() ==
        (fatal ? absl::StrCat("w1: ", line(1), remedy)
               : absl::StrCat("1 bad lines; spec.data.maxBadLines is 0; the first bad line is ",
                              line(1), "; mend such lines, or raise the limit")));
  for (const JobCondition& condition : status.conditions()) {
    CHECK_FALSE(absl::StrContains(condition.message(), line(2)));
  }
}

// The job's numbers would be those of the workers that have some.
TEST_CASE("a worker that diverged leaves the job no loss and no AUC", "[scheduler]") {
  const TwoWorkers two;
  const double none = std::numeric_limits<double>::quiet_NaN();
  const auto say = [&two](const SimWorker& of, double loss, double auc) {
    two.Say(of, [&](WorkerJobReport& report) {
      report.set_examples(10);
      report.set_training_weight(10);
      report.set_training_loss(loss);
      report.set_training_auc_weight(std::isnan(auc) ? 0 : 10);
      report.set_training_auc(auc);
    });
  };
  say(two.nodes.worker, 0.25, 0.75);
  const double loss = GENERATE_COPY(none, std::numeric_limits<double>::infinity());
  say(two.other, loss, none);
  CHECK_FALSE(std::isfinite(two.status().training_loss()));
  CHECK(std::isnan(two.status().training_auc()));
  // By another label than the first, whose AUC is defined.
  say(two.other, loss, 0.25);
  CHECK_FALSE(std::isfinite(two.status().training_loss()));
  CHECK(two.status().training_auc() == 0.5);
  // One class alone is no divergence.
  say(two.other, 0.5, none);
  CHECK(two.status().training_loss() == 0.375);
  CHECK(two.status().training_auc() == 0.75);
}

TEST_CASE("rows that were refused outlive the scheduler", "[scheduler]") {
  Cluster cluster;
  cluster.Begin();
  CHECK(cluster.status().refused_size() == 0);
  cluster.refused.set_table(1);
  cluster.refused.set_key(7);
  cluster.refused.set_field("bias");
  cluster.refused.set_refused(3);
  cluster.Pass(absl::Seconds(1));
  cluster.refused.set_refused(0);
  cluster.Run(absl::Hours(24));
  cluster.Finish();
  REQUIRE(cluster.status().refused_size() == 1);
  CHECK(cluster.status().refused(0).key() == 7);
  CHECK(cluster.status().refused(0).field() == "bias");
  CHECK(cluster.status().refused(0).refused() == 3);
}

TEST_CASE("a worker tells the field of a row that a server refused, before or after it",
          "[scheduler]") {
  const bool server_first = GENERATE(true, false);
  Cluster cluster;
  cluster.Begin();
  RefusedRow row;
  row.set_key(7);
  const auto server = [&] {
    cluster.refused = row;
    cluster.refused.set_refused(3);
    cluster.Pass(absl::Seconds(1));
  };
  const auto worker = [&] {
    cluster.not_finite = row;
    cluster.not_finite.set_field("user");
    cluster.Pass(absl::Seconds(1));
  };
  if (server_first) {
    server();
    REQUIRE(cluster.status().refused_size() == 1);
    CHECK(cluster.status().refused(0).field().empty());
    worker();
  } else {
    worker();
    CHECK(cluster.status().refused_size() == 0);
    cluster.worker_is_silent = true;  // it has said all, and is done
    server();
  }
  cluster.worker_is_silent = false;
  REQUIRE(cluster.status().refused_size() == 1);
  CHECK(cluster.status().refused(0).field() == "user");
  CHECK(cluster.status().refused(0).refused() == 3);
  cluster.not_finite.set_key(0);
  cluster.Run(absl::Hours(24));
  CHECK(cluster.status().refused(0).field() == "user");
}

TEST_CASE("a trouble that stands over a restart lasts as long as schedulers heard of it",
          "[scheduler]") {
  const absl::Duration set_to = GENERATE(absl::ZeroDuration(), absl::Hours(48));
  Cluster cluster;
  cluster.Begin();
  cluster.server_has_trouble = true;
  cluster.Pass(absl::Seconds(1));
  cluster.Pass(absl::Seconds(30));
  cluster.Run(set_to);
  cluster.Pass(absl::Seconds(5));
  cluster.server_has_trouble = false;
  cluster.Pass(absl::Seconds(2));
  CHECK(cluster.last_condition() == "s0: DiskFull is over after 37s");
}

}  // namespace
}  // namespace strata::scheduler
