#include "storage/log/update_log.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/failpoints.h"
#include "storage/io/file_io.h"
#include "storage/log/batch.h"
#include "storage/log/format.h"
#include "storage/log/opening.h"
#include "storage/log/scan.h"
#include "storage/log/segment_loader.h"
#include "storage/log/segment_reader.h"
#include "storage/log/segment_writer.h"

namespace strata::storage {
namespace {

using log::kBlockAlignment;
using log::kSegmentHeaderBytes;
using log::SegmentHeader;

class FileLog final : public UpdateLog {
 public:
  FileLog(const UpdateLogOptions& options, File lock)
      : options_(options),
        files_(*options.files),
        lock_(std::move(lock)),
        loader_(*options.files) {}

  absl::Status Recover() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<LogPosition> Append(std::span<const LogEntry> entries) override;
  absl::Status Replay(uint64_t from_segment, const Filter& wanted, const Visitor& visit) override;
  absl::StatusOr<LogPosition> ReadOn(LogPosition from, const Filter& wanted,
                                     const Taker& take) override;
  absl::StatusOr<uint64_t> Rotate() override;
  absl::Status Trim(uint64_t before_segment) override;
  LogStats stats() const override;
  uint64_t BytesFrom(uint64_t segment) const override;

 private:
  // An append that waits for its turn or for the write that it joined.
  struct Waiter {
    LogBatch* batch = nullptr;
    bool done = false;
    absl::Status status;
    LogPosition first;
  };
  // The segment that is appended to. Belongs to whoever has the turn (busy_); mu_ does not guard
  // it.
  struct Tail {
    uint64_t segment = 0;
    uint32_t alignment = log::kAlignment;
    SegmentWriter writer;
    uint64_t appends = 0;
    bool given_up = false;  // a sync failed: what lies behind writer.end() does not count
  };

  bool synced() const { return options_.durability == LogDurability::kSynced; }
  absl::Status Removed(absl::string_view path) const {
    return absl::NotFoundError(absl::StrCat("the update log in ", options_.directory,
                                            " was removed while it was in use (", path,
                                            " is gone)"));
  }
  std::string PathOf(uint64_t segment) const { return SegmentPath(options_.directory, segment); }
  absl::Status Trimmed(uint64_t segment, uint64_t oldest) const {
    return absl::OutOfRangeError(absl::StrCat("segment ", segment, " of the update log in ",
                                              options_.directory, " was trimmed; the oldest is ",
                                              oldest));
  }
  uint64_t last() const ABSL_SHARED_LOCKS_REQUIRED(mu_) { return sizes_.rbegin()->first; }

  // With the turn:
  void AwaitTurn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Create(uint64_t segment) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Write(std::span<Waiter* const> group) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status WriteOnce(std::span<Waiter* const> group) ABSL_LOCKS_EXCLUDED(mu_);
  void Publish() ABSL_LOCKS_EXCLUDED(mu_);

  const UpdateLogOptions options_;
  FileSystem& files_;
  const File lock_;  // held for this object's life
  SegmentLoader loader_;
  BatchMemory memory_;
  std::atomic<bool> direct_{false};  // the tail takes whole blocks

  Tail tail_;
  std::vector<iovec> parts_;  // of the write under way

