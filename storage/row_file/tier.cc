#include "storage/row_file/tier.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/core/mutex.h"
#include "proto/core/partition.h"
#include "storage/io/file_io.h"
#include "storage/row_file/contents.h"
#include "storage/row_file/cursor.h"
#include "storage/row_file/reader.h"
#include "storage/row_file/writer.h"

namespace strata::storage {
namespace {

using row_file::BatchReader;
using row_file::Memtable;
using row_file::VersionPointer;
using row_file::VersionWriter;
using row_file::Volume;

constexpr uint64_t kRangeFlushBytes = uint64_t{64} << 10;  // of a delta, on average, at least

class RowFileTier final : public RowTier {
 public:
  RowFileTier(const RowFileTierOptions& options, File lock, std::unique_ptr<Volume> volume,
              std::unique_ptr<VersionWriter> writer, VersionPointer version)
      : options_(options),
        lock_(std::move(lock)),
        volume_(std::move(volume)),
        contents_({.directory = options.directory,
                   .memtable_bytes = options.memtable_bytes,
                   .timer = options.timer},
                  std::move(writer), std::move(version)) {
    const VersionPointer opened = contents_.version();
    for (const row_file::Range& range : opened->ranges) {
      for (const auto& delta : range.deltas) LearnShapes(*delta);
      if (range.base != nullptr) LearnShapes(*range.base);
    }
  }

  absl::Status Read(TableId table, std::span<const Position> positions, size_t row_bytes,
                    const Found& found) override {
    if (absl::Status s = CheckShape(table, row_bytes); !s.ok()) return s;
    std::unique_ptr<BatchReader> reader = TakeReader();
    const uint64_t before = reader->bytes_read();
    absl::Status s = reader->Read(
        table, positions, row_bytes,
        [&](std::span<const Position> part, const BatchReader::Known& known) {
          return contents_.Look(table, part, known);
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
      absl::Status s = contents_.Put([&](Memtable& memtable) {
        for (size_t i = begin; i < end; ++i) {
          memtable.Put(table, static_cast<uint32_t>(row_bytes), positions[i], rows[i]);
        }
      });
      if (!s.ok()) return s;
      asked_bytes_.fetch_add((end - begin) * row_bytes, std::memory_order_relaxed);
    }
    return absl::OkStatus();
  }

  absl::Status Delete(TableId table, std::span<const Position> positions) override {
    const std::optional<uint32_t> row_bytes = ShapeOf(table);
    if (!row_bytes) return absl::OkStatus();  // nothing was ever written
    constexpr size_t kChunk = kWriteChunkBytes / 32;
    for (size_t begin = 0; begin < positions.size(); begin += kChunk) {
      const size_t end = std::min(begin + kChunk, positions.size());
      absl::Status s = contents_.Put([&](Memtable& memtable) {
        for (size_t i = begin; i < end; ++i) memtable.Put(table, *row_bytes, positions[i], nullptr);
      });
      if (!s.ok()) return s;
    }
    return absl::OkStatus();
  }

  std::unique_ptr<TierCursor> NewCursor(TableId table, Position first, Position last,
                                        size_t row_bytes) override {
    row_file::Contents::Snapshot now = contents_.Take(table, first, last);
    return row_file::NewCursor({.table = table,
                                .first = first,
                                .last = last,
                                .row_bytes = row_bytes,
                                .directory = options_.directory,
                                .version = std::move(now.view.version),
                                .frozen = std::move(now.view.frozen),
                                .active = std::move(now.active)});
  }

  absl::Status DeletePartitions(PartitionId first, PartitionId last) override {
    return contents_.Drop({first, last});
  }

  absl::Status Sync() override { return contents_.Sync(); }

  TierStats stats() const override {
    TierStats out;
    out.asked_bytes = asked_bytes_.load(std::memory_order_relaxed);
    out.written_bytes = volume_->bytes_written() + contents_.manifest_bytes();
    out.read_bytes = read_bytes_.load(std::memory_order_relaxed);
    out.rows_asked = rows_asked_.load(std::memory_order_relaxed);
    out.file_bytes = volume_->file_bytes();
    const VersionPointer version = contents_.version();
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

  std::optional<uint32_t> ShapeOf(TableId table) const {
    ReaderMutexLock lock(&mu_);
    const auto it = shapes_.find(table.value);
    return it == shapes_.end() ? std::nullopt : std::optional(it->second);
  }

  absl::Status CheckShape(TableId table, size_t row_bytes) const {
    const std::optional<uint32_t> known = ShapeOf(table);
    if (!known || *known == row_bytes) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("SSD tier in ", options_.directory, ": table ",
                                            table.value, " has rows of ", *known,
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

  const RowFileTierOptions options_;
  const File lock_;
  const std::unique_ptr<Volume> volume_;
  std::atomic<uint64_t> asked_bytes_{0};
  std::atomic<uint64_t> read_bytes_{0};
  std::atomic<uint64_t> rows_asked_{0};

  mutable Mutex mu_;
  absl::flat_hash_map<uint32_t, uint32_t> shapes_ ABSL_GUARDED_BY(mu_);     // table: row_bytes
  std::vector<std::unique_ptr<BatchReader>> readers_ ABSL_GUARDED_BY(mu_);  // idle

  row_file::Contents contents_;  // last: its thread uses the volume
};

absl::Status CheckOptions(const RowFileTierOptions& options) {
  if (options.directory.empty()) return absl::InvalidArgumentError("directory is empty");
  if (!Partitioning::IsValid(options.partitions)) {
    return absl::InvalidArgumentError(absl::StrCat("partitions is ", options.partitions,
                                                   "; it must be a power of two, at most ",
                                                   Partitioning::kMaxPartitions));
  }
  if (options.memtable_bytes < 1024) {
    return absl::InvalidArgumentError(
        absl::StrCat("memtable_bytes is ", options.memtable_bytes, "; it must be at least 1024"));
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
  FileSystem& files = options.files == nullptr ? FileSystem::Kernel() : *options.files;
  if (absl::Status s = MakeFolder(options.directory, files); !s.ok()) return s;
  absl::StatusOr<File> lock = File::Open(options.directory + "/LOCK", O_RDWR | O_CREAT);
  if (!lock.ok()) return lock.status();
  if (flock(lock->fd(), LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("SSD tier in ", options.directory, ": another process has it open"));
  }
  const std::string rows = options.directory + "/ROWS";
  if (options.mode == OpenMode::kFresh) {
    for (const std::string& path : {options.directory + "/MANIFEST", rows}) {
      if (absl::Status s = RemoveFile(path); !s.ok()) return s;
    }
  }
  auto volume = Volume::Open(rows, files);
  if (!volume.ok()) return volume.status();
  auto writer = std::make_unique<VersionWriter>(
      row_file::WriterOptions{
          .directory = options.directory,
          .partitioning = Partitioning(options.partitions),
          .base_filter_bits = options.base_filter_bits,
          .delta_filter_bits = options.delta_filter_bits,
          .most_ranges = std::max<size_t>(1, options.memtable_bytes / kRangeFlushBytes),
          .files = &files},
      volume->get());
  absl::StatusOr<VersionPointer> version = writer->Load();
  if (!version.ok()) return version.status();
  return std::make_unique<RowFileTier>(options, *std::move(lock), *std::move(volume),
                                       std::move(writer), *std::move(version));
}

}  // namespace strata::storage
