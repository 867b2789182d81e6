// The first rows whose gradients were refused, by name.
// Tested by tests/server/table/shard_table_test.cc
#ifndef STRATA_SERVER_TABLE_REFUSED_ROWS_H_
#define STRATA_SERVER_TABLE_REFUSED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/core/ids.h"

namespace strata::server {

struct RefusedRowCount {
  TableId table;
  Key key;
  uint64_t refused = 0;
  friend bool operator==(const RefusedRowCount&, const RefusedRowCount&) = default;
};

// Of one table. Every row is counted elsewhere; here only the first kMost of them are.
class FirstRefusedRows {
 public:
  static constexpr size_t kMost = 8;

  void Add(TableId table, Key key) {
    for (RefusedRowCount& row : rows_) {
      if (row.key != key) continue;
      ++row.refused;
      return;
    }
    if (rows_.size() < kMost) rows_.push_back({table, key, 1});
  }
  // In the order in which they were refused first.
  const std::vector<RefusedRowCount>& rows() const { return rows_; }

 private:
  std::vector<RefusedRowCount> rows_;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_TABLE_REFUSED_ROWS_H_
