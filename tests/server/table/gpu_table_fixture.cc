#include "tests/server/table/gpu_table_fixture.h"

#include <catch2/catch.hpp>
#include <span>
#include <utility>

#include "server/table/memory.h"
#include "storage/eviction/kind.h"
#include "storage/gpu/device/backend.h"
#include "storage/gpu/host_backend.h"
#include "storage/gpu/shape.h"
#include "storage/row/layout.h"

namespace strata::server {

TableSpec TableOf(std::vector<SegmentSpec> segments) {
  TableSpec spec;
  spec.id = TableId(0);
  spec.name = "features";
  spec.segments = std::move(segments);
  return spec;
}

OptimizerSpec Spec(OptimizerType type) {
  OptimizerSpec spec = {type, 0.1f};
  spec.clip_norm = type == OptimizerType::kSgd ? 2.0f : 0.0f;
  spec.clip_value = type == OptimizerType::kAdam ? 0.5f : 0.0f;
  return spec;
}

std::vector<TableSpec> EveryOptimizer() {
  using T = OptimizerType;
  const InitializerSpec uniform = {InitializerType::kUniform, 0.5f};
  std::vector<TableSpec> tables;
  for (const T type :
       {T::kSgd, T::kAdagrad, T::kAdam, T::kMomentum, T::kRowwiseAdagrad, T::kFtrl, T::kAdd}) {
    tables.push_back(TableOf({{"a", 9, uniform, Spec(type)}}));
  }
  tables.push_back(TableOf({{"w", 1, {}, Spec(T::kFtrl)}, {"e", 16, uniform, Spec(T::kAdam)}}));
  return tables;
}

std::unique_ptr<ShardTable> MakeTable(const TableSpec& spec, uint64_t hbm_bytes,
                                      const storage::gpu::GpuBackendFactory& make_gpu) {
  auto memory = DivideMemory({spec}, kFirst, kLast, 0, 1);
  REQUIRE(memory.ok());
  if (hbm_bytes != 0) memory->hbm_limits = {hbm_bytes};
  auto rows = MakeTables({spec}, kFirst, kLast, *memory, nullptr, make_gpu);
  REQUIRE(rows.ok());
  return std::make_unique<ShardTable>(spec, 1, std::move((*rows)[0]));
}

uint64_t HbmBytes(const TableSpec& spec, uint64_t buckets) {
  return buckets * storage::gpu::MinimumHbmBytes(storage::RowLayout::For(spec).row_bytes(), 64,
                                                 storage::EvictionKind::kLrfu);
}

storage::HashSum HashOf(ShardTable& table) {
  storage::HashSum sum;
  const auto add = [&](Position p, std::span<const uint8_t> row) {
    sum += storage::HashRow(table.spec().id, table.spec().KeyAtPosition(p), row);
    return absl::OkStatus();
  };
  REQUIRE(table.rows().Scan(kFirst, kLast, add).ok());
  return sum;
}

Backends::Backends() {
  ops::gpu::HostApi::Options options;
  options.threads = 2;
  api_ = std::make_unique<ops::gpu::HostApi>(options);
}

std::vector<Backend> Backends::all() const {
  return {{"host",
           [](const storage::gpu::GpuShape& shape) {
             return storage::gpu::MakeHostGpuBackend(shape, {.threads = 2});
           }},
          {"device", [this](const storage::gpu::GpuShape& shape) {
             return storage::gpu::MakeDeviceGpuBackend(api_.get(), shape, {});
           }}};
}

}  // namespace strata::server
