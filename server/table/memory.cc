#include "server/table/memory.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/dram_parts.h"
#include "server/table/gpu_memory.h"
#include "storage/dram/store.h"
#include "storage/dram/table.h"
#include "storage/gpu/table.h"
#include "storage/row/layout.h"
#include "storage/tiered/options.h"
#include "storage/tiered/table.h"

namespace strata::server {
namespace {

uint64_t Minimum(const TableSpec& table) {
  return storage::MinimumDramBytes(storage::RowLayout::For(table).row_bytes());
}

uint64_t DenseBytes(const TableSpec& table, Position first, Position last) {
  storage::RowStoreOptions options;
  options.row_bytes = storage::RowLayout::For(table).row_bytes();
  return storage::RowStore::BytesFor(options, DenseRows(table, first, last));
}

// By table, of the rows in [first, last].
std::vector<DramClaim> ClaimsOf(const std::vector<TableSpec>& tables, Position first,
                                Position last) {
  std::vector<DramClaim> claims;
  for (const TableSpec& t : tables) {
    DramClaim& claim = claims.emplace_back();
    if (t.kind == TableKind::kDense) {
      claim.whole = DenseBytes(t, first, last);
    } else {
      claim.least = Minimum(t);
    }
  }
  return claims;
}

// By table: its limit, or 0 where it lies in DRAM alone. More bytes make no limit smaller.
std::vector<uint64_t> Divide(const std::vector<TableSpec>& tables,
                             const std::vector<DramClaim>& claims, uint64_t shard_bytes) {
  std::vector<uint64_t> limits = DivideDram(tables, claims, shard_bytes);
  for (size_t i = 0; i < tables.size(); ++i) {
    const bool fits = tables[i].kind == TableKind::kDense && limits[i] == claims[i].whole;
    limits[i] = fits ? 0 : std::max<uint64_t>(limits[i], 1);
  }
  return limits;
}

// The first table that is admitted under no limit as small as its own.
std::optional<size_t> TooSmallFor(const std::vector<TableSpec>& tables,
                                  const std::vector<uint64_t>& limits) {
  for (size_t i = 0; i < tables.size(); ++i) {
    if (limits[i] != 0 && limits[i] < Minimum(tables[i])) return i;
  }
  return std::nullopt;
}

storage::Spread SpreadOf(const TableSpec& table) {
  return table.kind == TableKind::kDense ? storage::Spread::kClustered : storage::Spread::kUniform;
}

// In DRAM alone (limit_bytes 0), or in DRAM and below.
absl::StatusOr<std::unique_ptr<storage::RowTable>> MakeBelowHbm(const TableSpec& table,
                                                                Position first, Position last,
                                                                uint64_t limit_bytes,
                                                                storage::EvictionKind eviction,
                                                                storage::RowTier* below) {
  const size_t row_bytes = storage::RowLayout::For(table).row_bytes();
  if (limit_bytes == 0) {
    storage::DramTableOptions options;
    options.row_bytes = row_bytes;
    options.first = first;
    options.last = last;
    options.spread = SpreadOf(table);
    return storage::MakeDramTable(options);
  }
  storage::TieredOptions options;
  options.table = table.id;
  options.row_bytes = row_bytes;
  options.first = first;
  options.last = last;
  options.spread = SpreadOf(table);
  options.dram_limit_bytes = limit_bytes;
  options.below = below;
  options.eviction = eviction;
  return storage::MakeTieredTable(options);
}

}  // namespace

uint64_t DenseRows(const TableSpec& table, Position first, Position last) {
  uint64_t rows = 0;
  for (const TensorSpec& tensor : table.tensors) {
    const uint64_t tensor_rows = tensor.Rows(table.dim());
    if (tensor_rows == 0) continue;
    const uint64_t from = std::max(first.value, tensor.first.value);
    const uint64_t to = std::min(last.value, tensor.first.value + tensor_rows - 1);
    if (from <= to) rows += to - from + 1;
  }
  return rows;
}

uint64_t LeastDramBytesPerServer(const std::vector<TableSpec>& tables, uint32_t shards_here) {
  // No shard has more dense rows than all of them.
  const std::vector<DramClaim> claims = ClaimsOf(tables, Position(0), Position(~0ull));
  uint64_t low = 0, high = 1;
  while (TooSmallFor(tables, Divide(tables, claims, high))) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {  // low is too small, high is not
    const uint64_t middle = low + (high - low) / 2;
    (TooSmallFor(tables, Divide(tables, claims, middle)) ? low : high) = middle;
  }
  return shards_here * high;
}

absl::StatusOr<TableMemory> DivideMemory(const std::vector<TableSpec>& tables, Position first,
                                         Position last, uint64_t shard_bytes,
                                         uint32_t shards_here) {
  TableMemory memory;
  memory.limits.assign(tables.size(), 0);
  if (shard_bytes == 0) return memory;
  memory.limits = Divide(tables, ClaimsOf(tables, first, last), shard_bytes);
  const auto small = TooSmallFor(tables, memory.limits);
  if (!small) return memory;
  return absl::FailedPreconditionError(absl::StrCat(
      "spec.storage.dramBytesPerServer is too small: ", shard_bytes * shards_here, " bytes over ",
      shards_here, " shards leave table \"", tables[*small].name, "\" ", memory.limits[*small],
      " bytes in a shard, and ", Minimum(tables[*small]), " are needed; set it to at least ",
      LeastDramBytesPerServer(tables, shards_here), ", or spec.storage.shardsPerServer lower"));
}

absl::StatusOr<std::vector<std::unique_ptr<storage::RowTable>>> MakeTables(
    const std::vector<TableSpec>& tables, Position first, Position last, const TableMemory& memory,
    storage::RowTier* below, const storage::gpu::GpuBackendFactory& make_gpu) {
  std::vector<std::unique_ptr<storage::RowTable>> made;
  for (size_t i = 0; i < tables.size(); ++i) {
    auto table = MakeBelowHbm(tables[i], first, last, memory.limits[i], memory.eviction, below);
    if (!table.ok()) return table.status();
    if (!memory.hbm_limits.empty() && memory.hbm_limits[i] > 0) {
      storage::gpu::GpuTableOptions options;
      options.row_bytes = storage::RowLayout::For(tables[i]).row_bytes();
      options.first = first;
      options.last = last;
      options.hbm_limit_bytes = memory.hbm_limits[i];
      options.bucket_slots = kGpuBucketSlots;
      options.eviction = memory.eviction;
      table = storage::gpu::MakeGpuTable(options, *std::move(table), make_gpu);
      if (!table.ok()) return table.status();
    }
    made.push_back(*std::move(table));
  }
  return made;
}

}  // namespace strata::server
