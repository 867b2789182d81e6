// How far a snapshot's file is.
// Tested by tests/server/snapshot/driver_test.cc
#ifndef STRATA_SERVER_SNAPSHOT_PROGRESS_H_
#define STRATA_SERVER_SNAPSHOT_PROGRESS_H_

#include <atomic>
#include <cstdint>

namespace strata::server {

// Added to by the thread that writes, read by any. Rows and positions: 8 + row_bytes for each row,
// 8 for each that is gone; what else a file has (header, sections, pre-images) is small, and
// counted when the file is there.
struct SnapshotProgress {
  std::atomic<uint64_t> written_bytes{0};
  // What is expected; of a file that is there, its size.
  std::atomic<uint64_t> total_bytes{0};
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SNAPSHOT_PROGRESS_H_
