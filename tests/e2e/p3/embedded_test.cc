// Promise P3 inside one process: one model hash whatever the cluster looks like, wherever rows lie,
// whatever the wire carries and whatever dies. One table: its rows are drawn from the axes of
// embedded_axes.h such that every two values meet that may; with `tools/test --long` the full
// product of the main axes.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ops/cpu_features.h"
#include "proto/job/checks/byte_size.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/files_below.h"
#include "tests/e2e/cluster/reads_below.h"
#include "tests/e2e/cluster/removed_keys.h"
#include "tests/e2e/cluster/submit_again.h"
#include "tests/e2e/cluster/table_room.h"
#include "tests/e2e/p3/covering.h"
#include "tests/e2e/p3/embedded_axes.h"
#include "tests/e2e/p3/hold.h"
#include "tests/e2e/p3/models.h"
#include "tests/skip.h"
#include "tools/cluster/checkpoint/verify.h"
#include "tools/cluster/embedded/cluster.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

constexpr absl::Duration kCall = absl::Seconds(10);
constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr uint64_t kMemtableBytes = 64 << 10;  // so few that row files are written and merged

// Counts how often tickets were given and named, and refuses some of both.
class Tickets {
 public:
  explicit Tickets(const TicketTrouble& trouble)
      : give_("server.ticket.give", {.act = Every(trouble.not_given, given_)}),
        find_("server.ticket.find", {.act = Every(trouble.lost, named_)}) {}
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

// The kernels of a row.
class Kernels {
 public:
  explicit Kernels(bool avx2)
      : before_(ops::SetActiveIsaLevel(avx2 ? ops::IsaLevel::kV3 : ops::SupportedIsaLevel())) {}
  ~Kernels() { ops::SetActiveIsaLevel(before_); }

 private:
  const ops::IsaLevel before_;
};

bool IsFinal(JobState state) { return state == SUCCEEDED || state == FAILED || state == CANCELLED; }

// Row files below a folder that hold the rows of a memtable at least.
int RowFiles(const std::string& folder) {
  int files = 0;
  for (const std::string& path : FilesBelow(folder)) {
    const std::filesystem::path file = path;
    std::error_code gone;  // files come and go meanwhile
    const uint64_t size = file.filename() == "ROWS" ? std::filesystem::file_size(file, gone) : 0;
    files += !gone && size > kMemtableBytes / 2;
  }
  return files;
}

// One row's job on a cluster of its own.
class RowRun {
 public:
  // `steps`: that it makes; `resume`: from the newest checkpoint.
  RowRun(const EmbeddedRow& row, const TrainingJob& job, uint64_t steps, const std::string& folder,
         bool resume = false)
      : row_(row), held_step_(HeldStep(row, steps)), folder_(folder), hold_(FirstHeld(row, steps)) {
    EmbeddedClusterOptions options;
    options.servers = row.servers;
    options.workers = row.workers;
    options.directory = folder;
    options.lease = absl::Milliseconds(500);
    options.tier_memtable_bytes = kMemtableBytes;
    auto cluster = EmbeddedCluster::Start(options);
    REQUIRE(cluster.ok());
    cluster_ = *std::move(cluster);
    SubmitRequest submit;
    *submit.mutable_job() = job;
    submit.set_request_id("test");
    submit.set_resume(resume);
    const auto id = SubmitAgain(cluster_->scheduler(), submit, kCall);
    INFO(id.status());
    REQUIRE(id.ok());
    ref_.set_job(id->job());
  }
  // No REQUIRE may leave servers waiting in it.
  ~RowRun() { hold_.LetGo(); }

  // Runs the job, and disturbs it in its midst. Its final status.
  JobStatus Run() {
    const absl::Time deadline = absl::Now() + kPatience;
    Await([&] { return hold_.Reached(); }, deadline);
    CheckHbm(deadline);
    row_files_ = RowFiles(folder_);
    Disturb(deadline);
    hold_.LetGo();
    JobStatus status;
    Await([&] { return IsFinal((status = Status()).state()); }, deadline, /*may_end=*/true);
    return status;
  }

