// What a trainer sends to servers of which some share its model's device, and gets from them.
#include "worker/bsp/row_exchange.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "ops/cuda/api/host_api.h"
#include "proto/wire/device_values.h"
#include "proto/wire/message_codec.h"
#include "tests/worker/client/served_rows.h"
#include "worker/client/session_machine.h"
#include "worker/device/gradient_there.h"
#include "worker/step/router.h"

namespace strata {
namespace {

using device::RowMemory;

constexpr uint32_t kServers = 2, kDim = 4;

// Two servers, a trainer's side of both, and a cohort of one lane.
struct Fixture {
  explicit Fixture(wire::ValueCodec codec = wire::ValueCodec::kFloat32)
      : plan{JobId(1),
             {{0, 1}, {0, 1}},
             Generation(1),
             {},
             testing::SmallTables(),
             ShardMap::Even(MapEpoch(1), Partitioning(64), kServers, 4),
             1,
             1,
             1,
             Step(9),
             Step(0),
             codec},
        exchange(plan.tables, plan.shards),
        memory(*RowMemory::Make(&api, "host", nullptr)),
        rows(&plan, &exchange, memory.get(), &session, /*parallel=*/nullptr, &stats) {
    std::vector<uint64_t> keys;
    for (uint64_t i = 0; i < 300; ++i) keys.push_back(i * i);
    Router router;
    router.Route(plan.tables.tables[0], keys, &lane.routed);
    data.lanes = {0};
    const RoutedKeys* routed[] = {&lane.routed};
    MergeLanes(routed, &data.all);
  }

  void Open(uint32_t server, const char* device) {
    Buffer reply = wire::EncodeOpenSessionReply({});
    if (device != nullptr) {
      auto offer = std::make_shared<DeviceValues>();
      offer->device = device;
      reply = reply.With(std::move(offer));
    }
    session.OnOpenSent(server);
    REQUIRE(session.OnOpenAnswered(server, reply, absl::UnixEpoch()).ok());
  }
  void Prepare() {
    rows.OnAllOpen();
    data.memory = rows.memory();
    if (data.memory == nullptr) return exchange.Prepare(data.keys(), &data.weights);
    REQUIRE(exchange.PrepareThere(data.keys(), data.memory, &data.weights).ok());
  }

  Buffer Pull(uint32_t server) {
    auto request = rows.EncodePull(server, exchange.ShardsOf(server), {}, Step(1), 10, data, {});
    REQUIRE(request.ok());
    const auto answer = rows.DecodePull(exchange.ShardsOf(server), Exchange::RowsOf(*request),
                                        testing::ServePull(plan.tables, *request), &data);
    INFO(answer.status());
    REQUIRE(answer.ok());
    return *request;
  }
  std::vector<float> Weights() {
    if (data.memory == nullptr) return data.weights.rows;
    std::vector<float> out(data.all.keys.size() * kDim);
    REQUIRE(memory->Download(data.weights.rows_there.get(), out.size(), out.data()).ok());
    return out;
  }
  std::vector<float> RightWeights() const {
    std::vector<float> right;
    for (const uint64_t key : data.all.keys) {
      for (size_t j = 0; j < kDim; ++j) right.push_back(testing::WeightOf(key, j));
    }
    return right;
  }

