// Tables of a shard with and without a GPU tier, for tests that hold one against the other.
#ifndef STRATA_TESTS_SERVER_TABLE_GPU_TABLE_FIXTURE_H_
#define STRATA_TESTS_SERVER_TABLE_GPU_TABLE_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ops/cuda/api/host_api.h"
#include "proto/core/ids.h"
#include "proto/core/table_spec.h"
#include "server/table/shard_table.h"
#include "storage/gpu/backend.h"
#include "storage/row/hash.h"

namespace strata::server {

inline constexpr Position kFirst(0), kLast(~uint64_t{0});

// Table 0, hashed.
TableSpec TableOf(std::vector<SegmentSpec> segments);

// An optimizer of that type; some of them clip.
OptimizerSpec Spec(OptimizerType type);

// A table for each, and one of two segments.
std::vector<TableSpec> EveryOptimizer();

// hbm_bytes 0: without a GPU tier.
std::unique_ptr<ShardTable> MakeTable(const TableSpec& spec, uint64_t hbm_bytes = 0,
                                      const storage::gpu::GpuBackendFactory& make_gpu = nullptr);

// Of so many buckets.
uint64_t HbmBytes(const TableSpec& spec, uint64_t buckets);

// Of whole rows: state and metadata too.
storage::HashSum HashOf(ShardTable& table);

struct Backend {
  std::string name;
  storage::gpu::GpuBackendFactory make;
};

// Threads of the host, and a device's kernels on threads. Outlives the tables.
class Backends {
 public:
  Backends();
  std::vector<Backend> all() const;

 private:
  std::unique_ptr<ops::gpu::HostApi> api_;
};

}  // namespace strata::server

#endif  // STRATA_TESTS_SERVER_TABLE_GPU_TABLE_FIXTURE_H_
