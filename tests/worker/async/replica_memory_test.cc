// What a lane's copy of the weights takes, against what is told of it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "proto/core/memory_part.h"
#include "proto/core/table_spec.h"
#include "proto/job/tables/model_tables.h"
#include "tests/heap_bytes.h"
#include "worker/async/replica.h"
#include "worker/lane_memory.h"

namespace strata {
namespace {

using testing::HeapBytes;

constexpr uint32_t kDim = 16;
constexpr size_t kDenseRows = 64;
constexpr size_t kBatchesPerPull = 4;
constexpr size_t kKeysPerBatch = 2000;

std::vector<TableSpec> Tables(OptimizerType type) {
  OptimizerSpec optimizer;
  optimizer.type = type;
  optimizer.learning_rate = 0.1f;
  std::vector<TableSpec> tables(2);
  tables[0].segments = {{"embedding", kDim, {}, optimizer}};
  tables[1].id = TableId(1);
  tables[1].kind = TableKind::kDense;
  tables[1].segments = {{"dense", ModelTables::kDenseRowDim, {}, optimizer}};
  return tables;
}

// Batches of keys, and gradients of ones.
class Batches {
 public:
  explicit Batches(uint64_t rows) : rows_(rows) {}

  RoutedKeys Next() {
    std::set<uint64_t> keys;
    while (keys.size() < kKeysPerBatch) {
      x_ = x_ * 6364136223846793005ull + 1442695040888963407ull;
      keys.insert((x_ >> 33) % rows_);
    }
    seen_.insert(keys.begin(), keys.end());
    RoutedKeys routed;
    routed.keys = std::vector<uint64_t>(keys.begin(), keys.end());
    routed.positions = routed.keys;
    routed.runs = {{0, 0, keys.size()}};
    return routed;
  }
  uint64_t seen() const { return seen_.size(); }

  static Gradient GradientOf(const RoutedKeys& keys) {
    Gradient g;
    g.examples = 1;
    g.keys = keys.keys;
    g.positions = keys.positions;
    g.runs = keys.runs;
    g.rows.assign(keys.keys.size() * kDim, 1.0f);
    g.dense.assign(kDenseRows * ModelTables::kDenseRowDim, 1.0f);
    return g;
  }

 private:
  const uint64_t rows_;
  uint64_t x_ = 1;
  std::set<uint64_t> seen_;
};

struct Taken {
  uint64_t most = 0;
  uint64_t keys = 0;  // that were stepped on
};

// The most that a lane has after any call of so many windows; batches and gradients are there
// before.
Taken Train(const std::vector<TableSpec>& tables, float alpha, int windows, uint64_t rows) {
  ReplicaOptions options;
  options.tables = tables;
  options.dense_rows = kDenseRows;
  options.alpha = alpha;
  Batches batches(rows);
  std::vector<std::vector<RoutedKeys>> routed(static_cast<size_t>(windows));
  for (auto& window : routed) {
    for (size_t b = 0; b < kBatchesPerPull; ++b) window.push_back(batches.Next());
  }
  const Gradient gradient = Batches::GradientOf(routed[0][0]);
  Taken taken;
  const uint64_t before = HeapBytes();
  const auto look = [&] { taken.most = std::max(taken.most, HeapBytes() - before); };
  Replica replica(options);
  for (const auto& window : routed) {
    std::vector<const RoutedKeys*> lists;
    for (const RoutedKeys& keys : window) lists.push_back(&keys);
    const KeyList wanted = replica.Plan(lists);
    replica.pulled()->rows.resize(wanted.keys.size() * kDim);
    replica.pulled()->dense.resize(gradient.dense.size());
    replica.Pulled();
    look();
    std::shared_ptr<const Gradient> delta;
    if (alpha > 0) delta = replica.Exchange();
    look();
    for (size_t b = 0; b < window.size(); ++b) {
      Gradient g = Batches::GradientOf(window[b]);
      replica.Rows(b);
      REQUIRE(replica.LocalStep(b, g).ok());
      look();
    }
  }
  taken.keys = batches.seen();
  return taken;
}

uint64_t Told(const std::vector<TableSpec>& tables, bool elastic, uint64_t keys) {
  LaneLoad load;
  load.keys_per_batch = kKeysPerBatch;
  load.keys_per_pull = kBatchesPerPull * kKeysPerBatch;
  load.keys_of_lane = keys;
  load.row_bytes = kDim * sizeof(float);
  load.dense_bytes = kDenseRows * ModelTables::kDenseRowDim * sizeof(float);
  load.local_tables = tables;
  load.elastic = elastic;
  return TotalBytes(EstimateLanes(load));
}

TEST_CASE("a lane takes no more than was told, and little less", "[replica][memory]") {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  for (const OptimizerType type :
       {OptimizerType::kSgd, OptimizerType::kAdagrad, OptimizerType::kAdam, OptimizerType::kFtrl}) {
    for (const float alpha : {0.0f, 0.5f}) {
      const std::vector<TableSpec> tables = Tables(type);
      if (alpha == 0 && type != OptimizerType::kSgd) continue;  // downpour's step is a plain one
      const Taken taken = Train(tables, alpha, 30, 100'000);
      const uint64_t told = Told(tables, alpha > 0, taken.keys);
      INFO("optimizer " << static_cast<int>(type) << ", alpha " << alpha << ": told " << told
                        << ", taken " << taken.most);
      CHECK(told >= taken.most);
      CHECK(told <= taken.most * 2 + (1 << 20));
    }
  }
}

TEST_CASE("state grows with the rows that a lane steps on", "[replica][memory]") {
  const std::vector<TableSpec> adagrad = Tables(OptimizerType::kAdagrad);
  const uint64_t few = Told(adagrad, true, 10'000), many = Told(adagrad, true, 1'000'000);
  CHECK(many > few + 990'000 * kDim * sizeof(float));
  const std::vector<TableSpec> sgd = Tables(OptimizerType::kSgd);
  CHECK(Told(sgd, true, 10'000) == Told(sgd, true, 1'000'000));
}

}  // namespace
}  // namespace strata
