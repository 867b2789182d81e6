#include "storage/row_file_tier.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/mutex.h"
#include "proto/core/partition.h"
#include "storage/file_io.h"
#include "storage/row_file_cursor.h"
#include "storage/row_file_reader.h"
#include "storage/row_file_writer.h"

namespace strata::storage {
namespace {

using row_file::BatchReader;
using row_file::Memtable;
using row_file::ReadView;
using row_file::RowKey;
using row_file::Version;
using row_file::VersionPointer;
using row_file::VersionWriter;
using row_file::Volume;

constexpr uint64_t kRangeFlushBytes = uint64_t{64} << 10;  // of a delta, on average, at least
constexpr absl::Duration kRetry = absl::Seconds(1);
constexpr absl::Duration kStallLimit = absl::Seconds(60);

class RowFileTier final : public RowTier {
 public:
  RowFileTier(const RowFileTierOptions& options, File lock, std::unique_ptr<Volume> volume,
              std::unique_ptr<VersionWriter> writer, VersionPointer version)
      : options_(options),
        partitioning_(options.partitions),
        lock_(std::move(lock)),
        volume_(std::move(volume)),
        writer_(std::move(writer)),
        version_(std::move(version)),
        thread_([this] { Work(); }) {
    for (const row_file::Range& range : version_->ranges) {
      for (const auto& delta : range.deltas) LearnShapes(*delta);
      if (range.base != nullptr) LearnShapes(*range.base);
    }
  }

  ~RowFileTier() override {
    {
      MutexLock lock(&mu_);
      closing_ = true;
    }
    thread_.join();
  }

  absl::Status Read(TableId table, std::span<const Position> positions, size_t row_bytes,
                    const Found& found) override {
    if (absl::Status s = CheckShape(table, row_bytes); !s.ok()) return s;
    std::unique_ptr<BatchReader> reader = TakeReader();
    const uint64_t before = reader->bytes_read();
    absl::Status s = reader->Read(
        table, positions, row_bytes,
        [&](std::span<const Position> part, const BatchReader::Known& known) {
          ReaderMutexLock lock(&mu_);
          if (!active_->empty()) {
            for (size_t i = 0; i < part.size(); ++i) known(i, active_->Get(table, part[i]));
          }
          return ReadView{.version = version_, .frozen = frozen_};
        },
        found);
    read_bytes_.fetch_add(reader->bytes_read() - before, std::memory_order_relaxed);
    rows_asked_.fetch_add(positions.size(), std::memory_order_relaxed);
    MutexLock lock(&mu_);
    readers_.push_back(std::move(reader));
    return s;
  }

  absl::Status Write(TableId table, std::span<const Position> positions,
                     std::span<const uint8_t* const> rows, size_t row_bytes) override {
    if (row_bytes == 0 || row_bytes > kRowFileMostRowBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a row of ", row_bytes, " bytes; a row file holds 1 .. ", kRowFileMostRowBytes));
    }
    if (positions.empty()) return absl::OkStatus();
    if (absl::Status s = LearnShape(table, row_bytes); !s.ok()) return s;
    const size_t chunk = std::max<size_t>(1, kWriteChunkBytes / (row_bytes + 32));
    for (size_t begin = 0; begin < positions.size(); begin += chunk) {
      const size_t end = std::min(begin + chunk, positions.size());
      MutexLock lock(&mu_);
      if (absl::Status s = MakeRoom(); !s.ok()) return s;
      for (size_t i = begin; i < end; ++i) {
        active_->Put(table, static_cast<uint32_t>(row_bytes), positions[i], rows[i]);
      }
      asked_bytes_.fetch_add((end - begin) * row_bytes, std::memory_order_relaxed);
    }
    return absl::OkStatus();
  }

