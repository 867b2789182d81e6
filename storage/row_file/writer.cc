#include "storage/row_file/writer.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/runtime/base/failpoints.h"
#include "storage/io/file_io.h"
#include "storage/row_file/merge.h"

namespace strata::storage::row_file {
namespace {

constexpr size_t kBaseReadBytes = size_t{1} << 20;
constexpr size_t kDeltaReadBytes = size_t{256} << 10;
constexpr RowKey kFirstKey{TableId(0), Position(0)};

// Deltas from `first` on, newest first, and the base if asked for.
std::unique_ptr<RowSource> SourceOf(const Range& range, size_t first, bool with_base) {
  std::vector<std::unique_ptr<RowSource>> sources;
  for (size_t i = range.deltas.size(); i > first; --i) {
    sources.push_back(ReadExtent(range.deltas[i - 1], kDeltaReadBytes, kFirstKey));
  }
  if (with_base && range.base != nullptr) {
    sources.push_back(ReadExtent(range.base, kBaseReadBytes, kFirstKey));
  }
  return Merge(std::move(sources));
}

std::shared_ptr<Version> Copy(const Version& version) { return std::make_shared<Version>(version); }

}  // namespace

absl::StatusOr<VersionPointer> VersionWriter::Load() {
  const std::string path = absl::StrCat(options_.directory, "/MANIFEST");
  absl::StatusOr<File> file = File::Open(path, O_RDONLY);
  if (absl::IsNotFound(file.status())) return std::make_shared<const Version>();
  if (!file.ok()) return file.status();
  absl::StatusOr<uint64_t> size = file->Size();
  if (!size.ok()) return size.status();
  std::vector<uint8_t> bytes(*size);
  if (absl::Status s = file->ReadAt(0, bytes); !s.ok()) return s;
  const std::optional<Manifest> manifest = DecodeManifest(bytes);
  if (!manifest) return DamagedFile(path, 0, "a manifest that does not check");
  if (manifest->partitions != options_.partitioning.count()) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": the rows are of ", manifest->partitions, " partitions, but the job has ",
        options_.partitioning.count(), "; open the tier afresh"));
  }
  next_number_ = manifest->next_number;
  auto version = std::make_shared<Version>();
  version->ranges.clear();
  for (const Manifest::RangePlaces& places : manifest->ranges) {
    Range range{.begin = places.begin, .base = nullptr, .deltas = {}};
    if (places.base) {
      auto base = LoadExtent(*places.base);
      if (!base.ok()) return base.status();
      range.base = *std::move(base);
    }
    for (const ExtentPlace& place : places.deltas) {
      auto delta = LoadExtent(place);
      if (!delta.ok()) return delta.status();
      range.deltas.push_back(*std::move(delta));
    }
    version->ranges.push_back(std::move(range));
  }
  return VersionPointer(std::move(version));
}

absl::StatusOr<std::shared_ptr<const Extent>> VersionWriter::LoadExtent(
    const ExtentPlace& place) const {
  if (absl::Status s = volume_->Claim(place.runs); !s.ok()) return s;
  return Extent::Load(volume_, place);
}

absl::StatusOr<VersionPointer> VersionWriter::Flush(const Version& version,
                                                    const Memtable& memtable) {
  if (!sync_failed_.ok()) return sync_failed_;
  if (absl::Status s = Failpoint("tier.flush"); !s.ok()) return s;
  auto out = Copy(version);
  const std::vector<Memtable::Entry> entries =
      memtable.Sorted(kFirstKey, {TableId(~uint32_t{0}), Position(~uint64_t{0})});
  for (size_t i = 0; i < entries.size();) {
    const size_t range = out->RangeOf(entries[i].key);
    const RowKey last = out->LastOf(range);
    ExtentWriter writer(volume_, next_number_++, 0, options_.delta_filter_bits);
    for (; i < entries.size() && entries[i].key <= last; ++i) {
      absl::Status s = writer.Add(entries[i].key, entries[i].row_bytes, entries[i].row);
      if (!s.ok()) return s;
    }
    auto delta = writer.Finish();
    if (!delta.ok()) return delta.status();
    out->ranges[range].deltas.push_back(*std::move(delta));
  }
  return VersionPointer(std::move(out));
}

absl::StatusOr<VersionPointer> VersionWriter::Run(const Version& version, const MergeJob& job) {
  if (!sync_failed_.ok()) return sync_failed_;
  if (absl::Status s = Failpoint("tier.merge"); !s.ok()) return s;
  auto out = Copy(version);
  Range& range = out->ranges[job.range];
  if (job.into_base) {
    const size_t pieces =
        PiecesOfBase(version, range.base_bytes() + range.delta_bytes(), options_.most_ranges);
    std::vector<Range> made;
    absl::Status s = MakeBase(range, version.LastOf(job.range), pieces, nullptr, made);
    if (!s.ok()) return s;
    const auto at = out->ranges.begin() + static_cast<ptrdiff_t>(job.range);
    *at = made.front();
    out->ranges.insert(at + 1, made.begin() + 1, made.end());
    return VersionPointer(std::move(out));
  }
  ExtentWriter writer(volume_, next_number_++, job.level, options_.delta_filter_bits);
  const std::unique_ptr<RowSource> rows = SourceOf(range, job.first_delta, /*with_base=*/false);
  for (; rows->Valid(); rows->Next()) {
    absl::Status s = writer.Add(rows->key(), rows->row_bytes(), rows->row());
    if (!s.ok()) return s;
  }
  if (absl::Status s = rows->status(); !s.ok()) return s;
  auto delta = writer.Finish();
  if (!delta.ok()) return delta.status();
  range.deltas.resize(job.first_delta);
  range.deltas.push_back(*std::move(delta));
  return VersionPointer(std::move(out));
}

