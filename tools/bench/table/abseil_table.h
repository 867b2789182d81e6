// The contestant of tables in memory: absl::flat_hash_map with the rows inside it.
#ifndef STRATA_TOOLS_BENCH_TABLE_ABSEIL_TABLE_H_
#define STRATA_TOOLS_BENCH_TABLE_ABSEIL_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tools/bench/table/flat_table.h"

namespace strata::bench {

// Rows of kTableDim floats, split by key over one map per thread; fetched ahead as its interface
// allows. No metadata, no order of position, no limit.
class AbseilTable {
 public:
  AbseilTable(size_t rows, size_t threads);
  ~AbseilTable();

  // Million keys per second, all threads together, as FlatTable::Rate. REQUIRES: not kAdagrad.
  double Rate(TableWork work, double seconds) const;

  // What growing from `from` to `to` rows in calls of `call` new rows takes.
  struct Growth {
    double longest_ms = 0;   // a call, by the clock
    double most_bytes = 0;   // resident, a row, beyond its key and weights
    double nanoseconds = 0;  // per new row
  };
  static Growth Grow(uint64_t from, uint64_t to, size_t call);

 private:
  struct Maps;
  std::unique_ptr<Maps> maps_;
};

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_TABLE_ABSEIL_TABLE_H_
