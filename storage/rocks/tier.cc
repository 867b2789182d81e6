#include "storage/rocks/tier.h"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/core/mutex.h"
#include "proto/core/partition.h"
#include "proto/runtime/base/failpoints.h"
#include "storage/io/file_io.h"
#include "storage/rocks/cursor.h"
#include "storage/rocks/files.h"
#include "storage/rocks/format.h"
#include "storage/rocks/mark.h"
#include "storage/rocks/reads.h"

namespace strata::storage {
namespace {

using rocks::MakeKey;
using rocks::RowKey;
using rocks::SliceOf;
using rocks::Translate;

// The longest that a write or Sync waits without any sign of life from flushes and compactions.
constexpr absl::Duration kStallLimit = absl::Seconds(60);

// What a writer that found the memtables full, and Sync, wait for.
class BackgroundWork final : public rocksdb::EventListener {
 public:
  explicit BackgroundWork(std::shared_ptr<RoomWatch> watch) : watch_(std::move(watch)) {}

  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo& job) override {
    Flushed(job.largest_seqno);
  }
  void OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo&) override {
    watch_->Progress();
  }
  void OnStallConditionsChanged(const rocksdb::WriteStallInfo&) override { watch_->Progress(); }
  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* error) override {
    {
      MutexLock lock(&mu_);
      if (error_.ok()) error_ = *error;
    }
    watch_->Progress();
  }
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* auto_recovery) override {
    *auto_recovery = false;  // it can wait forever (files.h)
  }

  // All writes up to this sequence number are in files.
  void Flushed(rocksdb::SequenceNumber number) {
    {
      MutexLock lock(&mu_);
      flushed_ = std::max(flushed_, number);
    }
    watch_->Progress();
  }
  rocksdb::SequenceNumber flushed() const {
    MutexLock lock(&mu_);
    return flushed_;
  }
  // The first one; it stays until the database is opened again.
  rocksdb::Status error() const {
    MutexLock lock(&mu_);
    return error_;
  }

 private:
  const std::shared_ptr<RoomWatch> watch_;
  mutable Mutex mu_;
  rocksdb::SequenceNumber flushed_ ABSL_GUARDED_BY(mu_) = 0;
  rocksdb::Status error_ ABSL_GUARDED_BY(mu_);
};

// RocksDB's LOG file would be written on the full disk too, and Debian's build, which asserts, dies
// of its failed writes. Errors reach the caller; events are counted.
class NoLog final : public rocksdb::Logger {
 public:
  NoLog() : rocksdb::Logger(rocksdb::InfoLogLevel::FATAL_LEVEL) {}
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

rocksdb::Options MakeOptions(const RocksTierOptions& options) {
  rocksdb::Options out;
  out.create_if_missing = true;
  out.compression = rocksdb::kNoCompression;
  out.write_buffer_size = options.memtable_bytes;
  out.max_write_buffer_number = kMaxMemtables;
  out.max_background_flushes = 1;  // so that memtables reach files in their order (Sync)
  out.max_background_compactions = std::max(1, options.background_jobs - 1);
  out.max_open_files = options.max_open_files;
  out.level_compaction_dynamic_level_bytes = true;
  out.info_log = std::make_shared<NoLog>();
  out.avoid_flush_during_shutdown = true;  // what Sync did not save need not be saved
  out.max_bgerror_resume_count = 0;
  // Writers never sleep inside RocksDB (RocksTier::Commit), so slowing them down would stop them.
  out.level0_slowdown_writes_trigger = out.level0_stop_writes_trigger;
  out.soft_pending_compaction_bytes_limit = 0;
  out.hard_pending_compaction_bytes_limit = 0;
  out.use_direct_reads = options.io == RocksTierOptions::Io::kDirect;
  out.use_direct_io_for_flush_and_compaction = out.use_direct_reads;
  rocksdb::BlockBasedTableOptions table;
  // Few shards: the filter of a file of 64 MiB takes .6 MB for rows of 128 bytes, and what does not
  // fit a shard is read again for every lookup. Half is for indexes and filters first.
  table.block_cache = rocksdb::NewLRUCache(options.block_cache_bytes, /*num_shard_bits=*/2,
                                           /*strict_capacity_limit=*/false,
                                           /*high_pri_pool_ratio=*/0.5);
  table.block_size = options.block_bytes;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  out.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return out;
}

// In the order of construction: what comes later uses what comes before.
struct Parts {
  std::shared_ptr<RoomWatch> watch;
  std::shared_ptr<BackgroundWork> work;
  std::shared_ptr<ReadQueues> queues;
  std::unique_ptr<rocks::SyncMark> mark;
  std::unique_ptr<rocksdb::Env> env;
  std::unique_ptr<rocksdb::DB> db;
};

class RocksTier final : public RowTier {
 public:
  RocksTier(const RocksTierOptions& options, Parts parts)
      : directory_(options.directory),
        partitioning_(options.partitions),
        parts_(std::move(parts)),
        db_(parts_.db.get()) {
    write_.disableWAL = true;
    write_.no_slowdown = true;
    parts_.work->Flushed(db_->GetLatestSequenceNumber());
    parts_.watch->Open();
  }
  ~RocksTier() override { parts_.watch->Close(); }

