// Rows on their way to a row file.
// Tested by tests/storage/row_file/tier_test.cc
// Tested by tests/storage/row_file/writer_test.cc
#ifndef STRATA_STORAGE_ROW_FILE_MEMTABLE_H_
#define STRATA_STORAGE_ROW_FILE_MEMTABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/core/ids.h"
#include "storage/row_file/block.h"

namespace strata::storage::row_file {

// Not thread-safe. Memory: bytes() + 1/4, of which a row counts row_bytes + 32.
class Memtable {
 public:
  // `row` null: the row is deleted.
  void Put(TableId table, uint32_t row_bytes, Position position, const uint8_t* row);

  struct Hit {
    bool known = false;            // the memtable decides
    const uint8_t* row = nullptr;  // null if deleted; valid until the next Put
  };
  Hit Get(TableId table, Position position) const;

  struct Entry {
    RowKey key;
    uint32_t row_bytes;
    const uint8_t* row;  // null: deleted
  };
  // All rows with first <= key <= last, ascending. Valid until the next Put.
  std::vector<Entry> Sorted(RowKey first, RowKey last) const;

  uint64_t bytes() const { return bytes_; }
  bool empty() const { return tables_.empty(); }

 private:
  static constexpr uint32_t kDeleted = ~uint32_t{0};
  static constexpr size_t kSlabRows = 256;

  struct Table {
    uint32_t row_bytes = 0;
    uint32_t rows = 0;
    absl::flat_hash_map<uint64_t, uint32_t> slots;  // by position: number of the row
    std::vector<std::vector<uint8_t>> slabs;        // kSlabRows rows each
    uint8_t* Row(uint32_t i) { return slabs[i / kSlabRows].data() + i % kSlabRows * row_bytes; }
    const uint8_t* Row(uint32_t i) const {
      return slabs[i / kSlabRows].data() + i % kSlabRows * row_bytes;
    }
  };
  std::map<TableId, Table> tables_;
  uint64_t bytes_ = 0;
};

}  // namespace strata::storage::row_file

#endif  // STRATA_STORAGE_ROW_FILE_MEMTABLE_H_