  // How many there were when the job was disturbed.
  int row_files() const { return row_files_; }
  // Rows that the GPU tier had given until then, where that is in the midst of the job.
  uint64_t hbm_hits() const { return hbm_hits_; }

 private:
  static uint64_t HeldStep(const EmbeddedRow& row, uint64_t steps) {
    return static_cast<uint64_t>(1 + row.when * static_cast<double>(steps));
  }
  // A step is a commit of each shard.
  static uint64_t FirstHeld(const EmbeddedRow& row, uint64_t steps) {
    return HeldStep(row, steps) * row.servers * row.shards;
  }

  JobStatus Status() {
    auto status = cluster_->scheduler().GetJob(ref_, kCall);
    REQUIRE(status.ok());
    return *std::move(status);
  }

  void Await(const std::function<bool()>& done, absl::Time deadline, bool may_end = false) {
    while (!done()) {
      const JobStatus status = Status();
      for (const JobCondition& c : status.conditions()) {
        UNSCOPED_INFO(c.reason() << ": " << c.message());
      }
      REQUIRE((may_end || !IsFinal(status.state())));
      REQUIRE(absl::Now() < deadline);
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  // Rows of the GPU tier were used in every step, and take no more than the limit.
  void CheckHbm(absl::Time deadline) {
    constexpr uint64_t kHitsAStep = 50;  // of some 300 features, pulled and pushed
    if (row_.tiers.hbm_bytes[0] == '\0' || row_.when < 0.5) return;
    INFO("waits until " << kHitsAStep * (held_step_ - 1) << " rows were found in HBM");
    const auto looked = [&] {
      const auto shards = cluster_->scheduler().GetShards(ref_, kCall);
      REQUIRE(shards.ok());
      hbm_hits_ = 0;
      for (const ShardStatus& s : shards->shards()) {
        hbm_hits_ += s.report().hbm_hits();
        if (std::string(row_.tiers.hbm_bytes) == "few") {
          CHECK(s.report().hbm_bytes() <= *ParseBytes(row_.model->hbm) / row_.shards);
        }
      }
      return hbm_hits_ >= kHitsAStep * (held_step_ - 1);
    };
    Await(looked, deadline);
  }

  // Heartbeats tell the scheduler how far the servers are. By an old word it would ask for a cut
  // that they are past, and for the next one so far ahead that the job ends before it. A shard may
  // be a step or two behind the one that is held.
  void AwaitNews(absl::Time deadline) {
    Await([&] { return Status().step() + 3 >= held_step_; }, deadline);
  }

  void Disturb(absl::Time deadline) {
    if (row_.disturbance == Disturbance::kGoesOnElsewhere) {
      AwaitNews(deadline);
      hold_.Slow();
      CreateCheckpointRequest request;
      *request.mutable_job() = ref_;
      request.set_wait_ms(30'000);
      const auto taken = cluster_->scheduler().CreateCheckpoint(request, absl::Seconds(35));
      INFO(taken.status());
      REQUIRE(taken.ok());
      hold_.Again();  // or it may end first
      REQUIRE(cluster_->scheduler().CancelJob(ref_, kCall).ok());
      return;
    }
    if (!row_.servers_die() && !row_.workers_die()) return;
    hold_.Refuse();
    std::vector<uint32_t> servers, workers;
    if (row_.servers_die()) servers = {row_.servers - 1};
    if (row_.disturbance == Disturbance::kAllServers ||
        row_.disturbance == Disturbance::kNearlyAll) {
      servers.clear();
      for (uint32_t s = 0; s < row_.servers; ++s) servers.push_back(s);
    }
    if (row_.workers_die()) workers = {row_.workers - 1};
    for (const uint32_t s : servers) cluster_->StopServer(s);
    for (const uint32_t w : workers) cluster_->StopWorker(w);
    // The last one first: what comes back need not come in order.
    for (size_t s = servers.size(); s-- > 0;) REQUIRE(cluster_->StartServer(servers[s]).ok());
    if (row_.disturbance == Disturbance::kWorkerGone) return;
    for (const uint32_t w : workers) REQUIRE(cluster_->StartWorker(w).ok());
  }

  const EmbeddedRow row_;
  const uint64_t held_step_;
  const std::string folder_;
  int row_files_ = 0;
  uint64_t hbm_hits_ = 0;
  Hold hold_;  // before the cluster: ends after it
  std::unique_ptr<EmbeddedCluster> cluster_;
  JobRef ref_;
};

// What rows showed of where their jobs' rows lay.
struct Seen {
  int with_row_files = 0;
  int with_hbm = 0;
  int gone_on_in_hbm = 0;
};

// Goes on from the checkpoint of a cancelled run, and with the stream of what it removed.
JobStatus GoOnElsewhere(const EmbeddedRow& row, const Reference& reference, const TrainingJob& job,
                        const std::string& folder, Seen& seen) {
  const EmbeddedRow other = ElsewhereOf(row);
  TrainingJob rest = JobOf(other, reference.job);
  rest.mutable_spec()->mutable_checkpoint()->set_directory(job.spec().checkpoint().directory());
  *rest.mutable_spec()->mutable_output() = job.spec().output();
  const auto middle = VerifyCheckpoint(job.spec().checkpoint().directory());
  REQUIRE(middle.ok());
  REQUIRE(middle->step > 0);
  REQUIRE(middle->step < reference.status.step());
  RowRun run(other, rest, reference.status.step() - middle->step, folder, /*resume=*/true);
  const JobStatus status = run.Run();
  seen.gone_on_in_hbm += run.hbm_hits() > 0;
  return status;
}

void CheckSame(const EmbeddedRow& row, const JobStatus& status, const Reference& reference) {
  CHECK(status.state() == SUCCEEDED);
  CHECK(status.model_hash() == reference.status.model_hash());
  CHECK(status.step() == reference.status.step());
  CHECK(status.result().auc() == reference.status.result().auc());
  CHECK(status.result().logloss() == reference.status.result().logloss());
  if (row.disturbance == Disturbance::kNone) {
    CHECK(status.clipped_rows() == reference.status.clipped_rows());
    CHECK(status.life_cycle().SerializeAsString() ==
          reference.status.life_cycle().SerializeAsString());
  }
  // What is not logged is gone with its server; then the job returns to a checkpoint or begins
  // anew.
  const bool rolled_back = row.servers_die() && std::string(row.durability) == "memory";
  if (row.disturbance != Disturbance::kGoesOnElsewhere) {
    CHECK(status.rollbacks() == (rolled_back ? 1 : 0));
  }
}

void CheckRow(const EmbeddedRow& row, const Reference& reference, const std::string& folder,
              Seen& seen) {
  TrainingJob job = JobOf(row, reference.job);
  const std::string checkpoints = folder + "/checkpoints", removed = folder + "/removed";
  if (row.cuts > 0) job.mutable_spec()->mutable_checkpoint()->set_directory(checkpoints);
  if (row.model->life_cycle) job.mutable_spec()->mutable_output()->set_removed(removed);
  const Kernels kernels(row.avx2);
  const ReadsBelow reads;
  const Tickets tickets(row.tickets);
  JobStatus status;
  {
    RowRun run(row, job, reference.status.step(), folder + "/cluster");
    status = run.Run();
    seen.with_row_files += run.row_files() > 0;
    seen.with_hbm += run.hbm_hits() > 0;
  }
  for (const JobCondition& c : status.conditions()) {
    UNSCOPED_INFO(c.reason() << ": " << c.message());
  }
  // Who looks ahead pulls by the tickets that were given.
  if (row.depth != 1) {
    CHECK(tickets.given() > 0);
    CHECK((tickets.named() > 0) == (row.tickets.not_given != 1));
  }
  if (row.disturbance == Disturbance::kGoesOnElsewhere) {
    REQUIRE(status.state() == CANCELLED);
    status = GoOnElsewhere(row, reference, job, folder + "/elsewhere", seen);
  }
  if (row.model->life_cycle) CHECK(RemovedKeysIn(removed) == reference.removed);
  CheckSame(row, status, reference);
  // Where there is HBM as well, it and DRAM may have room for all.
  const bool too_many = row.tiers.hbm_bytes[0] == '\0' && row.servers <= row.model->below_on;
  if (row.tiers.ssd[0] != '\0' && too_many) {
    CHECK(reads.count() > 0);
    if (!reference.mostly_below.empty()) {
      const TableRoom room = RoomOf(reference.checkpoint, reference.mostly_below, job.spec());
      INFO(room.rows << " rows, at most " << room.most_in_dram << " in DRAM");
      CHECK(room.MostlyBelow());
    }
  }
  if (row.cuts == 0) return;
  const auto end = VerifyCheckpoint(checkpoints);
  REQUIRE(end.ok());
  CHECK(end->step == reference.status.step());
  CHECK(end->model_hash == reference.status.model_hash());
}

// What the models themselves must show, so that rows of theirs mean something.
void CheckReference(const Model& model, const Reference& reference) {
  const std::string name = model.name;
  const LifeCycleCounts& counts = reference.status.life_cycle();
  INFO(name << ": " << counts.ShortDebugString());
  CHECK(reference.status.refused_rows() == 0);
  if (name == "many optimizers") CHECK(reference.status.clipped_rows() > 0);
  if (!model.life_cycle) return;
  CHECK(counts.admitted() > 0);
  CHECK(counts.refused() > 0);
  CHECK((counts.removed_by_ttl() > 0) == (name != "score"));
  CHECK((counts.removed_by_score() > 0) == (name == "score" || name == "five tables"));
  CHECK((counts.removed_by_bytes() > 0) == (name == "score"));
  CHECK((counts.removed_by_count() > 0) == (name == "counts"));
  CHECK((counts.removed_by_norm() > 0) == (name == "counts"));
  CHECK(reference.removed.size() == counts.removed_by_ttl() + counts.removed_by_count() +
                                        counts.removed_by_score() + counts.removed_by_norm() +
                                        counts.removed_by_bytes());
}

TEST_CASE("a model depends neither on its cluster nor on what happens to that", "[e2e][p3]") {
  const ScratchFolder folder = Folder();
  std::map<std::string, Reference> references;
  for (const Model& model : Models()) {
    references[model.name] = MakeReference(model, folder.path());
    CheckReference(model, references[model.name]);
  }
  const Axes axes = EmbeddedAxes();
  const std::vector<Row> rows = LongRun() ? ProductRows(axes, kMainAxes) : PairwiseRows(axes);
  Seen seen;
  for (size_t i = 0; i < rows.size(); ++i) {
    const EmbeddedRow row = EmbeddedRowOf(rows[i]);
    INFO("row " << i << " of " << rows.size() << ": " << ToText(row));
    const absl::Time start = absl::Now();
    const ScratchFolder own = Folder();
    CheckRow(row, references[row.model->name], own.path(), seen);
    std::fprintf(stderr, "%zu of %zu, %.2f s: %s\n", i, rows.size(),
                 absl::ToDoubleSeconds(absl::Now() - start), ToText(row).c_str());
  }
  std::fprintf(stderr, "%d rows with row files, %d with HBM, %d went on in HBM\n",
               seen.with_row_files, seen.with_hbm, seen.gone_on_in_hbm);
  CHECK(seen.with_row_files > 3);
  CHECK(seen.with_hbm > 10);
  CHECK(seen.gone_on_in_hbm > 1);
}

TEST_CASE("rows of the table compute with AVX2 or with AVX-512", "[e2e][p3]") {
  const Kernels kernels(/*avx2=*/true);
  CHECK(ops::ActiveIsaLevel() == ops::IsaLevel::kV3);
  if (ops::SupportedIsaLevel() == ops::IsaLevel::kV3) {
    STRATA_SKIP("without AVX-512 here all rows of the table compute with AVX2");
  }
  const Kernels others(/*avx2=*/false);
  CHECK(ops::ActiveIsaLevel() == ops::IsaLevel::kV4);
}

}  // namespace
}  // namespace strata::testing