  absl::Status Read(TableId table, std::span<const Position> positions, size_t row_bytes,
                    const Found& found) override {
    const ReaderScope reader;
    rows_asked_.fetch_add(positions.size(), std::memory_order_relaxed);
    const size_t chunk = ReadRowsAtOnce(row_bytes);
    for (size_t begin = 0; begin < positions.size(); begin += chunk) {
      const size_t n = std::min(chunk, positions.size() - begin);
      absl::Status s = ReadChunk(table, positions.subspan(begin, n), begin, row_bytes, found);
      if (!s.ok()) return s;
    }
    return absl::OkStatus();
  }

  absl::Status Write(TableId table, std::span<const Position> positions,
                     std::span<const uint8_t* const> rows, size_t row_bytes) override {
    rocksdb::WriteBatch batch;
    size_t begin = 0;  // of the batch
    for (size_t i = 0; i < positions.size(); ++i) {
      const RowKey key = KeyOfRow(table, positions[i]);
      const rocksdb::Slice row(reinterpret_cast<const char*>(rows[i]), row_bytes);
      absl::Status s = Translate(batch.Put(SliceOf(key), row), "write", directory_);
      if (!s.ok()) return s;
      if (batch.GetDataSize() < kWriteChunkBytes && i + 1 < positions.size()) continue;
      if (s = Commit(batch); !s.ok()) return s;
      batch.Clear();
      asked_bytes_.fetch_add((i + 1 - begin) * row_bytes, std::memory_order_relaxed);
      begin = i + 1;
    }
    return absl::OkStatus();
  }

  absl::Status Delete(TableId table, std::span<const Position> positions) override {
    rocksdb::WriteBatch batch;
    for (Position position : positions) {
      const RowKey key = KeyOfRow(table, position);
      absl::Status s = Translate(batch.Delete(SliceOf(key)), "delete", directory_);
      if (!s.ok()) return s;
    }
    return positions.empty() ? absl::OkStatus() : Commit(batch);
  }

  std::unique_ptr<TierCursor> NewCursor(TableId table, Position first, Position last,
                                        size_t row_bytes) override {
    const ReaderScope reader;
    rocksdb::ReadOptions read;
    read.fill_cache = false;  // a scan must not push the batches' blocks out
    return rocks::NewRocksCursor(
        std::unique_ptr<rocksdb::Iterator>(db_->NewIterator(read)), directory_, partitioning_,
        {.table = table, .first = first, .last = last, .row_bytes = row_bytes});
  }

  absl::Status DeletePartitions(PartitionId first, PartitionId last) override {
    const RowKey begin = MakeKey({first, TableId(0), Position(0)});
    // Exclusive; partitions are below 2^20, so the successor always exists.
    const RowKey end = MakeKey({last.Next(), TableId(0), Position(0)});
    rocksdb::WriteBatch batch;
    absl::Status s =
        Translate(batch.DeleteRange(SliceOf(begin), SliceOf(end)), "delete partitions", directory_);
    return s.ok() ? Commit(batch) : s;
  }

