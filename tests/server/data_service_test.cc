#include "server/data_service.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "proto/core/message_codec.h"
#include "proto/runtime/executor.h"
#include "proto/runtime/failpoints.h"
#include "proto/runtime/manifest_io.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/deadline_timer.h"
#include "server/job_opening.h"
#include "server/server_job.h"
#include "tests/server/shard_fixture.h"

namespace strata::server {
namespace {

// A job of one server over its data plane, on one thread and a clock that stands still.
class Bench {
 public:
  explicit Bench(uint32_t lanes, bool synchronous = true, uint64_t incarnation = 1)
      : memory_(uint64_t{64} << 20), incarnation_(incarnation) {
    plan_.job = JobId(1);
    plan_.generation = Generation(1);
    plan_.map_epoch = MapEpoch(5);
    plan_.tables = TestTables();
    plan_.partitioning = Partitioning(kPartitions);
    plan_.seed = kSeed;
    plan_.lanes = lanes;
    plan_.synchronous = synchronous;
    plan_.log_bytes = uint64_t{1} << 30;
    for (uint32_t i = 0; i < 3; ++i) {
      const PartitionRange range = Ranges(3)[i];
      auto memory = DivideMemory(plan_.tables, First(range), Last(range), 0, 3);
      plan_.shards.push_back({ShardId(i), range, *memory});
    }
  }
  ~Bench() { Stop(); }

  Position First(PartitionRange r) const { return plan_.partitioning.First(r.first); }
  Position Last(PartitionRange r) const { return plan_.partitioning.Last(r.last); }
  JobPlan& plan() { return plan_; }

  void Start() {
    auto opened = OpenJob(plan_, folder_.path());
    INFO(opened.status());
    REQUIRE(opened.ok());
    recovered_ = opened->recovered;
    service_.Add(std::make_shared<ServerJob>(
        plan_, *std::move(opened), ServerJob::Options{&pool_, &timer_, &memory_, incarnation_}));
  }
  // As kill -9: nothing in memory survives.
  void Restart() {
    Stop();
    ++incarnation_;
    Start();
  }
  void Stop() {
    auto job = service_.Remove(JobId(1));
    if (job == nullptr) return;
    pool_.RunAll();  // the destructor waits for the executors, which run here
    closing_ = true;
    std::thread runner([this] {
      while (closing_) pool_.RunAll();
    });
    job.reset();
    closing_ = false;
    runner.join();
  }

  wire::Header header() const { return {JobId(1), SessionId(9), Generation(1), MapEpoch(5)}; }

  using Answer = std::optional<absl::StatusOr<Buffer>>;
  std::shared_ptr<Answer> Call(DataMethod method, Buffer request) {
    auto answer = std::make_shared<Answer>();
    service_.Handle(method, std::move(request), [answer](absl::StatusOr<Buffer> b) {
      REQUIRE_FALSE(answer->has_value());
      *answer = std::move(b);
    });
    pool_.RunAll();
    return answer;
  }
  absl::Status OpenSession() {
    return Call(DataMethod::kOpenSession, wire::EncodeOpenSessionRequest({header()}))
        ->value()
        .status();
  }

  Buffer PushMessage(uint64_t seed, uint64_t step, const std::vector<LaneNode>& nodes,
                     wire::PushFields fields, const Sums* only = nullptr) {
    fields.header = header();
    std::vector<ShardId> shards = {ShardId(0), ShardId(1), ShardId(2)};
    std::vector<wire::PushContribution> contributions;
    std::vector<std::vector<Key>> keys;
    keys.reserve(1000);
    std::vector<std::vector<float>> values;
    for (const LaneNode node : nodes) {
      LaneWork work = NodeWork(seed, step, node);
      if (only != nullptr) work.sums = *only;
      wire::PushContribution c{node, work.examples, {}};
      for (const auto& [table, rows] : work.sums) {
        for (const ShardPlan& shard : plan_.shards) {
          keys.emplace_back();
          values.emplace_back();
          for (const auto& [p, row] : rows) {
            if (p < First(shard.range) || Last(shard.range) < p) continue;
            keys.back().push_back(plan_.tables[table].KeyAtPosition(p));
            values.back().insert(values.back().end(), row.begin(), row.end());
          }
          c.groups.push_back({TableId(table), shard.id, keys.back(), plan_.tables[table].dim()});
        }
      }
      contributions.push_back(std::move(c));
    }
    auto encoder = wire::PushRequestEncoder::Make(shards, contributions);
    REQUIRE(encoder.ok());
    for (size_t g = 0; g < values.size(); ++g) {
      std::memcpy(encoder->values(g).data(), values[g].data(), values[g].size() * 4);
    }
    return encoder->Finish(fields);
  }
  absl::StatusOr<wire::PushReply> PushStep(uint64_t seed, uint64_t step,
                                           const std::vector<LaneNode>& nodes) {
    wire::PushFields fields;
    fields.step = Step(step);
    auto answer = Call(DataMethod::kPush, PushMessage(seed, step, nodes, fields));
    REQUIRE(answer->has_value());
    if (!(*answer)->ok()) return (*answer)->status();
    return wire::ParsePushReply((**answer)->span());
  }

