#include "storage/update_log.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/core/checksum.h"
#include "storage/file_io.h"
#include "storage/log_format.h"
#include "storage/segment_writer.h"

namespace strata::storage {
namespace {

using log_format::kRecordHeaderBytes;
using log_format::kSegmentHeaderBytes;
using log_format::SegmentHeader;

// A file's bytes, read-only, in memory while it lives.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept { std::swap(bytes_, other.bytes_); }
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
  }

  static absl::StatusOr<MappedFile> Open(const std::string& path) {
    absl::StatusOr<File> file = File::Open(path, O_RDONLY);
    if (!file.ok()) return file.status();
    absl::StatusOr<uint64_t> size = file->Size();
    if (!size.ok()) return size.status();
    MappedFile mapped;
    if (*size == 0) return mapped;
    void* base = mmap(nullptr, *size, PROT_READ, MAP_PRIVATE, file->fd(), 0);
    if (base == MAP_FAILED) return ErrnoStatus(errno, "map", path);
    (void)madvise(base, *size, MADV_SEQUENTIAL);
    mapped.bytes_ = {static_cast<const uint8_t*>(base), *size};
    return mapped;
  }

  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  std::span<const uint8_t> bytes_;
};

// Offset of the first intact record at or after `from`, if any: what tells damage from a torn tail.
std::optional<uint64_t> NextIntactRecord(uint64_t segment, uint64_t from,
                                         std::span<const uint8_t> bytes) {
  for (uint64_t offset = from; offset + kRecordHeaderBytes <= bytes.size();
       offset += log_format::kAlignment) {
    if (log_format::DecodeRecord({segment, offset}, bytes)) return offset;
  }
  return std::nullopt;
}

// Calls `visit` for the records of a segment from its start; returns the offset behind the last.
absl::StatusOr<uint64_t> VisitRecords(uint64_t segment, std::span<const uint8_t> bytes,
                                      const UpdateLog::Visitor& visit) {
  uint64_t offset = kSegmentHeaderBytes;
  while (const auto record = log_format::DecodeRecord({segment, offset}, bytes)) {
    if (absl::Status s = visit(*record); !s.ok()) return s;
    offset += log_format::RecordBytes(record->payload.size());
  }
  return offset;
}

absl::StatusOr<std::map<uint64_t, uint64_t>> ListSegments(const std::string& directory) {
  DIR* folder = opendir(directory.c_str());
  if (folder == nullptr) return ErrnoStatus(errno, "list", directory);
  std::map<uint64_t, uint64_t> segments;
  while (const dirent* entry = readdir(folder)) {
    if (const auto number = log_format::ParseSegmentName(entry->d_name)) segments[*number] = 0;
  }
  closedir(folder);
  return segments;
}

class FileLog final : public UpdateLog {
 public:
  FileLog(const UpdateLogOptions& options, File lock)
      : directory_(options.directory),
        segment_bytes_(options.segment_bytes),
        direct_from_bytes_(options.direct_from_bytes),
        lock_(std::move(lock)) {}

  absl::Status Recover() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<LogPosition> Append(std::span<const LogEntry> entries) override;
  absl::Status Replay(uint64_t from_segment, const Visitor& visit) override;
  absl::StatusOr<uint64_t> Rotate() override;
  absl::Status Trim(uint64_t before_segment) override;
  LogStats stats() const override;

 private:
  std::string PathOf(uint64_t segment) const {
    return absl::StrCat(directory_, "/", log_format::SegmentName(segment));
  }
  absl::Status CheckChain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status RecoverLast() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Create(uint64_t segment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AppendSegmentHeader(SegmentWriter& writer, uint64_t segment)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Prepare() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t current() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return sizes_.rbegin()->first; }
  uint64_t& end() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return sizes_.rbegin()->second; }

  const std::string directory_;
  const uint64_t segment_bytes_;
  const uint64_t direct_from_bytes_;
  const File lock_;  // held for this object's life

  mutable absl::Mutex mu_;
  std::map<uint64_t, uint64_t> sizes_ ABSL_GUARDED_BY(mu_);  // segment to its good bytes
  SegmentWriter writer_ ABSL_GUARDED_BY(mu_);                // of the current segment
  uint64_t appends_ ABSL_GUARDED_BY(mu_) = 0;                // to the current segment
  uint64_t records_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t truncated_ ABSL_GUARDED_BY(mu_) = 0;
};

absl::Status FileLog::Recover() {
  absl::MutexLock lock(&mu_);
  absl::StatusOr<std::map<uint64_t, uint64_t>> segments = ListSegments(directory_);
  if (!segments.ok()) return segments.status();
  if (segments->empty()) return Create(1);
  sizes_ = *std::move(segments);
  if (absl::Status s = CheckChain(); !s.ok()) return s;
  return RecoverLast();
}

