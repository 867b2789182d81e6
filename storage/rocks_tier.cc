#include "storage/rocks_tier.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "storage/file_io.h"

namespace strata::storage {
namespace {

constexpr size_t kKeyBytes = 16;
using RowKey = std::array<char, kKeyBytes>;

template <typename T>
void PutBigEndian(T value, char* out) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out[i] = static_cast<char>(value >> (8 * (sizeof(T) - 1 - i)));
  }
}

template <typename T>
T GetBigEndian(const char* in) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value = value << 8 | static_cast<uint8_t>(in[i]);
  return value;
}

RowKey MakeKey(PartitionId partition, TableId table, Position position) {
  RowKey key;
  PutBigEndian(partition.value, key.data());
  PutBigEndian(table.value, key.data() + 4);
  PutBigEndian(position.value, key.data() + 8);
  return key;
}

rocksdb::Slice SliceOf(const RowKey& key) { return {key.data(), key.size()}; }

absl::Status Translate(const rocksdb::Status& s, absl::string_view action,
                       const std::string& directory) {
  if (s.ok()) return absl::OkStatus();
  const std::string text =
      absl::StrCat("SSD tier in ", directory, ": cannot ", action, ": ", s.ToString());
  // IOError text carries strerror: file handles are not a subcode of their own.
  if (s.IsNoSpace() || s.subcode() == rocksdb::Status::kNoSpace ||
      absl::StrContains(text, "No space left")) {
    return absl::ResourceExhaustedError(
        absl::StrCat(text, "; free disk space, then the work goes on"));
  }
  if (absl::StrContains(text, "Too many open files")) {
    return absl::ResourceExhaustedError(absl::StrCat(text, "; raise the limit of open files"));
  }
  if (s.IsMemoryLimit()) return absl::ResourceExhaustedError(text);
  if (s.IsCorruption()) {
    return absl::DataLossError(
        absl::StrCat(text, "; restart the server: it recovers from its base image and log"));
  }
  if (s.IsInvalidArgument()) return absl::InvalidArgumentError(text);
  return absl::UnavailableError(text);
}

// RocksDB's own recovery from a full disk looks every few seconds and turns Resume away meanwhile;
// ours is the next write.
class ManualRecovery final : public rocksdb::EventListener {
 public:
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }
};

rocksdb::Options MakeOptions(const RocksTierOptions& options) {
  rocksdb::Options out;
  out.create_if_missing = true;
  out.compression = rocksdb::kNoCompression;
  out.write_buffer_size = options.memtable_bytes;
  out.max_write_buffer_number = kMaxMemtables;
  out.max_background_jobs = options.background_jobs;
  out.max_open_files = options.max_open_files;
  out.level_compaction_dynamic_level_bytes = true;
  out.keep_log_file_num = 2;
  out.max_log_file_size = size_t{1} << 20;
  out.avoid_flush_during_shutdown = true;  // what Sync did not save need not be saved
  out.listeners.push_back(std::make_shared<ManualRecovery>());
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(options.block_cache_bytes);
  table.block_size = options.block_bytes;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  out.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return out;
}

// Walks the partitions of a range: within one the rows of a table are consecutive keys.
class RocksCursor final : public TierCursor {
 public:
  RocksCursor(std::unique_ptr<rocksdb::Iterator> it, const std::string& directory,
              Partitioning partitioning, TableId table, Position first, Position last,
              size_t row_bytes)
      : it_(std::move(it)),
        directory_(directory),
        partitioning_(partitioning),
        table_(table),
        last_(last),
        row_bytes_(row_bytes) {
    Seek(first);
  }

  bool Valid() const override { return valid_; }
  Position position() const override { return position_; }
  std::span<const uint8_t> row() const override {
    return {reinterpret_cast<const uint8_t*>(it_->value().data()), row_bytes_};
  }
  void Next() override {
    it_->Next();
    Settle();
  }
  absl::Status status() const override { return status_; }

 private:
  void Seek(Position from) {
    const RowKey key = MakeKey(partitioning_.Of(from), table_, from);
    it_->Seek(SliceOf(key));
    Settle();
  }