  mutable Mutex mu_;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;  // somebody has the turn
  std::deque<Waiter*> queue_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, uint64_t> sizes_ ABSL_GUARDED_BY(mu_);  // segment to its good bytes
  uint64_t records_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t appended_ ABSL_GUARDED_BY(mu_) = 0;  // bytes
  uint64_t writes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t given_up_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t truncated_ ABSL_GUARDED_BY(mu_) = 0;
};

absl::Status FileLog::Recover() {
  absl::StatusOr<LogTail> found = OpenSegments(options_, loader_);
  if (!found.ok()) return found.status();
  if (found->sizes.empty()) return Create(1);
  tail_.segment = found->header.segment;
  tail_.alignment = found->header.alignment;
  tail_.writer = std::move(found->writer);
  MutexLock lock(&mu_);
  sizes_ = std::move(found->sizes);
  truncated_ = found->torn_bytes;
  return absl::OkStatus();
}

// Ends the tail and begins the segment after it. On error the tail stays what it was.
absl::Status FileLog::Create(uint64_t segment) {
  if (absl::Status s = Failpoint("log.rotate"); !s.ok()) return s;
  SegmentHeader header{.segment = segment, .owner = options_.owner};
  if (tail_.segment != 0) {
    (void)tail_.writer.Trim();  // only tidy: the header says where the segment before ends
    header.previous_bytes = tail_.writer.end();
  }
  const uint64_t mean = tail_.appends == 0 ? 0 : header.previous_bytes / tail_.appends;
  const std::string path = PathOf(segment);
  absl::StatusOr<SegmentWriter> writer = SegmentWriter::Create(
      path, mean >= options_.direct_from_bytes ? WriteMode::kDirect : WriteMode::kBuffered, files_);
  if (absl::IsNotFound(writer.status())) return Removed(path);
  if (!writer.ok()) return writer.status();
  if (writer->mode() == WriteMode::kDirect) header.alignment = kBlockAlignment;
  absl::Status s = AppendSegmentHeader(*writer, header);
  if (s.ok() && synced()) s = writer->Sync();
  if (s.ok() && synced()) s = SyncFolder(options_.directory, files_);
  if (s.ok()) s = Failpoint("log.rotated");
  if (!s.ok()) {
    (void)RemoveFile(path, files_);
    return s;
  }
  tail_ = {.segment = segment, .alignment = header.alignment, .writer = *std::move(writer)};
  direct_ = tail_.alignment == kBlockAlignment;
  Publish();
  return absl::OkStatus();
}

void FileLog::Publish() {
  MutexLock lock(&mu_);
  sizes_[tail_.segment] = tail_.writer.end();
}

// 1 checksums and copies, alone; 2 waits for the turn, or for another thread to have written this
// append with its own; 3 takes those that wait as well and writes (Write); 4 tells them.
absl::StatusOr<LogPosition> FileLog::Append(std::span<const LogEntry> entries) {
  auto batch = LogBatch::Make(entries, kMaxPayloadBytes, direct_ ? &memory_ : nullptr);
  if (!batch.ok()) return batch.status();
  Waiter mine;
  mine.batch = &*batch;
  std::vector<Waiter*> group;
  {
    MutexLock lock(&mu_);
    queue_.push_back(&mine);
    const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return mine.done || (!busy_ && queue_.front() == &mine);
    };
    mu_.Await(absl::Condition(&ready));
    if (mine.done) {
      if (!mine.status.ok()) return mine.status;
      return mine.first;
    }
    busy_ = true;
    uint64_t bytes = 0;
    do {
      bytes += queue_.front()->batch->Bytes(kBlockAlignment);
      group.push_back(queue_.front());
      queue_.pop_front();
    } while (!queue_.empty() &&
             bytes + queue_.front()->batch->Bytes(kBlockAlignment) <= kGroupBytes);
  }
  const absl::Status written = Write(group);
  MutexLock lock(&mu_);
  busy_ = false;
  for (Waiter* waiter : group) {
    waiter->status = written;
    waiter->done = true;
    if (!written.ok()) continue;
    records_ += waiter->batch->size();
    appended_ += waiter->batch->Bytes(tail_.alignment);
  }
  if (!written.ok()) return written;
  sizes_[tail_.segment] = tail_.writer.end();
  ++writes_;
  return mine.first;
}

// A segment whose sync failed is given up, and the group goes to a new one, once.
absl::Status FileLog::Write(std::span<Waiter* const> group) {
  absl::Status s = WriteOnce(group);
  return !s.ok() && tail_.given_up ? WriteOnce(group) : s;
}

absl::Status FileLog::WriteOnce(std::span<Waiter* const> group) {
  if (tail_.given_up || tail_.writer.end() >= options_.segment_bytes) {
    if (absl::Status s = Create(tail_.segment + 1); !s.ok()) return s;
  }
  parts_.clear();
  const uint64_t begin = tail_.writer.end();
  LogPosition at{tail_.segment, begin};
  for (Waiter* waiter : group) {
    waiter->first = at;
    // The device may write a group in any order; a process that dies leaves its first part.
    const uint64_t settled = synced() ? begin : ~uint64_t{0};
    waiter->batch->Place({at, settled}, tail_.alignment, parts_);
    at.offset += waiter->batch->Bytes(tail_.alignment);
  }
  if (absl::Status s = Failpoint("log.append"); !s.ok()) return s;
  if (absl::Status s = tail_.writer.Append(parts_);
      !s.ok() && !STRATA_MUTATION("disk.refusal_is_taken")) {
    return s;
  }
  absl::Status s = Failpoint("log.written");
  if (s.ok() && synced() && !STRATA_MUTATION("bsp.synced_without_sync")) s = tail_.writer.Sync();
  if (!s.ok()) {
    tail_.writer.Abandon(begin);
    tail_.given_up = true;
    MutexLock lock(&mu_);
    ++given_up_;
    return s;
  }
  // What was written to a file without a name is gone with this process.
  if (!tail_.writer.HasName()) {
    tail_.writer.Abandon(begin);
    return Removed(PathOf(tail_.segment));
  }
  ++tail_.appends;
  return absl::OkStatus();
}

absl::Status FileLog::Replay(uint64_t from_segment, const Filter& wanted, const Visitor& visit) {
  std::map<uint64_t, uint64_t> sizes;
  {
    MutexLock lock(&mu_);
    sizes = sizes_;
  }
  if (from_segment != 0 && from_segment < sizes.begin()->first) {
    return Trimmed(from_segment, sizes.begin()->first);
  }
  for (auto it = sizes.lower_bound(from_segment); it != sizes.end(); ++it) {
    const auto [segment, size] = *it;
    const std::string path = PathOf(segment);
    const std::string next = std::next(it) == sizes.end() ? "" : PathOf(segment + 1);
    auto loaded = loader_.Load(path, next);
    if (!loaded.ok()) return loaded.status();
    std::span<const uint8_t> bytes = (*loaded)->bytes();
    if (bytes.size() < size) return DamagedFile(path, bytes.size(), "the segment is cut off");
    bytes = bytes.first(size);
    const auto header =
        size < kSegmentHeaderBytes ? std::nullopt : log::DecodeSegmentHeader(bytes.data());
    if (!header || header->segment != segment) {
      return DamagedFile(path, 0, "the segment's header does not check");
    }
    absl::StatusOr<uint64_t> end = log::VisitRecords(*header, bytes, wanted, visit);
    if (!end.ok()) return end.status();
    if (*end != size) return DamagedFile(path, *end, "a record of the update log does not check");
  }
  return absl::OkStatus();
}

absl::StatusOr<LogPosition> FileLog::ReadOn(LogPosition from, const Filter& wanted,
                                            const Taker& take) {
  std::map<uint64_t, uint64_t> sizes;
  {
    MutexLock lock(&mu_);
    sizes = sizes_;
  }
  const uint64_t oldest = sizes.begin()->first;
  if (from.segment == 0) from = {oldest, 0};
  if (from.segment < oldest) return Trimmed(from.segment, oldest);
  for (auto it = sizes.lower_bound(from.segment); it != sizes.end(); ++it) {
    const auto [segment, size] = *it;
    if (segment != from.segment) from = {segment, 0};
    auto reader = SegmentReader::Open(PathOf(segment), segment, size, files_);
    if (absl::IsNotFound(reader.status())) {
      const uint64_t first = stats().first_segment;
      if (segment < first) return Trimmed(segment, first);
    }
    if (!reader.ok()) return reader.status();
    const auto more = reader->Read(from.offset, wanted, take);
    if (!more.ok()) return more.status();
    if (!*more) return from;
  }
  return from;
}

void FileLog::AwaitTurn() {
  const auto free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !busy_; };
  mu_.Await(absl::Condition(&free));
  busy_ = true;
}