// Every segment up to the last must be there, with its header and with the size that the next one
// says it has.
absl::Status FileLog::CheckChain() {
  uint64_t expected = sizes_.begin()->first;
  std::optional<uint64_t> before;
  for (auto& [segment, bytes] : sizes_) {
    if (segment != expected++) {
      return DamagedFile(PathOf(expected - 1), 0, "this segment of the update log is missing");
    }
    const std::string path = PathOf(segment);
    absl::StatusOr<File> file = File::Open(path, O_RDONLY);
    if (!file.ok()) return file.status();
    absl::StatusOr<uint64_t> size = file->Size();
    if (!size.ok()) return size.status();
    bytes = *size;
    std::array<uint8_t, kSegmentHeaderBytes> raw{};
    std::optional<SegmentHeader> header;
    if (bytes >= raw.size()) {
      if (absl::Status s = file->ReadAt(0, raw); !s.ok()) return s;
      header = log_format::DecodeSegmentHeader(raw.data());
    }
    if (!header || header->segment != segment) {
      if (segment == current()) break;  // RecoverLast decides
      return DamagedFile(path, 0, "the segment's header does not check");
    }
    if (before && header->previous_bytes != *before) {
      return DamagedFile(
          PathOf(segment - 1), std::min(*before, header->previous_bytes),
          absl::StrCat("the segment has ", *before, " bytes but had ", header->previous_bytes));
    }
    before = bytes;
  }
  return absl::OkStatus();
}

// Cuts a torn tail off the last segment, and opens it for appending.
absl::Status FileLog::RecoverLast() {
  const uint64_t segment = current();
  const std::string path = PathOf(segment);
  uint64_t good = 0;
  uint64_t size = 0;
  uint64_t torn = 0;  // what is cut off, unless it is the padding of direct writes
  {
    absl::StatusOr<MappedFile> mapped = MappedFile::Open(path);
    if (!mapped.ok()) return mapped.status();
    const std::span<const uint8_t> bytes = mapped->bytes();
    size = bytes.size();
    if (size >= kSegmentHeaderBytes) {
      const auto header = log_format::DecodeSegmentHeader(bytes.data());
      if (header && header->segment == segment) {
        absl::StatusOr<uint64_t> end =
            VisitRecords(segment, bytes, [](const LogRecordView&) { return absl::OkStatus(); });
        if (!end.ok()) return end.status();
        good = *end;
      }
    }
    if (good < size) {
      const auto behind = bytes.subspan(good);
      const bool padding =
          std::all_of(behind.begin(), behind.end(), [](uint8_t b) { return b == 0; });
      torn = padding ? 0 : behind.size();
      const uint64_t from = std::max<uint64_t>(good, kSegmentHeaderBytes);
      if (const auto intact = NextIntactRecord(segment, from, bytes)) {
        return DamagedFile(path, good,
                           absl::StrCat("the update log is damaged here, but a record at offset ",
                                        *intact, " is intact: committed updates are lost"));
      }
    }
  }
  absl::StatusOr<SegmentWriter> writer = SegmentWriter::Open(path, good);
  if (!writer.ok()) return writer.status();
  if (good < size) {
    if (absl::Status s = writer->Trim(); !s.ok()) return s;
    truncated_ = torn;
  }
  if (good == 0) {
    if (absl::Status s = AppendSegmentHeader(*writer, segment); !s.ok()) return s;
  }
  writer_ = *std::move(writer);
  end() = writer_.end();
  return absl::OkStatus();
}

absl::Status FileLog::AppendSegmentHeader(SegmentWriter& writer, uint64_t segment) {
  const auto before = sizes_.find(segment - 1);
  std::array<uint8_t, kSegmentHeaderBytes> header;
  log_format::EncodeSegmentHeader(
      {.segment = segment, .previous_bytes = before == sizes_.end() ? 0 : before->second},
      header.data());
  iovec part = {header.data(), header.size()};
  return writer.Append({&part, 1});
}

absl::Status FileLog::Create(uint64_t segment) {
  // The next segment's header says how long this one is: its padding goes first.
  if (!sizes_.empty()) {
    if (absl::Status s = writer_.Trim(); !s.ok()) return s;
  }
  const uint64_t mean = appends_ == 0 ? 0 : end() / appends_;
  const std::string path = PathOf(segment);
  absl::StatusOr<SegmentWriter> writer = SegmentWriter::Create(
      path, mean >= direct_from_bytes_ ? WriteMode::kDirect : WriteMode::kBuffered);
  if (!writer.ok()) return writer.status();
  if (absl::Status s = AppendSegmentHeader(*writer, segment); !s.ok()) {
    unlink(path.c_str());
    return s;
  }
  writer_ = *std::move(writer);
  appends_ = 0;
  sizes_[segment] = writer_.end();
  return absl::OkStatus();
}

// Makes the current segment one that a record can be appended to.
absl::Status FileLog::Prepare() {
  return end() < segment_bytes_ ? absl::OkStatus() : Create(current() + 1);
}

