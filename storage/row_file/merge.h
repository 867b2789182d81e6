// Sorted sources of rows and their merger.
// Tested by tests/storage/row_file/writer_test.cc
#ifndef STRATA_STORAGE_ROW_FILE_MERGE_H_
#define STRATA_STORAGE_ROW_FILE_MERGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "storage/row_file/block.h"
#include "storage/row_file/extent.h"
#include "storage/row_file/memtable.h"

namespace strata::storage::row_file {

// Rows in ascending order of key, deleted ones among them.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // False at the end and on an error.
  virtual bool Valid() const = 0;
  virtual RowKey key() const = 0;
  virtual uint32_t row_bytes() const = 0;
  // Null: deleted. Valid until Next or Seek.
  virtual const uint8_t* row() const = 0;
  virtual void Next() = 0;
  // Goes on to the first row at or after the key. REQUIRES: not before the present one.
  virtual void Seek(RowKey key) = 0;
  virtual absl::Status status() const = 0;
};

// Reads the extent in pieces of at least `read_bytes`, from its first row on.
std::unique_ptr<RowSource> ReadExtent(std::shared_ptr<const Extent> extent, size_t read_bytes,
                                      RowKey from);
// Entries must stay as long as the source.
std::unique_ptr<RowSource> ReadEntries(std::span<const Memtable::Entry> entries);
// The newest of equal keys. `sources`: newest first.
std::unique_ptr<RowSource> Merge(std::vector<std::unique_ptr<RowSource>> sources);

}  // namespace strata::storage::row_file

#endif  // STRATA_STORAGE_ROW_FILE_MERGE_H_