  absl::Status Sync() override {
    const rocksdb::SequenceNumber number = db_->GetLatestSequenceNumber();
    const std::string action = "write its memory to files";
    rocksdb::FlushOptions flush;
    flush.wait = false;
    flush.allow_write_stall = true;
    for (bool asked = false;;) {
      const uint64_t changes = parts_.watch->changes();
      if (absl::Status s = BackgroundFailure(action); !s.ok()) return s;
      if (!asked) {
        const rocksdb::Status s = db_->Flush(flush);
        // RocksDB asks to come back while writes are stopped: flushes are under way.
        if (!s.ok() && !s.IsTryAgain()) return Refused(s, action);
        asked = s.ok();
      }
      if (parts_.work->flushed() >= number) return parts_.mark->Raise(number);
      if (absl::Status s = AwaitBackground(changes, action); !s.ok()) return s;
    }
  }

  TierStats stats() const override {
    TierStats out;
    out.asked_bytes = asked_bytes_.load(std::memory_order_relaxed);
    out.written_bytes = parts_.watch->bytes_written.load(std::memory_order_relaxed);
    out.read_bytes = parts_.queues->bytes_read();
    out.rows_asked = rows_asked_.load(std::memory_order_relaxed);
    db_->GetIntProperty(rocksdb::DB::Properties::kEstimateLiveDataSize, &out.live_bytes);
    db_->GetIntProperty(rocksdb::DB::Properties::kTotalSstFilesSize, &out.file_bytes);
    db_->GetIntProperty(rocksdb::DB::Properties::kEstimateTableReadersMem, &out.memory_bytes);
    return out;
  }

 private:
  RowKey KeyOfRow(TableId table, Position position) const {
    return MakeKey({partitioning_.Of(position), table, position});
  }

  absl::Status ReadChunk(TableId table, std::span<const Position> positions, size_t begin,
                         size_t row_bytes, const Found& found) {
    const size_t n = positions.size();
    std::vector<RowKey> keys(n);
    std::vector<rocksdb::Slice> slices(n);
    for (size_t i = 0; i < n; ++i) {
      keys[i] = KeyOfRow(table, positions[i]);
      slices[i] = SliceOf(keys[i]);
    }
    std::vector<rocksdb::PinnableSlice> values(n);
    std::vector<rocksdb::Status> statuses(n);
    db_->MultiGet(rocksdb::ReadOptions(), db_->DefaultColumnFamily(), n, slices.data(),
                  values.data(), statuses.data(), /*sorted_input=*/true);
    for (const rocksdb::Status& s : statuses) {
      if (!s.ok() && !s.IsNotFound()) return Translate(s, "read rows", directory_);
    }
    for (size_t i = 0; i < n; ++i) {
      if (statuses[i].IsNotFound()) continue;
      if (values[i].size() != row_bytes) {
        return absl::DataLossError(absl::StrCat(
            "SSD tier in ", directory_, ": the row at position ", positions[i].value, " has ",
            values[i].size(), " bytes, but the table's rows have ", row_bytes));
      }
      found(begin + i, reinterpret_cast<const uint8_t*>(values[i].data()));
    }
    return absl::OkStatus();
  }

  // A writer that finds the memtables full waits here, not inside RocksDB, whose wait has no end on
  // a full disk.
  absl::Status Commit(rocksdb::WriteBatch& batch) {
    const std::string action = "write rows";
    if (absl::Status s = Failpoint("tier.write"); !s.ok()) return s;
    for (;;) {
      const uint64_t changes = parts_.watch->changes();
      if (absl::Status s = BackgroundFailure(action); !s.ok()) return s;
      const rocksdb::Status s = db_->Write(write_, &batch);
      if (s.ok()) return Failpoint("tier.written");
      if (!s.IsIncomplete()) return Refused(s, action);
      if (absl::Status w = AwaitBackground(changes, action); !w.ok()) return w;
    }
  }

  // What a flush or compaction ended with is asked before RocksDB is: it may try again by itself,
  // as if what a failed sync dropped had been kept, and then answers as if nothing had been.
  absl::Status BackgroundFailure(absl::string_view action) const {
    const rocksdb::Status s = parts_.work->error();
    if (s.ok()) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("SSD tier in ", directory_, ": cannot ", action, ": ", s.ToString(),
                     "; rows written before may be lost: the tier must be filled afresh"));
  }