absl::StatusOr<LogPosition> FileLog::Append(std::span<const LogEntry> entries) {
  if (entries.empty()) return absl::InvalidArgumentError("no entry to append to the update log");
  // Checksums before the lock: producers wait for each other only while writing.
  static constexpr std::array<uint8_t, log_format::kAlignment> kPadding{};
  struct Sums {
    uint64_t payload = 0;
    uint32_t crc = 0;
    std::array<uint8_t, kRecordHeaderBytes> header;
  };
  std::vector<Sums> sums(entries.size());
  std::vector<iovec> parts;
  for (size_t i = 0; i < entries.size(); ++i) {
    parts.push_back({sums[i].header.data(), kRecordHeaderBytes});
    for (std::span<const uint8_t> part : entries[i].parts) {
      sums[i].payload += part.size();
      sums[i].crc = Crc32cExtend(sums[i].crc, part);
      parts.push_back({const_cast<uint8_t*>(part.data()), part.size()});
    }
    if (sums[i].payload > kMaxPayloadBytes) {
      return absl::InvalidArgumentError(absl::StrCat("a log record of ", sums[i].payload,
                                                     " bytes; the limit is ", kMaxPayloadBytes));
    }
    const size_t padding =
        log_format::RecordBytes(sums[i].payload) - kRecordHeaderBytes - sums[i].payload;
    sums[i].crc = Crc32cExtend(sums[i].crc, {kPadding.data(), padding});
    parts.push_back({const_cast<uint8_t*>(kPadding.data()), padding});
  }
  absl::MutexLock lock(&mu_);
  if (absl::Status s = Prepare(); !s.ok()) return s;
  const LogPosition first{current(), end()};
  LogPosition at = first;
  for (size_t i = 0; i < entries.size(); ++i) {
    log_format::EncodeRecordHeader(entries[i].header, at, sums[i].payload, sums[i].crc,
                                   sums[i].header.data());
    at.offset += log_format::RecordBytes(sums[i].payload);
  }
  if (absl::Status s = writer_.Append(parts); !s.ok()) return s;
  end() = writer_.end();
  ++appends_;
  records_ += entries.size();
  return first;
}

absl::Status FileLog::Replay(uint64_t from_segment, const Visitor& visit) {
  std::map<uint64_t, uint64_t> sizes;
  {
    absl::MutexLock lock(&mu_);
    sizes = sizes_;
  }
  if (from_segment != 0 && from_segment < sizes.begin()->first) {
    return absl::OutOfRangeError(absl::StrCat("segment ", from_segment, " of the update log in ",
                                              directory_, " was trimmed; the oldest is ",
                                              sizes.begin()->first));
  }
  for (auto it = sizes.lower_bound(from_segment); it != sizes.end(); ++it) {
    const auto [segment, size] = *it;
    const std::string path = PathOf(segment);
    absl::StatusOr<MappedFile> mapped = MappedFile::Open(path);
    if (!mapped.ok()) return mapped.status();
    std::span<const uint8_t> bytes = mapped->bytes();
    if (bytes.size() < size) return DamagedFile(path, bytes.size(), "the segment is cut off");
    bytes = bytes.first(size);
    absl::StatusOr<uint64_t> end = VisitRecords(segment, bytes, visit);
    if (!end.ok()) return end.status();
    if (*end != size) return DamagedFile(path, *end, "a record of the update log does not check");
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> FileLog::Rotate() {
  absl::MutexLock lock(&mu_);
  if (absl::Status s = Prepare(); !s.ok()) return s;
  if (end() > kSegmentHeaderBytes) {
    if (absl::Status s = Create(current() + 1); !s.ok()) return s;
  }
  return current();
}

absl::Status FileLog::Trim(uint64_t before_segment) {
  absl::MutexLock lock(&mu_);
  // Oldest first: a crash in between leaves no gap.
  while (sizes_.begin()->first < std::min(before_segment, current())) {
    const std::string path = PathOf(sizes_.begin()->first);
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return ErrnoStatus(errno, "remove", path);
    sizes_.erase(sizes_.begin());
  }
  return absl::OkStatus();
}

LogStats FileLog::stats() const {
  absl::MutexLock lock(&mu_);
  LogStats stats;
  stats.first_segment = sizes_.begin()->first;
  stats.last_segment = current();
  for (const auto& [segment, bytes] : sizes_) stats.bytes += bytes;
  stats.records = records_;
  stats.truncated_bytes = truncated_;
  return stats;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UpdateLog>> UpdateLog::Open(const UpdateLogOptions& options) {
  if (absl::Status s = MakeFolder(options.directory); !s.ok()) return s;
  absl::StatusOr<File> lock =
      File::Open(absl::StrCat(options.directory, "/LOCK"), O_RDWR | O_CREAT);
  if (!lock.ok()) return lock.status();
  if (flock(lock->fd(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, "lock", options.directory);
    return absl::FailedPreconditionError(
        absl::StrCat("the update log in ", options.directory,
                     " is in use by another process; stop it, or give this one another folder"));
  }
  auto log = std::make_unique<FileLog>(options, *std::move(lock));
  if (absl::Status s = log->Recover(); !s.ok()) return s;
  return log;
}

}  // namespace strata::storage
