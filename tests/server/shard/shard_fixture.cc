#include "tests/server/shard/shard_fixture.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <utility>

#include "ops/optimizer.h"
#include "server/table/gpu_memory.h"
#include "storage/gpu/host_backend.h"

namespace strata::server {
namespace {

std::vector<float> AddRows(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> out(a.size());
  for (size_t i = 0; i < a.size(); ++i) out[i] = a[i] + b[i];
  return out;
}

struct Owned {
  std::vector<Position> positions;
  std::vector<float> values;
};

}  // namespace

// Updates depend on the step's number (schedules, adam) and on all that came before (state), so a
// step that is lost, repeated or misnumbered shows. The weight is for counting updates.
std::vector<TableSpec> TestTables() {
  OptimizerSpec ftrl = {OptimizerType::kFtrl, 0.1f};
  ftrl.l1 = 0.1f;
  ftrl.clip_norm = 0.5f;
  ftrl.schedule = {.type = ScheduleType::kStep, .warmup_steps = 3, .decay_steps = 2};
  ftrl.schedule.gamma = 0.9f;
  const OptimizerSpec sgd = {OptimizerType::kSgd, 0.1f};
  OptimizerSpec adam = {OptimizerType::kAdam, 0.001f, 1e-8f};
  adam.weight_decay = 0.01f;
  adam.schedule = {.type = ScheduleType::kCosine, .decay_steps = 500};
  TableSpec features;
  features.id = TableId(0);
  features.name = "features";
  features.segments = {{"embedding", 4, {InitializerType::kNormal, 0.1f}, ftrl},
                       {"weight", 1, {InitializerType::kZero, 0.0f}, sgd}};
  TableSpec dense;
  dense.id = TableId(1);
  dense.name = "dense";
  dense.kind = TableKind::kDense;
  dense.segments = {{"dense", 4, {}, adam}};
  const Partitioning partitioning(kPartitions);
  dense.tensors = {{"w", 10, partitioning.First(PartitionId(3)), {InitializerType::kUniform, 0.5f}},
                   {"b", 3, partitioning.First(PartitionId(11)), {InitializerType::kZero, 0.0f}}};
  return {features, dense};
}

std::vector<TableSpec> TestTablesWithLifeCycle() {
  std::vector<TableSpec> tables = TestTables();
  LifeCycleRules& life = tables[0].life_cycle;
  life.admission = {AdmissionType::kExact, 2, 1.0f, 1 << 16};
  life.removal.every_steps = 1;
  life.removal.ttl_steps = 1;
  return tables;
}

LaneWork WorkOf(uint64_t seed, uint64_t step, uint32_t lane) {
  std::mt19937_64 random(seed * 1000003 + step * 101 + lane);
  const std::vector<TableSpec> tables = TestTables();
  LaneWork work;
  work.examples = 1 + random() % 5;
  const auto row = [&](uint32_t dim) {
    std::vector<float> out(dim);
    for (float& f : out) f = static_cast<float>(static_cast<int64_t>(random() % 2001) - 1000) / 500;
    return out;
  };
  for (size_t i = 0; i < 30; ++i) {
    const Position p = tables[0].PositionOfKey(Key(random() % 300));
    work.sums[0][p] = row(5);
  }
  for (const TensorSpec& t : tables[1].tensors) {
    for (uint64_t r = 0; r < t.Rows(4); ++r) work.sums[1][Position(t.first.value + r)] = row(4);
  }
  return work;
}

LaneWork NodeWork(uint64_t seed, uint64_t step, LaneNode node) {
  if (node.IsLeaf()) return WorkOf(seed, step, node.first);
  LaneWork left = NodeWork(seed, step, node.Left());
  const LaneWork right = NodeWork(seed, step, node.Right());
  left.examples += right.examples;
  for (const auto& [table, rows] : right.sums) {
    for (const auto& [position, row] : rows) {
      auto [it, fresh] = left.sums[table].try_emplace(position, row);
      if (!fresh) it->second = AddRows(it->second, row);
    }
  }
  return left;
}

ShardUpdate UpdateFor(const LaneWork& work, Position first, Position last) {
  ShardUpdate update;
  update.examples = work.examples;
  update.tables.resize(TestTables().size());
  for (const auto& [table, rows] : work.sums) {
    auto owned = std::make_shared<Owned>();
    for (const auto& [position, row] : rows) {
      if (position < first || last < position) continue;
      owned->positions.push_back(position);
      owned->values.insert(owned->values.end(), row.begin(), row.end());
    }
    update.tables[table] = {owned->positions, owned->values.data(), owned};
  }
  return update;
}

Reference::Reference(std::vector<TableSpec> tables) : tables_(std::move(tables)) {
  for (const TableSpec& t : tables_) layouts_.push_back(storage::RowLayout::For(t));
}

void Reference::Apply(const LaneWork& root, uint64_t number) {
  for (const auto& [table, rows] : root.sums) {
    const storage::RowLayout& layout = layouts_[table];
    for (const auto& [position, sums] : rows) {
      const auto known = rows_[table].find(position);
      const AdmissionRules& admission = tables_[table].life_cycle.admission;
      if (known == rows_[table].end() && admission.type != AdmissionType::kAlways) {
        if (++waiting_[table][position] < admission.min_steps) continue;
        waiting_[table].erase(position);
      }
      // In floats, so that rows are aligned.
      std::vector<float> row(layout.row_bytes() / 4);
      if (known != rows_[table].end()) {
        std::memcpy(row.data(), known->second.data(), layout.row_bytes());
      } else {
        storage::InitialRow(tables_[table], layout, kSeed, tables_[table].KeyAtPosition(position),
                            reinterpret_cast<uint8_t*>(row.data()));
      }
      bool applied = false;
      for (const storage::SegmentLayout& s : layout.segments) {
        const ops::StepScalars scalars = ops::ScalarSource(s.optimizer).At(number, root.examples);
        float* weights = row.data() + s.weight_offset;
        float* state = row.data() + s.state_offset;
        uint8_t outcome = 0;
        ops::ApplyRows(s.optimizer, scalars, s.dim, 1, &weights, &state,
                       sums.data() + s.weight_offset, layout.dim, &outcome);
        applied |= outcome != ops::kRowRefused;
      }
      if (!applied) continue;
      uint8_t* bytes = reinterpret_cast<uint8_t*>(row.data());
      storage::RowMeta meta;
      std::memcpy(&meta, bytes + layout.meta_offset(), sizeof meta);
      meta = {static_cast<uint32_t>(number), meta.updates + 1};
      std::memcpy(bytes + layout.meta_offset(), &meta, sizeof meta);
      rows_[table][position].assign(bytes, bytes + layout.row_bytes());
    }
  }
  Remove(number);
}

// Knows the only rule of TestTablesWithLifeCycle.
void Reference::Remove(uint64_t number) {
  removed_.clear();
  for (auto& [table, rows] : rows_) {
    const uint64_t ttl = tables_[table].life_cycle.removal.ttl_steps;
    if (ttl == 0) continue;
    const size_t meta = layouts_[table].meta_offset();
    std::erase_if(rows, [&, table_of = table](const auto& row) {
      uint32_t last;
      std::memcpy(&last, row.second.data() + meta, sizeof last);
      if (number - last <= ttl) return false;
      removed_.emplace_back(table_of, row.first);
      return true;
    });
  }
}

std::vector<float> Reference::Weights(uint32_t table, Position position) const {
  std::vector<float> out(layouts_[table].dim);
  const auto rows = rows_.find(table);
  if (rows != rows_.end() && rows->second.contains(position)) {
    std::memcpy(out.data(), rows->second.at(position).data(), out.size() * 4);
  } else {
    storage::InitialWeights(tables_[table], layouts_[table], kSeed,
                            tables_[table].KeyAtPosition(position), out.data());
  }
  return out;
}

storage::HashSum Reference::Hash() const { return Hash(Position(0), Position(~0ull)); }

storage::HashSum Reference::Hash(Position first, Position last) const {
  storage::HashSum sum;
  for (const auto& [table, rows] : rows_) {
    for (const auto& [position, row] : rows) {
      if (position < first || last < position) continue;
      sum += storage::HashRow(TableId(table), tables_[table].KeyAtPosition(position), row);
    }
  }
  return sum;
}

size_t Reference::rows() const {
  size_t n = 0;
  for (const auto& [table, rows] : rows_) n += rows.size();
  return n;
}

std::vector<Reference> References(uint64_t seed, uint32_t lanes, uint64_t steps,
                                  const std::vector<TableSpec>& tables) {
  std::vector<Reference> all = {Reference(tables)};
  for (uint64_t step = 1; step <= steps; ++step) {
    all.push_back(all.back());
    all.back().Apply(NodeWork(seed, step, {0, lanes}), step);
  }
  return all;
}

std::unique_ptr<Shard> MakeShard(const ShardSetup& setup) {
  ShardOptions options;
  options.job = JobId(1);
  options.generation = Generation(1);
  options.map_epoch = MapEpoch(1);
  options.id = ShardId(setup.id);
  options.partitioning = Partitioning(kPartitions);
  options.range = setup.range;
  options.tables = setup.tables;
  options.seed = kSeed;
  options.lanes = setup.lanes;
  options.synchronous = setup.synchronous;
  options.log = setup.log;
  const Position first = options.partitioning.First(setup.range.first);
  const Position last = options.partitioning.Last(setup.range.last);
  auto memory = DivideMemory(options.tables, first, last, setup.dram_bytes, 1);
  REQUIRE(memory.ok());
  if (setup.hbm_bytes > 0) {
    auto hbm = DivideHbm(options.tables, memory->eviction, setup.hbm_bytes, 1);
    REQUIRE(hbm.ok());
    memory->hbm_limits = *std::move(hbm);
  }
  auto rows = MakeTables(options.tables, first, last, *memory, setup.tier, GpuOnHost());
  REQUIRE(rows.ok());
  return std::make_unique<Shard>(std::move(options), *std::move(rows));
}

storage::gpu::GpuBackendFactory GpuOnHost() {
  return [](const storage::gpu::GpuShape& shape) {
    return storage::gpu::MakeHostGpuBackend(shape, {.threads = 1});
  };
}

std::vector<PartitionRange> Ranges(uint32_t shards) {
  std::vector<PartitionRange> out;
  for (uint32_t i = 0; i < shards; ++i) {
    out.push_back(
        {PartitionId(i * kPartitions / shards), PartitionId((i + 1) * kPartitions / shards - 1)});
  }
  return out;
}

std::unique_ptr<storage::UpdateLog> OpenLog(const std::string& folder) {
  auto log = storage::UpdateLog::Open({.directory = folder});
  INFO(log.status());
  REQUIRE(log.ok());
  return *std::move(log);
}

}  // namespace strata::server