  absl::Status Refused(const rocksdb::Status& s, absl::string_view action) const {
    absl::Status failure = BackgroundFailure(action);
    return failure.ok() ? Translate(s, action, directory_) : failure;
  }

  // OK when the background has moved on since `changes`. An error if it lacks room (and still did
  // when it tried again just now), has failed, or does nothing for kStallLimit.
  absl::Status AwaitBackground(uint64_t changes, absl::string_view action) {
    if (absl::Status s = BackgroundFailure(action); !s.ok()) return s;
    if (const std::string trouble = parts_.watch->TryAgain(kStallLimit); !trouble.empty()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "SSD tier in ", directory_, ": cannot ", action, ": ", trouble,
          "; free disk space or raise the limit of open files, then the work goes on"));
    }
    if (parts_.watch->AwaitChange(changes, kStallLimit)) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "SSD tier in ", directory_, ": cannot ", action, ": no flush or compaction has ended for ",
        absl::FormatDuration(kStallLimit), "; the disk is too slow or hangs"));
  }

  const std::string directory_;
  const Partitioning partitioning_;
  const Parts parts_;
  rocksdb::DB* const db_;
  rocksdb::WriteOptions write_;
  std::atomic<uint64_t> asked_bytes_{0};
  std::atomic<uint64_t> rows_asked_{0};
};

absl::Status CheckOptions(const RocksTierOptions& options) {
  if (options.directory.empty()) return absl::InvalidArgumentError("directory is empty");
  if (!Partitioning::IsValid(options.partitions)) {
    return absl::InvalidArgumentError(absl::StrCat("partitions is ", options.partitions,
                                                   "; it must be a power of two, at most ",
                                                   Partitioning::kMaxPartitions));
  }
  if (options.memtable_bytes < (64u << 10)) {
    return absl::InvalidArgumentError(
        absl::StrCat("memtable_bytes is ", options.memtable_bytes, "; it must be at least 65536"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowTier>> OpenRocksTier(const RocksTierOptions& options) {
  if (absl::Status s = CheckOptions(options); !s.ok()) return s;
  if (absl::Status s = MakeFolder(options.directory); !s.ok()) return s;
  rocksdb::Options rocks = MakeOptions(options);
  if (const rocksdb::Status s = rocksdb::GetOptionsFromString(rocks, options.changes, &rocks);
      !s.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("RocksDB options '", options.changes, "': ", s.ToString()));
  }
  Parts parts;
  parts.mark = std::make_unique<rocks::SyncMark>(options.directory);
  if (options.mode == OpenMode::kFresh) {
    absl::Status s = Translate(rocksdb::DestroyDB(options.directory, rocks), "remove the old rows",
                               options.directory);
    if (s.ok()) s = parts.mark->Remove();
    if (!s.ok()) return s;
  }
  const absl::StatusOr<uint64_t> synced = parts.mark->Read();
  if (!synced.ok()) return synced.status();
  parts.watch = std::make_shared<RoomWatch>(options.timer);
  parts.work = std::make_shared<BackgroundWork>(parts.watch);
  parts.queues = std::make_shared<ReadQueues>();
  parts.env = rocksdb::NewCompositeEnv(MakeTierFileSystem(parts.watch, parts.queues));
  rocks.listeners.push_back(parts.work);
  rocks.env = parts.env.get();
  rocksdb::DB* db = nullptr;
  const rocksdb::Status s = rocksdb::DB::Open(rocks, options.directory, &db);
  if (!s.ok()) {
    if (s.IsIOError() && absl::StrContains(s.ToString(), "/LOCK")) {
      return absl::FailedPreconditionError(absl::StrCat(
          "SSD tier in ", options.directory, ": another process has it open: ", s.ToString()));
    }
    return Translate(s, "open", options.directory);
  }
  parts.db.reset(db);
  if (db->GetLatestSequenceNumber() < *synced) {
    return absl::DataLossError(
        absl::StrCat("SSD tier in ", options.directory, ": RocksDB's MANIFEST ends at write ",
                     db->GetLatestSequenceNumber(), ", but SYNCED says that ", *synced,
                     " were brought into files: it is damaged; the tier must be filled afresh"));
  }
  return std::make_unique<RocksTier>(options, std::move(parts));
}

}  // namespace strata::storage
