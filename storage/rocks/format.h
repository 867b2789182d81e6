// Keys and errors of the RocksDB tier.
// Tested by tests/storage/rocks/tier_test.cc
#ifndef STRATA_STORAGE_ROCKS_FORMAT_H_
#define STRATA_STORAGE_ROCKS_FORMAT_H_

#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/core/ids.h"

namespace strata::storage::rocks {

// Partition (4 bytes), table (4), position (8), all big-endian.
constexpr size_t kKeyBytes = 16;
using RowKey = std::array<char, kKeyBytes>;

struct KeyFields {
  PartitionId partition;
  TableId table;
  Position position;
};

RowKey MakeKey(const KeyFields& fields);
// REQUIRES: kKeyBytes bytes.
KeyFields ReadKey(const char* key);

inline rocksdb::Slice SliceOf(const RowKey& key) { return {key.data(), key.size()}; }

// Errors as storage/tier/row_tier.h says.
absl::Status Translate(const rocksdb::Status& s, absl::string_view action,
                       const std::string& directory);

}  // namespace strata::storage::rocks

#endif  // STRATA_STORAGE_ROCKS_FORMAT_H_