  // Goes on to the first row of the table at or after the iterator.
  void Settle() {
    valid_ = false;
    while (it_->Valid()) {
      const rocksdb::Slice key = it_->key();
      if (key.size() != kKeyBytes) return Damaged("a key of the wrong size");
      const PartitionId partition(GetBigEndian<uint32_t>(key.data()));
      const TableId table(GetBigEndian<uint32_t>(key.data() + 4));
      if (partition > partitioning_.Of(last_)) return;
      if (table == table_) {
        position_ = Position(GetBigEndian<uint64_t>(key.data() + 8));
        if (position_ > last_) return;
        if (it_->value().size() != row_bytes_) return Damaged("a row of the wrong size");
        valid_ = true;
        return;
      }
      // Another table's rows: jump over them.
      PartitionId next = partition;
      if (table > table_) {
        if (partition.value + 1 == partitioning_.count()) return;
        next = partition.Next();
        if (next > partitioning_.Of(last_)) return;
      }
      const RowKey target = MakeKey(next, table_, partitioning_.First(next));
      it_->Seek(SliceOf(target));
    }
    status_ = Translate(it_->status(), "scan", directory_);
  }

  void Damaged(absl::string_view what) {
    status_ = absl::DataLossError(absl::StrCat("SSD tier in ", directory_, ": ", what));
  }

  const std::unique_ptr<rocksdb::Iterator> it_;
  const std::string directory_;
  const Partitioning partitioning_;
  const TableId table_;
  const Position last_;
  const size_t row_bytes_;
  bool valid_ = false;
  Position position_;
  absl::Status status_;
};

class RocksTier final : public RowTier {
 public:
  RocksTier(const RocksTierOptions& options, std::unique_ptr<rocksdb::DB> db)
      : directory_(options.directory), partitioning_(options.partitions), db_(std::move(db)) {
    write_.disableWAL = true;
  }

  absl::Status Read(TableId table, std::span<const Position> positions, size_t row_bytes,
                    const Found& found) override {
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
    for (size_t i = 0; i < positions.size(); ++i) {
      const RowKey key = KeyOfRow(table, positions[i]);
      const rocksdb::Slice row(reinterpret_cast<const char*>(rows[i]), row_bytes);
      absl::Status s = Translate(batch.Put(SliceOf(key), row), "write", directory_);
      if (!s.ok()) return s;
      if (batch.GetDataSize() < kWriteChunkBytes && i + 1 < positions.size()) continue;
      if (s = Commit(batch); !s.ok()) return s;
      batch.Clear();
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
    rocksdb::ReadOptions read;
    read.fill_cache = false;  // a scan must not push the batches' blocks out
    return std::make_unique<RocksCursor>(std::unique_ptr<rocksdb::Iterator>(db_->NewIterator(read)),
                                         directory_, partitioning_, table, first, last, row_bytes);
  }

  absl::Status DeletePartitions(PartitionId first, PartitionId last) override {
    const RowKey begin = MakeKey(first, TableId(0), Position(0));
    // Exclusive; partitions are below 2^20, so the successor always exists.
    const RowKey end = MakeKey(last.Next(), TableId(0), Position(0));
    rocksdb::WriteBatch batch;
    absl::Status s =
        Translate(batch.DeleteRange(SliceOf(begin), SliceOf(end)), "delete partitions", directory_);
    return s.ok() ? Commit(batch) : s;
  }

  absl::Status Sync() override {
    rocksdb::FlushOptions flush;
    flush.wait = true;
    rocksdb::Status s = db_->Flush(flush);
    if (!s.ok() && db_->Resume().ok()) s = db_->Flush(flush);
    return Translate(s, "write its memory to files", directory_);
  }

 private:
  RowKey KeyOfRow(TableId table, Position position) const {
    return MakeKey(partitioning_.Of(position), table, position);
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

  // After a background error (disk full) RocksDB refuses writes until it is resumed; what it holds
  // in memory is kept.
  absl::Status Commit(rocksdb::WriteBatch& batch) {
    rocksdb::Status s = db_->Write(write_, &batch);
    if (!s.ok() && db_->Resume().ok()) s = db_->Write(write_, &batch);
    return Translate(s, "write rows", directory_);
  }

  const std::string directory_;
  const Partitioning partitioning_;
  const std::unique_ptr<rocksdb::DB> db_;
  rocksdb::WriteOptions write_;
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
  const rocksdb::Options rocks = MakeOptions(options);
  if (options.mode == OpenMode::kFresh) {
    absl::Status s = Translate(rocksdb::DestroyDB(options.directory, rocks), "remove the old rows",
                               options.directory);
    if (!s.ok()) return s;
  }
  rocksdb::DB* db = nullptr;
  const rocksdb::Status s = rocksdb::DB::Open(rocks, options.directory, &db);
  if (!s.ok()) {
    if (absl::StrContains(s.ToString(), "lock")) {
      return absl::FailedPreconditionError(absl::StrCat(
          "SSD tier in ", options.directory, ": another process has it open: ", s.ToString()));
    }
    return Translate(s, "open", options.directory);
  }
  return std::make_unique<RocksTier>(options, std::unique_ptr<rocksdb::DB>(db));
}

}  // namespace strata::storage
