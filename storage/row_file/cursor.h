// The cursor of a row file.
// Tested by tests/storage/row_file/tier_test.cc
// Tested by tests/storage/row_file/writer_test.cc
#ifndef STRATA_STORAGE_ROW_FILE_CURSOR_H_
#define STRATA_STORAGE_ROW_FILE_CURSOR_H_

#include <cstddef>
#include <memory>
#include <string>

#include "proto/core/ids.h"
#include "storage/row_file/memtable.h"
#include "storage/row_file/version.h"
#include "storage/tier/row_tier.h"

namespace strata::storage::row_file {

struct CursorOptions {
  TableId table;
  Position first;
  Position last;  // inclusive
  size_t row_bytes = 0;
  std::string directory;  // for errors
  std::shared_ptr<const Version> version;
  std::shared_ptr<const Memtable> frozen;  // may be null
  Memtable active;                         // newer than `frozen`
};

std::unique_ptr<TierCursor> NewCursor(CursorOptions options);

}  // namespace strata::storage::row_file

#endif  // STRATA_STORAGE_ROW_FILE_CURSOR_H_