absl::StatusOr<uint64_t> FileLog::Rotate() {
  {
    MutexLock lock(&mu_);
    AwaitTurn();
  }
  absl::Status s;
  if (tail_.given_up || tail_.writer.end() > log::FirstRecord(tail_.alignment)) {
    s = Create(tail_.segment + 1);
  }
  const uint64_t segment = tail_.segment;
  MutexLock lock(&mu_);
  busy_ = false;
  if (!s.ok()) return s;
  return segment;
}

// Oldest first: a crash in between leaves no gap. Without the lock: removing a long file takes a
// while, and commits ask for stats.
absl::Status FileLog::Trim(uint64_t before_segment) {
  for (;;) {
    uint64_t oldest = 0;
    {
      MutexLock lock(&mu_);
      oldest = sizes_.begin()->first;
      if (oldest >= std::min(before_segment, last())) break;
    }
    if (absl::Status s = Failpoint("log.trim"); !s.ok()) return s;
    if (absl::Status s = RemoveFile(PathOf(oldest), files_); !s.ok()) return s;
    MutexLock lock(&mu_);
    sizes_.erase(oldest);
  }
  return Failpoint("log.trimmed");
}

LogStats FileLog::stats() const {
  MutexLock lock(&mu_);
  LogStats stats;
  stats.first_segment = sizes_.begin()->first;
  stats.last_segment = last();
  for (const auto& [segment, bytes] : sizes_) stats.bytes += bytes;
  stats.records = records_;
  stats.appended_bytes = appended_;
  stats.writes = writes_;
  stats.given_up = given_up_;
  stats.truncated_bytes = truncated_;
  return stats;
}

uint64_t FileLog::BytesFrom(uint64_t segment) const {
  MutexLock lock(&mu_);
  uint64_t bytes = 0;
  for (auto it = sizes_.lower_bound(segment); it != sizes_.end(); ++it) bytes += it->second;
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UpdateLog>> UpdateLog::Open(const UpdateLogOptions& options) {
  if (absl::Status s = MakeFolder(options.directory, *options.files); !s.ok()) return s;
  absl::StatusOr<File> lock =
      File::Open(absl::StrCat(options.directory, "/LOCK"), O_RDWR | O_CREAT, *options.files);
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