  std::vector<Key> KeysOf(const ShardPlan& shard) const {
    std::map<Position, Key> keys;
    for (uint64_t k = 0; k < 60; ++k) {
      const Position p = plan_.tables[0].PositionOfKey(Key(k));
      if (First(shard.range) <= p && p <= Last(shard.range)) keys[p] = Key(k);
    }
    std::vector<Key> out;
    for (const auto& [p, k] : keys) out.push_back(k);
    return out;
  }
  std::shared_ptr<Answer> Pull(uint64_t step, uint32_t wait_ms) {
    std::vector<std::vector<Key>> keys;
    std::vector<wire::KeyGroup> groups;
    std::vector<ShardId> shards;
    for (const ShardPlan& s : plan_.shards) keys.push_back(KeysOf(s));
    for (size_t i = 0; i < keys.size(); ++i) {
      shards.push_back(plan_.shards[i].id);
      groups.push_back({TableId(0), plan_.shards[i].id, keys[i]});
    }
    auto request = wire::EncodePullRequest(header(), Step(step), wait_ms, shards, groups);
    REQUIRE(request.ok());
    return Call(DataMethod::kPull, *request);
  }
  void CheckServed(const Answer& answer, const Reference& reference) {
    REQUIRE(answer.has_value());
    REQUIRE(answer->ok());
    auto reply = wire::ParsePullReply((*answer)->span());
    REQUIRE(reply.ok());
    REQUIRE(reply->outcome == wire::PullOutcome::kServed);
    REQUIRE(reply->groups.size() == 3);
    for (size_t g = 0; g < 3; ++g) {
      const std::vector<Key> keys = KeysOf(plan_.shards[g]);
      REQUIRE(wire::CheckReplyGroup(reply->groups[g], TableId(0), ShardId(g), keys.size(), 5).ok());
      for (size_t i = 0; i < keys.size(); ++i) {
        const auto want = reference.Weights(0, plan_.tables[0].PositionOfKey(keys[i]));
        REQUIRE(std::memcmp(want.data(), reply->groups[g].value_bytes.data() + i * 20, 20) == 0);
      }
    }
  }
  wire::PullReplyView Outcome(const Answer& answer) {
    REQUIRE(answer.has_value());
    REQUIRE(answer->ok());
    auto reply = wire::ParsePullReply((*answer)->span());
    REQUIRE(reply.ok());
    return *reply;
  }
  storage::HashSum Hash(uint64_t step) {
    ServerJobDirective d;
    d.set_map_epoch(5);
    CutDirective* cut = d.add_cuts();
    cut->set_cut(1000 + ++cuts_);
    cut->set_step(step);
    auto job = service_.Find(JobId(1));
    job->Follow(d);
    pool_.RunAll();
    const ServerJobReport report = job->Report();
    REQUIRE(report.cuts_size() == 1);
    REQUIRE(report.cuts(0).state() == CutReport::DONE);
    storage::HashSum sum;
    for (const CheckpointFile& f : report.cuts(0).files()) {
      sum += storage::HashSum{f.hash_low(), f.hash_high()};
    }
    return sum;
  }

