#include "proto/job/dram_limit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/job/job_spec.h"
#include "proto/job/tables/hashed_tables.h"

namespace strata {
namespace {

constexpr uint64_t kRows = 16;
constexpr uint64_t kPages = 2 * 4096;
constexpr uint32_t kLeastDefaultShards = 4;

// Floats of optimizer state of a row (ops/optimizer.h).
uint64_t StateFloats(OptimizerType type, uint64_t dim) {
  switch (type) {
    case OptimizerType::kSgd:
    case OptimizerType::kAdd:
      return 0;
    case OptimizerType::kRowwiseAdagrad:
      return 1;
    case OptimizerType::kAdagrad:
    case OptimizerType::kMomentum:
      return dim;
    case OptimizerType::kAdam:
    case OptimizerType::kFtrl:
      return 2 * dim;
  }
  return 0;
}

}  // namespace

uint64_t RowBytes(const TableSpec& table) {
  uint64_t floats = table.life_cycle.scored() ? 1 : 0;
  for (const SegmentSpec& s : table.segments) {
    floats += s.dim + StateFloats(s.optimizer.type, s.dim);
  }
  return 4 * floats + 8;
}

uint64_t LeastTableBytes(const TableSpec& table) { return kRows * (RowBytes(table) + 8) + kPages; }

absl::Status CheckDramLimit(const JobSpec& spec) {
  const auto limit = ParseBytes(spec.storage().dram_bytes_per_server());
  if (!limit.ok() || *limit == 0) return limit.status();
  const auto tables = MakeHashedTables(spec);
  if (!tables.ok()) return absl::OkStatus();  // told when the data are known
  // Whatever their shares, each has its least (proto/core/dram_parts.h).
  uint64_t shard = 0;
  for (const TableSpec& table : *tables) shard += LeastTableBytes(table);
  const uint32_t servers = std::max<uint32_t>(1, spec.replicas().servers());
  const uint32_t most = std::max<uint32_t>(1, spec.storage().partitions() / servers);
  const uint32_t wanted = spec.storage().shards_per_server();
  const uint64_t shards = std::min(wanted == 0 ? kLeastDefaultShards : wanted, most);
  if (*limit >= shards * shard) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "spec.storage.dramBytesPerServer: ", spec.storage().dram_bytes_per_server(),
      " is too small: a server holds ", shards, " shards or more, and each needs at least ", shard,
      " bytes for its rows of features, ", shards * shard,
      " in all, and the dense layers take more; `strata estimate` says what is enough; or set "
      "spec.storage.shardsPerServer lower"));
}

}  // namespace strata
