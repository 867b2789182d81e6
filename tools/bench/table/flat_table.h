// The limit of tables in memory: a flat map that knows nothing but its keys.
#ifndef STRATA_TOOLS_BENCH_TABLE_FLAT_TABLE_H_
#define STRATA_TOOLS_BENCH_TABLE_FLAT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace strata::bench {

enum class TableWork : uint8_t {
  kGather,   // 16 weights are copied out
  kSgd,      // w -= rate * g, 16 floats
  kAdagrad,  // G += g^2, w -= rate * g / (sqrt(G) + epsilon), 16 + 16 floats
};

inline constexpr size_t kTableBatch = 100'000;  // keys
inline constexpr size_t kTableSets = 8;         // batches in turn
inline constexpr size_t kTableDim = 16;         // weights of a row

// Linear probing over an array of keys at load .6 at most, the row beside it at the same number,
// all in huge pages, fetched 32 keys ahead. No growth, no removal, no metadata, one fixed row size,
// one key value reserved: an upper bound, not a product. Any number of threads at once (their
// updates race where they share a row; nobody looks at the sums).
class FlatTable {
 public:
  // Rows of kTableDim floats, with as many of state for kAdagrad.
  FlatTable(size_t rows, TableWork widest);
  ~FlatTable();

  // Million keys per second, all threads together: each has kTableSets batches of kTableBatch
  // random keys.
  double Rate(TableWork work, size_t threads, double seconds) const;

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_TABLE_FLAT_TABLE_H_