  ops::gpu::HostApi api{{}};
  const TrainingPlan plan;
  const Exchange exchange;
  TrainingStats stats;
  std::unique_ptr<RowMemory> memory;
  SessionMachine session{kServers, "host"};
  RowExchange rows;
  PreparedLane lane;
  CohortData data;
};

TEST_CASE("weights come by the device where all servers offer the model's", "[row_exchange]") {
  Fixture f;
  f.Open(0, "host");
  f.Open(1, "host");
  f.Prepare();
  REQUIRE(f.rows.memory() != nullptr);
  std::fill(f.data.weights.dense.begin(), f.data.weights.dense.end(), -1.0f);
  for (uint32_t s = 0; s < kServers; ++s) {
    const Buffer request = f.Pull(s);
    REQUIRE(request.device_values() != nullptr);
    CHECK(request.device_values()->device == "host");
    CHECK(request.device_values()->owner == f.data.weights.rows_there);
  }
  CHECK(f.Weights() == f.RightWeights());
  CHECK(f.data.weights.rows.empty());
  CHECK(f.stats.rows_there() == f.data.all.keys.size());
  for (const float w : f.data.weights.dense) REQUIRE(w >= 0);  // those came in the replies
}

TEST_CASE("one server without the device, and rows lie on the host", "[row_exchange]") {
  const auto on_host = [](Fixture& f) {
    f.Prepare();
    CHECK(f.rows.memory() == nullptr);
    for (uint32_t s = 0; s < kServers; ++s) CHECK(f.Pull(s).device_values() == nullptr);
    CHECK(f.Weights() == f.RightWeights());
    CHECK(f.stats.rows_there() == 0);
    // For good: rows of other steps are on the host.
    f.Open(0, "host");
    f.Open(1, "host");
    f.rows.OnAllOpen();
    CHECK(f.rows.memory() == nullptr);
    CHECK(f.Pull(0).device_values() == nullptr);
  };
  for (const char* other : {(const char*)nullptr, "GPU-1"}) {
    Fixture f;
    f.Open(0, "host");
    f.Open(1, other);
    on_host(f);
  }
}

TEST_CASE("a codec that is not the rows' own keeps them in messages", "[row_exchange]") {
  Fixture f(wire::ValueCodec::kBf16);
  f.Open(0, "host");
  f.Open(1, "host");
  f.rows.OnAllOpen();
  CHECK(f.rows.memory() == nullptr);
}

// A gradient of all keys of the cohort, there.
std::shared_ptr<const Gradient> GradientOf(Fixture& f, const std::vector<float>& values) {
  auto gradient = std::make_shared<Gradient>();
  gradient->examples = 1;
  gradient->keys = f.data.all.keys;
  gradient->positions = f.data.all.positions;
  gradient->runs = f.data.all.runs;
  gradient->dense.assign(f.exchange.dense_rows() * ModelTables::kDenseRowDim, 0.5f);
  auto rows = f.memory->Take(values.size());
  REQUIRE(rows.ok());
  REQUIRE(f.memory->Upload(values.data(), values.size(), rows->get()).ok());
  gradient->rows_there = *std::move(rows);
  return gradient;
}

// The rows that a push carries, by key.
void Read(const Buffer& push, std::vector<std::pair<uint64_t, float>>* out) {
  const auto view = wire::ParsePushRequest(push.span());
  REQUIRE(view.ok());
  const auto& values = push.device_values();
  if (values != nullptr) REQUIRE(values->groups.size() == view->groups.size());
  for (size_t g = 0; g < view->groups.size(); ++g) {
    const wire::GroupView& group = view->groups[g];
    const bool there = values != nullptr && values->groups[g] != nullptr;
    if (group.table != TableId(0)) {
      CHECK_FALSE(there);
      CHECK(group.floats() == group.keys() * ModelTables::kDenseRowDim);
      continue;
    }
    CHECK(group.floats() == (there ? 0 : group.keys() * kDim));
    for (size_t k = 0; k < group.keys(); ++k) {
      out->emplace_back(group.key(k).value,
                        there ? values->groups[g][k * kDim + 1] : group.value(k * kDim + 1));
    }
  }
}

TEST_CASE("a server that no longer takes rows there gets and gives the same in messages",
          "[row_exchange]") {
  Fixture f;
  f.Open(0, "host");
  f.Open(1, "host");
  f.Prepare();
  f.Open(1, nullptr);  // it was started anew
  CHECK(f.Pull(0).device_values() != nullptr);
  CHECK(f.Pull(1).device_values() == nullptr);
  CHECK(f.Weights() == f.RightWeights());

  LaneSums sums(f.plan.tables.tables);
  sums.Use(f.rows.memory());
  const auto gradient = GradientOf(f, f.RightWeights());
  sums.Put(Step(1), 0, gradient);
  wire::PushFields fields;
  fields.step = Step(1);
  const LaneNode nodes[] = {{0, 1}};
  std::vector<std::pair<uint64_t, float>> carried;
  for (uint32_t s = 0; s < kServers; ++s) {
    const auto parts = f.rows.EncodePush(s, fields, nodes, &sums, {});
    REQUIRE(parts.ok());
    REQUIRE(parts->size() == 1);
    CHECK((parts->front().device_values() != nullptr) == (s == 0));
    Read(parts->front(), &carried);
  }
  CHECK(carried.size() == f.data.all.keys.size());
  for (const auto& [key, value] : carried) REQUIRE(value == testing::WeightOf(key, 1));
}

TEST_CASE("a push keeps the rows that it names", "[row_exchange]") {
  Fixture f;
  f.Open(0, "host");
  f.Open(1, "host");
  f.Prepare();
  std::vector<Buffer> pushes;
  {
    LaneSums sums(f.plan.tables.tables);
    sums.Use(f.rows.memory());
    sums.Put(Step(1), 0, GradientOf(f, f.RightWeights()));
    wire::PushFields fields;
    fields.step = Step(1);
    const LaneNode nodes[] = {{0, 1}};
    auto parts = f.rows.EncodePush(0, fields, nodes, &sums, {});
    REQUIRE(parts.ok());
    pushes = *std::move(parts);
  }
  // Others get other memory as long as the push lives, and this one afterwards.
  const size_t floats = f.data.all.keys.size() * kDim;
  const auto inside = [&](const float* rows) {
    const float* const first = pushes.front().device_values()->groups.front();
    return rows <= first && first < rows + floats;
  };
  auto other = *f.memory->Take(floats);
  CHECK_FALSE(inside(other.get()));
  const float* const first = pushes.front().device_values()->groups.front();
  pushes.clear();
  auto again = *f.memory->Take(floats);
  CHECK(again.get() <= first);
  CHECK(first < again.get() + floats);
}

TEST_CASE("gradients are added there as on the host, to the bit", "[row_exchange]") {
  Fixture f;
  const std::vector<TableSpec>& table = f.plan.tables.tables;
  const auto part = [&](size_t begin, size_t end, float scale) {
    Gradient g;
    g.examples = end - begin;
    const SharedKeys &keys = f.data.all.keys, &positions = f.data.all.positions;
    g.keys = std::vector<uint64_t>(keys.begin() + begin, keys.begin() + end);
    g.positions = std::vector<uint64_t>(positions.begin() + begin, positions.begin() + end);
    if (end > begin) g.runs = {{0, 0, end - begin}};
    for (size_t k = begin; k < end; ++k) {
      for (size_t j = 0; j < kDim; ++j) {
        g.rows.push_back(k % 7 == 0 ? -0.0f : scale * testing::WeightOf(keys[k], j));
      }
    }
    if (begin != 0) g.dense = {scale, -0.0f};
    return g;
  };
  const auto there = [&](const Gradient& g) {
    Gradient out = g;
    out.rows.clear();
    if (g.rows.empty()) return out;
    auto rows = *f.memory->Take(g.rows.size());
    REQUIRE(f.memory->Upload(g.rows.data(), g.rows.size(), rows.get()).ok());
    out.rows_there = rows;
    return out;
  };
  const std::pair<Gradient, Gradient> pairs[] = {{part(0, 200, 1), part(100, 300, 0.3f)},
                                                 {part(0, 100, 1), part(200, 300, 0.1f)},
                                                 {part(50, 250, 1), part(50, 250, 3)},
                                                 {part(0, 300, 1), part(5, 6, 0.7f)},
                                                 {Gradient(), part(5, 60, 0.7f)},
                                                 {part(7, 60, 0.7f), Gradient()},
                                                 {Gradient(), Gradient()}};
  for (const auto& [left, right] : pairs) {
    const Gradient sum = AddGradients(table, left, right);
    const auto got = AddGradientsThere(table, f.memory.get(), there(left), there(right));
    REQUIRE(got.ok());
    CHECK(got->examples == sum.examples);
    CHECK(got->positions == sum.positions);
    CHECK(got->keys == sum.keys);
    CHECK(got->dense == sum.dense);
    CHECK(got->rows.empty());
    if (sum.positions.empty()) continue;
    const auto here = BringHere(table, f.memory.get(), *got);
    REQUIRE(here.ok());
    CHECK(here->rows_there == nullptr);
    REQUIRE(here->rows.size() == sum.rows.size());
    CHECK(std::memcmp(here->rows.data(), sum.rows.data(), sum.rows.size() * sizeof(float)) == 0);
  }
}

}  // namespace
}  // namespace strata
