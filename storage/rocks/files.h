// The files of the RocksDB tier, so that want of room never becomes an error inside RocksDB.
//
// Why: after an ENOSPC in the background RocksDB 7.8 refuses writes until DB::Resume, and Resume
// can wait forever: when the flush thread sees the old error while nobody recovers, it leaves its
// request in the flush queue but no thread is ever scheduled for it again. A soft error (of a
// compaction) stops flushes without refusing writes, and writers stall forever. So a background
// thread that finds no room waits here, as if the disk were slow, and tries again, at the latest
// after kRetry; the tier's writers see the shortage and answer at once.
#ifndef STRATA_STORAGE_ROCKS_FILES_H_
#define STRATA_STORAGE_ROCKS_FILES_H_

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/timer.h"
#include "storage/rocks/reads.h"

namespace strata::storage {

// What the background threads of one tier wait for, and what its writers may know of it.
// Thread-safe.
class RoomWatch {
 public:
  static constexpr absl::Duration kRetry = absl::Seconds(1);

  // The timer outlives the watch.
  explicit RoomWatch(Timer* timer) : timer_(timer) {}

  // One operation that may lack room. Lives from its first failure to its success or surrender.
  class Shortage {
   public:
    explicit Shortage(RoomWatch* watch) : watch_(watch) {}
    ~Shortage();
    Shortage(const Shortage&) = delete;
    Shortage& operator=(const Shortage&) = delete;
    // Call after each failure. True: try again now. False: give up (the tier is not open, or the
    // caller is a reader, which gets the error itself).
    bool Await(absl::string_view trouble);

   private:
    RoomWatch* const watch_;
    bool failed_ = false;
    uint64_t seen_kicks_ = 0;
  };

  // Background threads wait between Open and Close.
  void Open();
  void Close();

  // Something changed that a waiting writer wants to look at: a flush or compaction is done.
  void Progress();
  uint64_t changes() const;
  // Waits for changes() != seen, at most `limit`; false if the limit passed.
  bool AwaitChange(uint64_t seen, absl::Duration limit);

  // Has what lacks room try again, and waits until one attempt that began after this call failed
  // (its trouble), or none lacks room any more (empty). At most `limit`, then the last trouble.
  std::string TryAgain(absl::Duration limit);

  // Bytes that this tier's files took, as asked of the operating system.
  std::atomic<uint64_t> bytes_written{0};

 private:
  Timer* const timer_;
  mutable Mutex mu_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t changes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t kicks_ ABSL_GUARDED_BY(mu_) = 0;     // calls of TryAgain
  uint64_t failures_ ABSL_GUARDED_BY(mu_) = 0;  // of attempts
  uint64_t lacking_ ABSL_GUARDED_BY(mu_) = 0;   // operations that lack room
  uint64_t waiting_ ABSL_GUARDED_BY(mu_) = 0;   // those that are not trying just now
  std::string trouble_ ABSL_GUARDED_BY(mu_);    // of the last failure
};

// Files of the default file system, written and read at random by code of ours.
std::shared_ptr<rocksdb::FileSystem> MakeTierFileSystem(std::shared_ptr<RoomWatch> watch,
                                                        std::shared_ptr<ReadQueues> queues);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_ROCKS_FILES_H_
