// The cursor of a row file.
#ifndef STRATA_STORAGE_ROW_FILE_CURSOR_H_
#define STRATA_STORAGE_ROW_FILE_CURSOR_H_

#include <cstddef>
#include <memory>
#include <string>

#include "proto/core/ids.h"
#include "storage/row_file_memtable.h"
#include "storage/row_file_version.h"
#include "storage/row_tier.h"

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