absl::Status VersionWriter::MakeBase(const Range& range, RowKey last_key, size_t pieces,
                                     const PartitionRange* without, std::vector<Range>& out) {
  uint64_t most_rows = range.base == nullptr ? 0 : range.base->rows();
  for (const auto& delta : range.deltas) most_rows += delta->rows();
  const uint64_t rows_of_piece = most_rows / pieces + 1;
  const std::unique_ptr<RowSource> rows = SourceOf(range, 0, /*with_base=*/true);
  out.push_back({.begin = range.begin, .base = nullptr, .deltas = {}});
  const auto dropped = [&](RowKey key) {
    return without != nullptr && without->Contains(options_.partitioning.Of(key.position));
  };
  while (rows->Valid()) {
    ExtentWriter writer(volume_, next_number_++, 0, options_.base_filter_bits);
    while (rows->Valid() && writer.rows() < rows_of_piece) {
      const RowKey key = rows->key();
      if (dropped(key)) {
        const Position end = options_.partitioning.Last(without->last);
        if (end.value == ~uint64_t{0} && key.table == last_key.table) break;
        rows->Seek(end.value == ~uint64_t{0} ? RowKey{TableId(key.table.value + 1), Position(0)}
                                             : RowKey{key.table, Position(end.value + 1)});
        continue;
      }
      if (rows->row() != nullptr) {
        absl::Status s = writer.Add(key, rows->row_bytes(), rows->row());
        if (!s.ok()) return s;
      }
      rows->Next();
    }
    if (absl::Status s = rows->status(); !s.ok()) return s;
    if (writer.rows() > 0) {
      auto base = writer.Finish();
      if (!base.ok()) return base.status();
      if (out.back().base != nullptr) {
        const Section& first = (*base)->sections().front();
        out.push_back({.begin = {first.table, Position(first.fences.front())},
                       .base = nullptr,
                       .deltas = {}});
      }
      out.back().base = *std::move(base);
    }
    if (rows->Valid() && dropped(rows->key())) break;  // to the end of the last table
  }
  return rows->status();
}

absl::StatusOr<VersionPointer> VersionWriter::Drop(const Version& version, PartitionId first,
                                                   PartitionId last) {
  if (!sync_failed_.ok()) return sync_failed_;
  const PartitionRange without{first, last};
  const Position from = options_.partitioning.First(first);
  const Position to = options_.partitioning.Last(last);
  auto out = std::make_shared<Version>();
  out->ranges.clear();
  for (size_t i = 0; i < version.ranges.size(); ++i) {
    const Range& range = version.ranges[i];
    const RowKey end = version.LastOf(i);
    const bool empty = range.base == nullptr && range.deltas.empty();
    const bool apart =
        range.begin.table == end.table && (end.position < from || range.begin.position > to);
    if (empty || apart) {
      out->ranges.push_back(range);
      continue;
    }
    absl::Status s = MakeBase(range, end, 1, &without, out->ranges);
    if (!s.ok()) return s;
  }
  return VersionPointer(std::move(out));
}

absl::Status VersionWriter::Commit(const Version& version) {
  if (!sync_failed_.ok()) return sync_failed_;
  std::vector<ChunkRun> retired = volume_->TakeRetired();
  absl::Status s = Failpoint("tier.sync");
  if (s.ok()) s = volume_->Sync();
  if (!s.ok()) {
    s = sync_failed_ = absl::DataLossError(absl::StrCat(
        s.message(), "; rows written before may be lost: the tier must be filled afresh"));
  } else if (s = Failpoint("tier.manifest"); s.ok()) {
    s = WriteManifest(
        EncodeManifest(MakeManifest(version, next_number_, options_.partitioning.count())));
  }
  if (s.ok()) s = Failpoint("tier.committed");
  if (s.ok()) {
    volume_->Free(retired);
  } else {
    volume_->Retire(std::move(retired));
  }
  return s;
}

absl::Status VersionWriter::WriteManifest(const std::vector<uint8_t>& bytes) {
  const std::string path = absl::StrCat(options_.directory, "/MANIFEST");
  const std::string fresh = path + ".new";
  absl::StatusOr<File> file = File::Open(fresh, O_WRONLY | O_CREAT | O_TRUNC, *options_.files);
  if (!file.ok()) return file.status();
  iovec part = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
  if (absl::Status s = file->WriteAt(0, {&part, 1}); !s.ok()) return s;
  if (absl::Status s = file->Sync(); !s.ok()) return s;
  if (absl::Status s = RenameFile(fresh, path, *options_.files); !s.ok()) return s;
  manifest_bytes_.fetch_add(bytes.size(), std::memory_order_relaxed);
  return SyncFolder(options_.directory, *options_.files);
}

}  // namespace strata::storage::row_file
