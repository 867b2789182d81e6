#include "tests/server/job/bench.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "server/job/opening.h"
#include "server/table/gpu_memory.h"
#include "server/table/memory.h"
#include "storage/row/layout.h"
#include "storage/tiered/table.h"

namespace strata::server {

JobBench::JobBench(uint32_t lanes, bool synchronous, uint64_t incarnation)
    : memory_(uint64_t{64} << 20), incarnation_(incarnation) {
  plan_.job = JobId(1);
  plan_.identity = {{3, 1}, {4, 1}};
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

void JobBench::Start() {
  auto opened = OpenJob(plan_, path_.empty() ? folder_.path() : path_, &timer_);
  INFO(opened.status());
  REQUIRE(opened.ok());
  recovered_ = opened->recovered;
  service_.Add(std::make_shared<ServerJob>(
      plan_, *std::move(opened),
      ServerJob::Options{&pool_, &pool_, &timer_, &memory_, incarnation_, &keys_, transport_,
                         incarnation_ / 100}));
}

void JobBench::Stop() {
  auto job = service_.Remove(JobId(1), plan_.server_index);
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

std::shared_ptr<JobBench::Answer> JobBench::Call(DataMethod method, Buffer request,
                                                 const Caller& caller) {
  auto answer = std::make_shared<Answer>();
  service_.Handle(caller, method, std::move(request), [answer](absl::StatusOr<Buffer> b) {
    REQUIRE_FALSE(answer->has_value());
    *answer = std::move(b);
  });
  pool_.RunAll();
  return answer;
}

Buffer JobBench::PushMessage(uint64_t seed, uint64_t step, const std::vector<LaneNode>& nodes,
                             wire::PushFields fields, const Sums* only) {
  fields.header = header();
  if (fields.sequence == Sequence()) fields.sequence = NextSequence();
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

absl::StatusOr<wire::PushReply> JobBench::PushStep(uint64_t seed, uint64_t step,
                                                   const std::vector<LaneNode>& nodes) {
  wire::PushFields fields;
  fields.step = Step(step);
  auto answer = Call(DataMethod::kPush, PushMessage(seed, step, nodes, fields));
  REQUIRE(answer->has_value());
  if (!(*answer)->ok()) return (*answer)->status();
  return wire::ParsePushReply((**answer)->span());
}

std::vector<Key> JobBench::KeysOf(const ShardPlan& shard) const {
  std::map<Position, Key> keys;
  for (uint64_t k = 0; k < 60; ++k) {
    const Position p = plan_.tables[0].PositionOfKey(Key(k));
    if (First(shard.range) <= p && p <= Last(shard.range)) keys[p] = Key(k);
  }
  std::vector<Key> out;
  for (const auto& [p, k] : keys) out.push_back(k);
  return out;
}

std::shared_ptr<JobBench::Answer> JobBench::Pull(uint64_t step, uint32_t wait_ms) {
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

void JobBench::CheckServed(const Answer& answer, const Reference& reference) {
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

wire::PullReplyView JobBench::Outcome(const Answer& answer) {
  REQUIRE(answer.has_value());
  REQUIRE(answer->ok());
  auto reply = wire::ParsePullReply((*answer)->span());
  REQUIRE(reply.ok());
  return *reply;
}

void JobBench::LimitDram() {
  const uint64_t least =
      storage::MinimumDramBytes(storage::RowLayout::For(plan_.tables[0]).row_bytes());
  for (ShardPlan& shard : plan_.shards) shard.memory.limits[0] = least;
  plan_.needs_tier = true;
}

void JobBench::AddHbm() {
  plan_.has_hbm = true;
  plan_.make_gpu = GpuOnHost();
  for (ShardPlan& shard : plan_.shards) {
    auto hbm = DivideHbm(plan_.tables, shard.memory.eviction,
                         LeastGpuBytesPerServer(plan_.tables, shard.memory.eviction, 1), 1);
    REQUIRE(hbm.ok());
    shard.memory.hbm_limits = *std::move(hbm);
  }
}

storage::HashSum JobBench::Hash(uint64_t step) { return Checkpoint(step, ""); }

storage::HashSum JobBench::Checkpoint(uint64_t step, const std::string& folder) {
  ServerJobDirective d;
  d.set_map_epoch(5);
  CutDirective* cut = d.add_cuts();
  cut->set_cut(1000 + ++cuts_);
  cut->set_step(step);
  cut->set_directory(folder);
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

}  // namespace strata::server