  absl::Status Delete(TableId table, std::span<const Position> positions) override {
    constexpr size_t kChunk = kWriteChunkBytes / 32;
    for (size_t begin = 0; begin < positions.size(); begin += kChunk) {
      const size_t end = std::min(begin + kChunk, positions.size());
      MutexLock lock(&mu_);
      const auto shape = shapes_.find(table.value);
      if (shape == shapes_.end()) return absl::OkStatus();  // nothing was ever written
      if (absl::Status s = MakeRoom(); !s.ok()) return s;
      for (size_t i = begin; i < end; ++i) {
        active_->Put(table, shape->second, positions[i], nullptr);
      }
    }
    return absl::OkStatus();
  }

  std::unique_ptr<TierCursor> NewCursor(TableId table, Position first, Position last,
                                        size_t row_bytes) override {
    row_file::CursorOptions cursor{.table = table,
                                   .first = first,
                                   .last = last,
                                   .row_bytes = row_bytes,
                                   .directory = options_.directory,
                                   .version = {},
                                   .frozen = {},
                                   .active = {}};
    MutexLock lock(&mu_);
    cursor.version = version_;
    cursor.frozen = frozen_;
    for (const Memtable::Entry& e : active_->Sorted({table, first}, {table, last})) {
      cursor.active.Put(table, e.row_bytes, e.key.position, e.row);
    }
    return row_file::NewCursor(std::move(cursor));
  }

  absl::Status DeletePartitions(PartitionId first, PartitionId last) override {
    MutexLock lock(&mu_);
    if (absl::Status s = Freeze(); !s.ok()) return s;
    drop_ = PartitionRange{first, last};
    const uint64_t wanted = ++commits_wanted_;
    return AwaitCommit(wanted, "delete partitions");
  }

  absl::Status Sync() override {
    MutexLock lock(&mu_);
    if (absl::Status s = Freeze(); !s.ok()) return s;
    const uint64_t wanted = ++commits_wanted_;
    return AwaitCommit(wanted, "write its memory to files");
  }

  TierStats stats() const override {
    TierStats out;
    out.asked_bytes = asked_bytes_.load(std::memory_order_relaxed);
    out.written_bytes = volume_->bytes_written() + writer_->manifest_bytes();
    out.read_bytes = read_bytes_.load(std::memory_order_relaxed);
    out.rows_asked = rows_asked_.load(std::memory_order_relaxed);
    out.file_bytes = volume_->file_bytes();
    VersionPointer version;
    {
      ReaderMutexLock lock(&mu_);
      version = version_;
    }
    out.memory_bytes = version->memory_bytes();
    for (const row_file::Range& range : version->ranges) {
      // A delta over a base mostly updates its rows.
      const auto count = [&](const row_file::Extent& extent) {
        for (const row_file::Section& s : extent.sections()) {
          out.live_bytes += s.rows * s.shape.row_bytes;
        }
      };
      if (range.base != nullptr) count(*range.base);
      if (range.base == nullptr) {
        for (const auto& delta : range.deltas) count(*delta);
      }
    }
    return out;
  }

 private:
  void LearnShapes(const row_file::Extent& extent) {
    MutexLock lock(&mu_);
    for (const row_file::Section& s : extent.sections()) {
      shapes_[s.table.value] = s.shape.row_bytes;
    }
  }

  absl::Status LearnShape(TableId table, size_t row_bytes) {
    MutexLock lock(&mu_);
    const auto [it, fresh] = shapes_.try_emplace(table.value, static_cast<uint32_t>(row_bytes));
    if (it->second == row_bytes) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("SSD tier in ", options_.directory, ": table ",
                                                   table.value, " has rows of ", it->second,
                                                   " bytes, not ", row_bytes));
  }

  absl::Status CheckShape(TableId table, size_t row_bytes) const {
    ReaderMutexLock lock(&mu_);
    const auto it = shapes_.find(table.value);
    if (it == shapes_.end() || it->second == row_bytes) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("SSD tier in ", options_.directory, ": table ",
                                            table.value, " has rows of ", it->second,
                                            " bytes, but was read with ", row_bytes));
  }

