// What Sync of the RocksDB tier promised, beside RocksDB's own files.
//
// Why: RocksDB takes a manifest whose last records do not fit, one flipped bit in a length, for one
// that a crash cut off, and opens with the rows before; FORMAT.md, "SSD tier", gives the bytes.
// Tested by tests/storage/rocks/tier_test.cc
#ifndef STRATA_STORAGE_ROCKS_MARK_H_
#define STRATA_STORAGE_ROCKS_MARK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/mutex.h"

namespace strata::storage::rocks {

// The file DIRECTORY/SYNCED. Thread-safe.
class SyncMark {
 public:
  explicit SyncMark(const std::string& directory) : directory_(directory) {}

  // The sequence number that it holds; 0: there is none. DATA_LOSS where it does not check.
  absl::StatusOr<uint64_t> Read() const;
  // Durable, and never lower than before. Errors are those of the files (storage/io/file_io.h).
  absl::Status Raise(uint64_t number);
  absl::Status Remove() const;

 private:
  const std::string directory_;
  Mutex mu_;
  uint64_t number_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace strata::storage::rocks

#endif  // STRATA_STORAGE_ROCKS_MARK_H_
