// What the benchmark `ssd` asks of a tier: its rows, its batches, and clients of a server's shards.
#ifndef STRATA_TOOLS_BENCH_SSD_LOAD_H_
#define STRATA_TOOLS_BENCH_SSD_LOAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/core/mutex.h"
#include "storage/row/table.h"
#include "storage/tier/row_tier.h"

namespace strata::bench {

inline constexpr size_t kSsdRowBytes = 128;
inline constexpr size_t kSsdBatch = 4096;
inline constexpr TableId kSsdTable{1};

// Batches of kSsdBatch distinct positions, ascending. The row of rank r lies at Mix64(r): ranks
// next to each other are nowhere near on disk.
class SsdBatches {
 public:
  SsdBatches(uint64_t rows, uint64_t seed);
  std::span<const Position> Uniform();
  // Exponent 1.05, by the inverse of the continuous distribution, as rb.cc draws.
  std::span<const Position> Zipf();

 private:
  template <typename Draw>
  std::span<const Position> Take(const Draw& draw);

  const uint64_t rows_;
  const double most_;
  std::mt19937_64 random_;
  std::unordered_set<uint64_t> seen_;
  std::vector<Position> batch_;
};

// Writes rows 0 .. rows - 1 in sorted batches of 200,000 that each span the whole range.
absl::Status LoadSsdRows(storage::RowTier& tier, uint64_t rows);

// As a server's tables: each shard has a range of positions and a mutex in the place of its
// executor. Thread-safe.
class SsdShards {
 public:
  static constexpr size_t kShards = 4;
  // `dram_bytes` in all. The tier outlives this.
  static absl::StatusOr<std::unique_ptr<SsdShards>> Make(storage::RowTier* tier,
                                                         uint64_t dram_bytes);

  // Copies the rows of a batch to `out`, or adds to them; goes through the shards from `first` on.
  absl::Status Work(std::span<const Position> batch, storage::Access access, size_t first,
                    uint8_t* out);
  // Sums over the shards.
  storage::TableCounters counters() const;

 private:
  struct Shard {
    Position last;
    mutable Mutex mu;
    std::unique_ptr<storage::RowTable> table ABSL_GUARDED_BY(mu);
    std::vector<storage::RowRef> refs ABSL_GUARDED_BY(mu);
  };
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_SSD_LOAD_H_
