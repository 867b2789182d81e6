// Promise P3 with what only makes the wire faster: tickets and prefetch, given, lost or refused;
// and with codecs, which change the model in the same way everywhere.
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "ops/cpu_features.h"
#include "proto/runtime/failpoints.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/disturbed_run.h"
#include "tests/e2e/reads_below.h"
#include "tests/e2e/small_job.h"
#include "tools/cluster/embedded.h"
#include "tools/cluster/embedded_cluster.h"
#include "tools/cluster/scratch_folder.h"

namespace strata {
namespace {

using Change = std::function<void(JobSpec&)>;

JobStatus Train(const TrainingJob& job, const Change& change) {
  EmbeddedOptions options;
  options.job = job;
  change(*options.job.mutable_spec());
  auto status = RunEmbedded(options);
  REQUIRE(status.ok());
  REQUIRE(status->state() == SUCCEEDED);
  return *status;
}

ScratchFolder Folder() {
  auto folder = ScratchFolder::Make("strata-test");
  REQUIRE(folder.ok());
  return *std::move(folder);
}

// Counts how often tickets were given and named, and refuses some of both.
class Tickets {
 public:
  // Of each: every n-th is refused; 0: none.
  Tickets(uint64_t refuse_give, uint64_t refuse_find)
      : give_("server.ticket.give", {.act = Every(refuse_give, given_)}),
        find_("server.ticket.find", {.act = Every(refuse_find, named_)}) {}
  uint64_t given() const { return given_; }
  uint64_t named() const { return named_; }

 private:
  static std::function<absl::Status()> Every(uint64_t n, std::atomic<uint64_t>& count) {
    return [n, &count] {
      const uint64_t i = ++count;
      if (n == 0 || i % n != 0) return absl::OkStatus();
      return absl::FailedPreconditionError("ticket 0: lost by the test");
    };
  }
  std::atomic<uint64_t> given_{0}, named_{0};
  ScopedFailpoint give_, find_;
};

// Too little for the rows of a ManyRowsJob on three servers.
const Change kOnSsd = [](JobSpec& s) { s.mutable_storage()->set_dram_bytes_per_server("96KiB"); };
const Change kThreeByThree = [](JobSpec& s) {
  s.mutable_replicas()->set_servers(3);
  s.mutable_replicas()->set_workers(3);
};
const Change kAsIs = [](JobSpec&) {};

// SmallJob with some 2,700 rows.
TrainingJob ManyRowsJob(const std::string& folder) {
  TrainingJob job = testing::SmallJob(folder);
  testing::WriteLibfm(folder + "/train.libfm", 1, 600, 6, 1000);
  return job;
}

// Train with kOnSsd, of which rows must have been read from there.
JobStatus TrainOnSsd(const TrainingJob& job, const Change& change) {
  const testing::ReadsBelow reads;
  const JobStatus status = Train(job, [&](JobSpec& s) {
    kOnSsd(s);
    change(s);
  });
  REQUIRE(reads.count() > 0);
  return status;
}

TEST_CASE("tickets and prefetch do not change the model", "[e2e][p3][ticket]") {
  const ScratchFolder folder = Folder();
  const TrainingJob job = ManyRowsJob(folder.path());
  std::string reference;
  {
    const Tickets none(/*refuse_give=*/1, 0);
    reference = Train(job, kAsIs).model_hash();
    CHECK(none.given() > 0);  // wished for
    CHECK(none.named() == 0);
  }
  struct Case {
    const char* what;
    JobStatus (*train)(const TrainingJob&, const Change&);
    Change change;
  };
  for (const Case& c : {Case{"1 x 1", Train, kAsIs},
                        {"3 x 3", Train, kThreeByThree},
                        {"SSD", TrainOnSsd, kAsIs},
                        {"SSD 3 x 3", TrainOnSsd, kThreeByThree}}) {
    for (const uint64_t lost : {0, 3, 1}) {
      INFO(c.what << ", every n-th ticket is lost: " << lost);
      const Tickets tickets(0, lost);
      CHECK(c.train(job, c.change).model_hash() == reference);
      CHECK(tickets.named() > 10);
    }
    INFO(c.what << ", every second ticket is not given");
    const Tickets tickets(2, 0);
    CHECK(c.train(job, c.change).model_hash() == reference);
  }
  const Tickets none(1, 0);
  CHECK(TrainOnSsd(job, kThreeByThree).model_hash() == reference);
}

TEST_CASE("async works with tickets that are lost", "[e2e][ticket]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = testing::SmallJob(folder.path());
  for (const uint64_t lost : {0, 2, 1}) {
    const Tickets tickets(0, lost);
    const JobStatus status = Train(job, [](JobSpec& s) {
      s.mutable_training()->set_mode("async");
      kThreeByThree(s);
    });
    INFO(lost);
    CHECK(status.result().auc() > 0.55);
    CHECK(tickets.named() > 10);
  }
}

TEST_CASE("a server that comes back with tickets forgotten changes nothing", "[e2e][p3][ticket]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = ManyRowsJob(folder.path());
  job.mutable_spec()->mutable_training()->set_epochs(10);
  const std::string reference = Train(job, kAsIs).model_hash();
  kOnSsd(*job.mutable_spec());
  job.mutable_spec()->mutable_replicas()->set_servers(2);
  for (const uint64_t at : {3, 40}) {
    const testing::ReadsBelow reads;
    const JobStatus status =
        testing::RunDisturbed(job, folder.path() + "/run-" + std::to_string(at), at,
                              [](EmbeddedCluster& cluster, const JobRef&) {
                                cluster.StopServer(1);
                                REQUIRE(cluster.StartServer(1).ok());
                              });
    REQUIRE(status.state() == SUCCEEDED);
    REQUIRE(reads.count() > 0);
    CHECK(status.model_hash() == reference);
  }
}

TEST_CASE("a codec changes the model, everywhere in the same way", "[e2e][p3][codec]") {
  const ScratchFolder folder = Folder();
  TrainingJob job = ManyRowsJob(folder.path());
  const JobStatus exact = Train(job, kAsIs);
  std::string seen = exact.model_hash();
  for (const char* codec : {"bf16", "int8"}) {
    INFO(codec);
    job.mutable_spec()->mutable_training()->set_pull_codec(codec);
    const JobStatus lossy = Train(job, kAsIs);
    CHECK(lossy.model_hash() != seen);
    seen = lossy.model_hash();
    CHECK(std::fabs(lossy.result().auc() - exact.result().auc()) < 0.02);
    CHECK(Train(job, kThreeByThree).model_hash() == seen);
    CHECK(TrainOnSsd(job, kAsIs).model_hash() == seen);
    const ops::IsaLevel before = ops::SetActiveIsaLevel(ops::IsaLevel::kV3);
    CHECK(Train(job, kAsIs).model_hash() == seen);
    ops::SetActiveIsaLevel(before);
    const Tickets none(1, 0);
    CHECK(Train(job, kThreeByThree).model_hash() == seen);
  }
  job.mutable_spec()->mutable_training()->set_pull_codec("float32");
  CHECK(Train(job, kAsIs).model_hash() == exact.model_hash());
}

}  // namespace
}  // namespace strata
