// Random reads of the RocksDB tier's files; around the page cache many at once.
//
// Why our own: the blocks that a MultiGet lacks in one file are asked for in one MultiRead, which
// RocksDB answers with one pread after the other where it was built without liburing (Debian's is),
// so that the disk never sees more than one read a thread. Here they are in flight together
// (storage/io/async_reads.h).
#ifndef STRATA_STORAGE_ROCKS_READS_H_
#define STRATA_STORAGE_ROCKS_READS_H_

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/core/mutex.h"
#include "storage/io/async_reads.h"

namespace strata::storage {

// What the files of one tier share. Thread-safe. Holds as many queues as threads have read at once.
class ReadQueues {
 public:
  static constexpr size_t kDepth = 64;

  std::unique_ptr<AsyncReads> Take();
  void Return(std::unique_ptr<AsyncReads> reads);

  // Of reads by threads in a ReaderScope; others are not counted.
  void Count(size_t bytes);
  uint64_t bytes_read() const { return bytes_read_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> bytes_read_{0};
  Mutex mu_;
  std::vector<std::unique_ptr<AsyncReads>> idle_ ABSL_GUARDED_BY(mu_);
};

// While one lives, its thread is a reader: its reads are counted, and files that it cannot open are
// its caller's error.
class ReaderScope {
 public:
  ReaderScope();
  ~ReaderScope();
  ReaderScope(const ReaderScope&) = delete;
  ReaderScope& operator=(const ReaderScope&) = delete;
  static bool OnThisThread();
};

// With options.use_direct_reads around the page cache, where the file system can; else a file of
// `base`.
rocksdb::IOStatus OpenForReads(rocksdb::FileSystem* base, const std::string& path,
                               const rocksdb::FileOptions& options,
                               std::shared_ptr<ReadQueues> queues,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* out);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_ROCKS_READS_H_
