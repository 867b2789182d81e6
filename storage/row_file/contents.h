// What a row file holds at any moment, and the thread that brings it from memory into files.
// Tested by tests/storage/row_file/tier_test.cc
#ifndef STRATA_STORAGE_ROW_FILE_CONTENTS_H_
#define STRATA_STORAGE_ROW_FILE_CONTENTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/core/ids.h"
#include "proto/core/mutex.h"
#include "proto/core/partition.h"
#include "proto/runtime/base/timer.h"
#include "storage/row_file/memtable.h"
#include "storage/row_file/reader.h"
#include "storage/row_file/version.h"
#include "storage/row_file/writer.h"

namespace strata::storage::row_file {

// The newest rows lie in the active memtable, then come those of the frozen one, which is being
// written, then those of the version. A full active memtable is frozen; the thread turns it into
// the next version, merges what NextJob says, and makes the result durable. What fails is tried
// again after a second, and at once when somebody waits for it; who waits gets the error of an
// attempt that began after the call, and UNAVAILABLE when nothing happens for a minute.
//
// Thread-safe. Memory: two memtables of memtable_bytes * 5/4 and what one Put adds.
class Contents {
 public:
  struct Options {
    std::string directory;  // for errors
    uint64_t memtable_bytes = 0;
    Timer* timer = nullptr;  // outlives the contents
  };
  Contents(Options options, std::unique_ptr<VersionWriter> writer, VersionPointer version);
  // What Sync did not save is lost.
  ~Contents();

  // Calls `fill` with the active memtable when that has room. `fill` must not call this object.
  absl::Status Put(const std::function<void(Memtable&)>& fill);
  // Everything put so far is in files, and they are durable.
  absl::Status Sync();
  // Removes whole partitions. After an error they are there, wholly or in part, and nothing that is
  // put later is removed.
  absl::Status Drop(PartitionRange partitions);

  // The view of a lookup; what the active memtable knows is told at once.
  ReadView Look(TableId table, std::span<const Position> positions,
                const BatchReader::Known& known) const;
  struct Snapshot {
    ReadView view;
    Memtable active;  // a copy of its rows in the range
  };
  Snapshot Take(TableId table, Position first, Position last) const;

  VersionPointer version() const;
  uint64_t manifest_bytes() const { return writer_->manifest_bytes(); }

 private:
  absl::Status Freeze() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  template <typename Done>
  absl::Status AwaitProgress(const Done& done, absl::string_view action)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Commit(absl::string_view action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closing_ || frozen_ != nullptr || commits_ < commits_wanted_;
  }
  bool KickedOrClosing() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closing_ || kicks_ != seen_kicks_;
  }

  // The thread.
  void Work();
  absl::Status Cycle() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status MergeAll(VersionPointer& version);
  void Dropped(const PartitionRange& partitions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Publish(VersionPointer& version, VersionPointer next, bool flushed) ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  const std::unique_ptr<VersionWriter> writer_;  // of the thread

  mutable Mutex mu_;
  std::unique_ptr<Memtable> active_ ABSL_GUARDED_BY(mu_) = std::make_unique<Memtable>();
  std::shared_ptr<const Memtable> frozen_ ABSL_GUARDED_BY(mu_);  // being written
  VersionPointer version_ ABSL_GUARDED_BY(mu_);
  std::vector<PartitionRange> drops_ ABSL_GUARDED_BY(mu_);  // one of each Drop that waits
  uint64_t commits_wanted_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t commits_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t progress_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t failures_ ABSL_GUARDED_BY(mu_) = 0;  // of cycles
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  uint64_t kicks_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t seen_kicks_ ABSL_GUARDED_BY(mu_) = 0;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses everything above
};

}  // namespace strata::storage::row_file

#endif  // STRATA_STORAGE_ROW_FILE_CONTENTS_H_