  TempFolder folder_;
  ManualExecutor pool_;
  ManualTimer timer_;
  RequestMemory memory_;
  DataService service_;
  bool recovered_ = false;

 private:
  JobPlan plan_;
  uint64_t incarnation_;
  uint64_t cuts_ = 0;
  std::atomic<bool> closing_{false};
};

TEST_CASE("push, commit, pull: current, pre-image, waiting, too old", "[service]") {
  const auto references = References(1, 2, 4);
  Bench bench(2);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  bench.CheckServed(*bench.Pull(1, 0), references[0]);
  REQUIRE(bench.Outcome(*bench.Pull(2, 0)).outcome == wire::PullOutcome::kNotYet);
  auto waiting = bench.Pull(2, 1000);
  REQUIRE_FALSE(waiting->has_value());
  auto first = bench.PushStep(1, 1, {{0, 1}});
  REQUIRE(first.ok());
  REQUIRE_FALSE(first->repeated);
  REQUIRE_FALSE(waiting->has_value());
  auto repeated = bench.PushStep(1, 1, {{0, 1}});
  REQUIRE(repeated->repeated);
  REQUIRE(bench.PushStep(1, 1, {{1, 2}}).ok());
  bench.CheckServed(*waiting, references[1]);
  bench.CheckServed(*bench.Pull(1, 0), references[0]);
  bench.CheckServed(*bench.Pull(0, 0), references[1]);
  REQUIRE(bench.PushStep(1, 1, {{0, 2}})->repeated);
  REQUIRE(absl::IsFailedPrecondition(bench.PushStep(1, 3, {{0, 2}}).status()));
  REQUIRE(bench.PushStep(1, 2, {{0, 2}}).ok());
  auto old = bench.Outcome(*bench.Pull(1, 0));
  REQUIRE(old.outcome == wire::PullOutcome::kTooOld);
  REQUIRE(old.state.clock == Step(2));
  auto expires = bench.Pull(4, 50);
  REQUIRE_FALSE(expires->has_value());
  bench.timer_.Advance(absl::Milliseconds(50));
  bench.pool_.RunAll();
  REQUIRE(bench.Outcome(*expires).outcome == wire::PullOutcome::kNotYet);
  REQUIRE(bench.Outcome(*expires).state.clock == Step(2));
  REQUIRE(bench.Hash(2) == references[2].Hash());
}

TEST_CASE("a restart recovers, knows no session, and goes on", "[service][recovery]") {
  const auto references = References(2, 2, 3);
  Bench bench(2);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  REQUIRE(bench.PushStep(2, 1, {{0, 2}}).ok());
  REQUIRE(bench.PushStep(2, 2, {{0, 1}}).ok());  // held, and lost
  bench.plan().was_open = true;
  bench.Restart();
  REQUIRE(bench.recovered_);
  bench.CheckServed(*bench.Pull(2, 0), references[1]);
  bench.CheckServed(*bench.Pull(1, 0), references[0]);
  REQUIRE(absl::IsFailedPrecondition(bench.PushStep(2, 2, {{0, 2}}).status()));
  REQUIRE(bench.OpenSession().ok());
  REQUIRE(bench.PushStep(2, 2, {{1, 2}}).ok());
  bench.CheckServed(*bench.Pull(2, 0), references[1]);
  REQUIRE(bench.PushStep(2, 2, {{0, 1}}).ok());
  REQUIRE(bench.Hash(2) == references[2].Hash());
}

TEST_CASE("images bound the log; recovery from them; level memory is lost", "[service][recovery]") {
  const auto references = References(3, 1, 40);
  Bench bench(1);
  bench.plan().log_bytes = 20000;
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  uint64_t most = 0;
  for (uint64_t step = 1; step <= 40; ++step) {
    REQUIRE(bench.PushStep(3, step, {{0, 1}}).ok());
    most = std::max(most, bench.service_.Find(JobId(1))->log_bytes());
  }
  REQUIRE(bench.service_.Find(JobId(1))->images_written() >= 6);
  REQUIRE(most < 30000);
  bench.plan().was_open = true;
  bench.Restart();
  REQUIRE(bench.Hash(40) == references[40].Hash());
  bench.CheckServed(*bench.Pull(40, 0), references[39]);

  bench.plan().generation = Generation(1);
  bench.plan().logged = false;
  REQUIRE(absl::IsDataLoss(OpenJob(bench.plan(), bench.folder_.path() + "/other").status()));
}

TEST_CASE("no damaged image is trusted: the one before and the log, or lost", "[service]") {
  Bench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  REQUIRE(bench.PushStep(3, 1, {{0, 1}}).ok());
  bench.Stop();
  const std::string folder = GenerationFolder(bench.folder_.path(), JobId(1), Generation(1));
  const std::string image = folder + "/image-0-00000000000000000009.strata";
  std::FILE* f = std::fopen(image.c_str(), "w");
  std::fputs("not an image", f);
  std::fclose(f);
  bench.Restart();  // the log has everything
  REQUIRE(bench.Hash(1) == References(3, 1, 1)[1].Hash());
}

TEST_CASE("what is wrong with a request is told, and changes nothing", "[service][input]") {
  Bench bench(2);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  wire::PushFields fields;
  fields.step = Step(1);
  const auto code = [&](Buffer b, DataMethod m = DataMethod::kPush) {
    return bench.Call(m, std::move(b))->value().status().code();
  };
  using C = absl::StatusCode;
  Buffer good = bench.PushMessage(1, 1, {{0, 1}}, fields);
  const auto with = [&](auto change) {
    wire::Header h = bench.header();
    change(h);
    return *wire::WithHeader(good, h);
  };
  REQUIRE(code(with([](auto& h) { h.job = JobId(2); })) == C::kNotFound);
  REQUIRE(code(with([](auto& h) { h.generation = Generation(2); })) == C::kFailedPrecondition);
  REQUIRE(code(with([](auto& h) { h.map_epoch = MapEpoch(4); })) == C::kFailedPrecondition);
  REQUIRE(code(with([](auto& h) { h.session = SessionId(4); })) == C::kFailedPrecondition);
  REQUIRE(code(bench.PushMessage(1, 1, {{0, 3}}, fields)) == C::kInvalidArgument);
  REQUIRE(code(bench.PushMessage(1, 1, {}, fields)) == C::kInvalidArgument);
  fields.step = Step(0);
  REQUIRE(code(bench.PushMessage(1, 1, {{0, 1}}, fields)) == C::kInvalidArgument);
  fields.step = Step(1);
  Sums stray;  // a dense key that is no tensor's row
  stray[1][Position(7)] = {1, 1, 1, 1};
  REQUIRE(code(bench.PushMessage(1, 1, {{0, 1}}, fields, &stray)) == C::kInvalidArgument);
  REQUIRE(code(wire::EncodeMarkRequest({bench.header()}), DataMethod::kMark) ==
          C::kInvalidArgument);
  // Nothing of it was held: a full push commits, and is the whole step.
  REQUIRE(bench.PushStep(1, 1, {{0, 2}}).ok());
  REQUIRE(bench.Hash(1) == References(1, 2, 1)[1].Hash());
}

TEST_CASE("no bytes crash the service", "[service][input]") {
  Bench bench(2);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  wire::PushFields fields;
  fields.step = Step(1);
  const Buffer good = bench.PushMessage(1, 1, {{0, 1}}, fields);
  std::mt19937_64 random(4);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<uint8_t> bytes(good.span().begin(), good.span().end());
    if (i % 3 == 0) bytes.resize(random() % bytes.size());
    for (int k = 0; k < i % 4 && !bytes.empty(); ++k) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    const auto method = static_cast<DataMethod>(random() % kDataMethods);
    auto answer = bench.Call(method, Buffer::CopyOf(bytes));
    if (!answer->has_value()) continue;  // a pull that waits
    refused += !(*answer)->ok();
  }
  REQUIRE(refused > 1000);
  bench.timer_.Advance(absl::Hours(1));
  bench.pool_.RunAll();
  REQUIRE(bench.memory_.used() < (uint64_t{1} << 20));
}

TEST_CASE("requests beyond the limit are refused, and the limit comes back", "[service]") {
  Bench bench(2);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  auto hog = bench.memory_.Take((uint64_t{64} << 20) - 100);
  REQUIRE(hog.ok());
  REQUIRE(absl::IsResourceExhausted(bench.PushStep(1, 1, {{0, 2}}).status()));
  hog->reset();
  REQUIRE(bench.PushStep(1, 1, {{0, 2}}).ok());
  REQUIRE(bench.memory_.used() == 0);
}

TEST_CASE("a full disk delays a commit, and pulls wait for it", "[service][faults]") {
  const auto references = References(1, 1, 1);
  Bench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  auto waiting = [&] {
    ScopedFailpoint full("server.commit.append",
                         {.act = FailWith(absl::ResourceExhaustedError("disk full"))});
    REQUIRE(bench.PushStep(1, 1, {{0, 1}}).ok());
    auto pull = bench.Pull(2, 10000);
    REQUIRE_FALSE(pull->has_value());
    bench.timer_.Advance(absl::Milliseconds(200));
    bench.pool_.RunAll();
    bench.CheckServed(*bench.Pull(1, 0), references[0]);  // reads go on
    return pull;
  }();
  REQUIRE_FALSE(waiting->has_value());
  bench.timer_.Advance(absl::Milliseconds(200));
  bench.pool_.RunAll();
  bench.CheckServed(*waiting, references[1]);
}

TEST_CASE("cuts: exactly at the step, refused when past, failed with the disk", "[service][cut]") {
  const auto references = References(1, 1, 3);
  Bench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  ServerJobDirective d;
  d.set_map_epoch(5);
  CutDirective* cut = d.add_cuts();
  cut->set_cut(1);
  cut->set_step(2);
  auto job = bench.service_.Find(JobId(1));
  job->Follow(d);
  REQUIRE(bench.PushStep(1, 1, {{0, 1}}).ok());
  REQUIRE(job->Report().cuts_size() == 0);
  REQUIRE(bench.PushStep(1, 2, {{0, 1}}).ok());
  REQUIRE(bench.PushStep(1, 3, {{0, 1}}).ok());
  ServerJobReport report = job->Report();
  REQUIRE(report.cuts_size() == 1);
  REQUIRE(report.cuts(0).state() == CutReport::DONE);
  REQUIRE(report.cuts(0).step() == 2);
  storage::HashSum sum;
  for (const CheckpointFile& f : report.cuts(0).files()) {
    sum += storage::HashSum{f.hash_low(), f.hash_high()};
  }
  REQUIRE(sum == references[2].Hash());
  cut->set_cut(2);
  job->Follow(d);
  bench.pool_.RunAll();
  report = job->Report();
  REQUIRE(report.cuts_size() == 1);
  REQUIRE(report.cuts(0).cut() == 2);
  REQUIRE(report.cuts(0).state() == CutReport::REFUSED);
  cut->set_cut(3);
  cut->set_step(3);
  cut->set_directory("/dev/null/step");
  job->Follow(d);
  bench.pool_.RunAll();
  REQUIRE(job->Report().cuts(0).state() == CutReport::FAILED);
  cut->set_cut(4);
  const std::string folder = bench.folder_.path() + "/checkpoints/step-3";  // made on demand
  cut->set_directory(folder);
  job->Follow(d);
  bench.pool_.RunAll();
  report = job->Report();
  REQUIRE(report.cuts(0).state() == CutReport::DONE);
  for (const CheckpointFile& f : report.cuts(0).files()) {
    REQUIRE(std::filesystem::file_size(folder + "/" + f.name()) == f.bytes());
  }
  job.reset();
}

TEST_CASE("a checkpoint restores under a new generation, and is not needed after",
          "[service][cut]") {
  const auto references = References(1, 1, 4);
  TempFolder checkpoint;
  Bench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  for (uint64_t step = 1; step <= 2; ++step) REQUIRE(bench.PushStep(1, step, {{0, 1}}).ok());
  ServerJobDirective d;
  d.set_map_epoch(5);
  CutDirective* cut = d.add_cuts();
  cut->set_cut(1);
  cut->set_step(2);
  const std::string folder = checkpoint.path() + "/c";
  cut->set_directory(folder);
  auto job = bench.service_.Find(JobId(1));
  job->Follow(d);
  bench.pool_.RunAll();
  Manifest manifest;
  const ServerJobReport report = job->Report();
  for (const CheckpointFile& f : report.cuts(0).files()) *manifest.add_files() = f;
  REQUIRE(manifest.files_size() == 3);
  REQUIRE(WriteManifest(folder, manifest).ok());
  job.reset();
  REQUIRE(bench.PushStep(1, 3, {{0, 1}}).ok());
  bench.Stop();

  JobPlan plan = bench.plan();
  plan.generation = Generation(2);
  plan.restore_from = folder;
  plan.start_step = Step(2);
  plan.shards.clear();
  const auto memory = DivideMemory(plan.tables, Position(0), Position(~0ull), 0, 2);
  for (uint32_t i = 0; i < 2; ++i) plan.shards.push_back({ShardId(i), Ranges(2)[i], *memory});
  for (const bool again : {false, true}) {
    plan.was_open = again;
    auto opened = OpenJob(plan, bench.folder_.path());
    INFO(opened.status());
    REQUIRE(opened.ok());
    REQUIRE(opened->recovered == again);
    storage::HashSum sum;
    for (const auto& shard : opened->shards) {
      REQUIRE(shard->clock() == Step(2));
      REQUIRE(shard->CheckPull(Step(2)) == PullVerdict::kTooOld);
      sum += shard->Summarize()->hash;
    }
    REQUIRE(sum == references[2].Hash());
    std::filesystem::remove_all(folder);
  }
  REQUIRE_FALSE(
      std::filesystem::exists(GenerationFolder(bench.folder_.path(), JobId(1), Generation(1))));
  plan.generation = Generation(3);
  plan.was_open = false;
  REQUIRE(absl::IsNotFound(OpenJob(plan, bench.folder_.path()).status()));
}

TEST_CASE("asynchronous: applied on arrival, once; an aligned cut", "[service][async]") {
  Bench bench(2, /*synchronous=*/false);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  const auto push = [&](uint64_t task, uint64_t window, uint64_t cut) {
    wire::PushFields f;
    f.task = TaskId(task);
    f.window = window;
    f.cut = cut;
    return bench.Call(DataMethod::kPush, bench.PushMessage(1, task * 10 + window, {{0, 1}}, f));
  };
  const auto mark = [&](uint32_t lane, uint64_t cut) {
    wire::MarkRequest m;
    m.header = bench.header();
    m.lane = LaneId(lane);
    m.cut = cut;
    m.task = TaskId(lane);
    m.window = 7;
    REQUIRE(bench.Call(DataMethod::kMark, wire::EncodeMarkRequest(m))->value().ok());
  };
  Reference reference;
  REQUIRE(push(0, 0, 0)->value().ok());
  reference.Apply(NodeWork(1, 0, {0, 1}), 1);
  REQUIRE(wire::ParsePushReply(push(0, 0, 0)->value()->span())->repeated);
  ServerJobDirective d;
  d.set_map_epoch(5);
  d.add_cuts()->set_cut(1);
  auto job = bench.service_.Find(JobId(1));
  job->Follow(d);
  mark(0, 1);
  auto held = push(0, 1, 1);
  REQUIRE_FALSE(held->has_value());
  auto again = push(0, 1, 1);  // a retry takes its place
  REQUIRE(absl::IsUnavailable(held->value().status()));
  REQUIRE(push(5, 0, 0)->value().ok());
  reference.Apply(NodeWork(1, 50, {0, 1}), 2);
  REQUIRE(job->Report().cuts_size() == 0);
  REQUIRE_FALSE(again->has_value());
  mark(1, 1);
  REQUIRE(again->value().ok());
  const ServerJobReport report = job->Report();
  REQUIRE(report.cuts(0).state() == CutReport::DONE);
  REQUIRE(report.cuts(0).lanes_size() == 2);
  REQUIRE(report.cuts(0).lanes(1).next_window() == 7);
  storage::HashSum sum;
  for (const CheckpointFile& f : report.cuts(0).files()) {
    sum += storage::HashSum{f.hash_low(), f.hash_high()};
  }
  REQUIRE(sum == reference.Hash());
  REQUIRE(report.windows() == 9);
  job.reset();
}

}  // namespace
}  // namespace strata::server