  std::unique_ptr<BatchReader> TakeReader() {
    {
      MutexLock lock(&mu_);
      if (!readers_.empty()) {
        std::unique_ptr<BatchReader> reader = std::move(readers_.back());
        readers_.pop_back();
        return reader;
      }
    }
    return std::make_unique<BatchReader>(options_.reads == RowFileTierOptions::Reads::kThreads
                                             ? MakeThreadReads(BatchReader::kDepth)
                                             : MakeAsyncReads(BatchReader::kDepth));
  }

  // Waits for `done`, until one attempt that began after this call has failed, at most kStallLimit
  // without any sign of life.
  template <typename Done>
  absl::Status AwaitProgress(const Done& done, absl::string_view action)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    ++kicks_;
    const uint64_t proof = failures_ + (busy_ ? 1 : 0) + 1;
    for (uint64_t seen = progress_; !done(); seen = progress_) {
      if (failures_ >= proof) {
        return absl::Status(failure_.code(),
                            absl::StrCat("SSD tier in ", options_.directory, ": cannot ", action,
                                         ": ", failure_.message()));
      }
      const auto moved = [this, seen] {
        mu_.AssertReaderHeld();
        return progress_ != seen;
      };
      if (!mu_.AwaitWithTimeout(absl::Condition(&moved), kStallLimit)) {
        return absl::UnavailableError(absl::StrCat(
            "SSD tier in ", options_.directory, ": cannot ", action, ": nothing was written for ",
            absl::FormatDuration(kStallLimit), "; the disk is too slow or hangs"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AwaitCommit(uint64_t wanted, absl::string_view action)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto committed = [this, wanted] {
      mu_.AssertReaderHeld();
      return commits_ >= wanted;
    };
    return AwaitProgress(committed, action);
  }

  // Room for a chunk in the active memtable.
  absl::Status MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    while (active_->bytes() >= options_.memtable_bytes) {
      if (absl::Status s = Freeze(); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  // Hands the active memtable to the background thread.
  absl::Status Freeze() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (frozen_ != nullptr) {
      const auto written = [this] {
        mu_.AssertReaderHeld();
        return frozen_ == nullptr;
      };
      absl::Status s = AwaitProgress(written, "write rows");
      if (!s.ok()) return s;
    }
    if (!active_->empty()) {
      frozen_ = std::move(active_);
      active_ = std::make_unique<Memtable>();
    }
    return absl::OkStatus();
  }

  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closing_ || frozen_ != nullptr || commits_ < commits_wanted_;
  }
  bool KickedOrClosing() const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return closing_ || kicks_ != seen_kicks_;
  }

  // The background thread.
  void Work() {
    MutexLock lock(&mu_);
    for (;;) {
      mu_.Await(absl::Condition(this, &RowFileTier::HasWork));
      if (closing_) return;  // what Sync did not save need not be saved
      seen_kicks_ = kicks_;
      const uint64_t wanted = commits_wanted_;
      busy_ = true;
      mu_.Unlock();
      absl::Status s = Cycle();
      mu_.Lock();
      busy_ = false;
      ++progress_;
      if (s.ok()) {
        commits_ = std::max(commits_, wanted);
        continue;
      }
      failure_ = std::move(s);
      ++failures_;
      mu_.AwaitWithTimeout(absl::Condition(this, &RowFileTier::KickedOrClosing), kRetry);
    }
  }

  absl::Status Cycle() ABSL_LOCKS_EXCLUDED(mu_) {
    VersionPointer version;
    std::shared_ptr<const Memtable> frozen;
    std::optional<PartitionRange> drop;
    {
      MutexLock lock(&mu_);
      version = version_;
      frozen = frozen_;
      drop = drop_;
    }
    if (frozen != nullptr) {
      auto next = writer_->Flush(*version, *frozen);
      if (absl::IsResourceExhausted(next.status()) && writer_->Commit(*version).ok()) {
        next = writer_->Flush(*version, *frozen);  // in what the commit freed
      }
      if (!next.ok()) return next.status();
      Publish(version, *std::move(next), /*flushed=*/true);
    }
    if (drop) {
      auto next = writer_->Drop(*version, drop->first, drop->last);
      if (!next.ok()) return next.status();
      Publish(version, *std::move(next), /*flushed=*/false);
      MutexLock lock(&mu_);
      drop_.reset();
    }
    if (absl::Status s = MergeAll(version); !s.ok()) return s;
    return writer_->Commit(*version);
  }

  // Without room the merges wait for the next cycle: the commit frees what they need.
  absl::Status MergeAll(VersionPointer& version) {
    while (const auto job = NextJob(*version)) {
      auto next = writer_->Run(*version, *job);
      if (absl::IsResourceExhausted(next.status())) return absl::OkStatus();
      if (!next.ok()) return next.status();
      Publish(version, *std::move(next), /*flushed=*/false);
      ReaderMutexLock lock(&mu_);
      if (closing_) return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  void Publish(VersionPointer& version, VersionPointer next, bool flushed)
      ABSL_LOCKS_EXCLUDED(mu_) {
    version = next;
    std::shared_ptr<const Memtable> old;  // freed without the lock
    MutexLock lock(&mu_);
    version_.swap(next);
    if (flushed) old.swap(frozen_);
    ++progress_;
  }

  const RowFileTierOptions options_;
  const Partitioning partitioning_;
  const File lock_;
  const std::unique_ptr<Volume> volume_;
  const std::unique_ptr<VersionWriter> writer_;  // of the background thread
  std::atomic<uint64_t> asked_bytes_{0};
  std::atomic<uint64_t> read_bytes_{0};
  std::atomic<uint64_t> rows_asked_{0};

  mutable Mutex mu_;
  std::unique_ptr<Memtable> active_ ABSL_GUARDED_BY(mu_) = std::make_unique<Memtable>();
  std::shared_ptr<const Memtable> frozen_ ABSL_GUARDED_BY(mu_);  // being written
  VersionPointer version_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<uint32_t, uint32_t> shapes_ ABSL_GUARDED_BY(mu_);     // table: row_bytes
  std::vector<std::unique_ptr<BatchReader>> readers_ ABSL_GUARDED_BY(mu_);  // idle
  std::optional<PartitionRange> drop_ ABSL_GUARDED_BY(mu_);
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

absl::Status CheckOptions(const RowFileTierOptions& options) {
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
  for (uint32_t bits : {options.base_filter_bits, options.delta_filter_bits}) {
    if (bits < 1 || bits > 16) {
      return absl::InvalidArgumentError(
          absl::StrCat("a filter of ", bits, " bits a row; it must have 1 .. 16"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowTier>> OpenRowFileTier(const RowFileTierOptions& options) {
  if (absl::Status s = CheckOptions(options); !s.ok()) return s;
  if (absl::Status s = MakeFolder(options.directory); !s.ok()) return s;
  absl::StatusOr<File> lock = File::Open(options.directory + "/LOCK", O_RDWR | O_CREAT);
  if (!lock.ok()) return lock.status();
  if (flock(lock->fd(), LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("SSD tier in ", options.directory, ": another process has it open"));
  }
  const std::string rows = options.directory + "/ROWS";
  if (options.mode == OpenMode::kFresh) {
    for (const std::string& path : {options.directory + "/MANIFEST", rows}) {
      if (std::remove(path.c_str()) != 0 && errno != ENOENT) {
        return ErrnoStatus(errno, "remove", path);
      }
    }
  }
  auto volume = Volume::Open(rows);
  if (!volume.ok()) return volume.status();
  auto writer = std::make_unique<VersionWriter>(
      row_file::WriterOptions{
          .directory = options.directory,
          .partitioning = Partitioning(options.partitions),
          .base_filter_bits = options.base_filter_bits,
          .delta_filter_bits = options.delta_filter_bits,
          .most_ranges = std::max<size_t>(1, options.memtable_bytes / kRangeFlushBytes)},
      volume->get());
  absl::StatusOr<VersionPointer> version = writer->Load();
  if (!version.ok()) return version.status();
  return std::make_unique<RowFileTier>(options, *std::move(lock), *std::move(volume),
                                       std::move(writer), *std::move(version));
}

}  // namespace strata::storage
