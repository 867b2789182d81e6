#include "storage/row_file/contents.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/runtime/base/failpoints.h"

namespace strata::storage::row_file {
namespace {

constexpr absl::Duration kRetry = absl::Seconds(1);
constexpr absl::Duration kStallLimit = absl::Seconds(60);

}  // namespace

Contents::Contents(Options options, std::unique_ptr<VersionWriter> writer, VersionPointer version)
    : options_(std::move(options)),
      writer_(std::move(writer)),
      version_(std::move(version)),
      thread_([this] { Work(); }) {}

Contents::~Contents() {
  {
    MutexLock lock(&mu_);
    closing_ = true;
  }
  thread_.join();
}

absl::Status Contents::Put(const std::function<void(Memtable&)>& fill) {
  if (absl::Status s = Failpoint("tier.write"); !s.ok()) return s;
  {
    MutexLock lock(&mu_);
    while (active_->bytes() >= options_.memtable_bytes) {
      if (absl::Status s = Freeze(); !s.ok()) return s;
    }
    fill(*active_);
  }
  return Failpoint("tier.written");
}

absl::Status Contents::Sync() {
  MutexLock lock(&mu_);
  if (absl::Status s = Freeze(); !s.ok()) return s;
  return Commit("write its memory to files");
}

absl::Status Contents::Drop(PartitionRange partitions) {
  MutexLock lock(&mu_);
  if (absl::Status s = Freeze(); !s.ok()) return s;
  drops_.push_back(partitions);
  absl::Status s = Commit("delete partitions");
  if (!s.ok()) Dropped(partitions);
  return s;
}

void Contents::Dropped(const PartitionRange& partitions) {
  const auto it = std::find(drops_.begin(), drops_.end(), partitions);
  if (it != drops_.end()) drops_.erase(it);
}

ReadView Contents::Look(TableId table, std::span<const Position> positions,
                        const BatchReader::Known& known) const {
  ReaderMutexLock lock(&mu_);
  if (!active_->empty()) {
    for (size_t i = 0; i < positions.size(); ++i) known(i, active_->Get(table, positions[i]));
  }
  return {.version = version_, .frozen = frozen_};
}

Contents::Snapshot Contents::Take(TableId table, Position first, Position last) const {
  MutexLock lock(&mu_);
  Snapshot out{.view = {.version = version_, .frozen = frozen_}, .active = {}};
  for (const Memtable::Entry& e : active_->Sorted({table, first}, {table, last})) {
    out.active.Put(table, e.row_bytes, e.key.position, e.row);
  }
  return out;
}

VersionPointer Contents::version() const {
  ReaderMutexLock lock(&mu_);
  return version_;
}

// Waits for `done`, until one attempt that began after this call has failed, at most kStallLimit
// without any sign of life.
template <typename Done>
absl::Status Contents::AwaitProgress(const Done& done, absl::string_view action) {
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
    const absl::Time limit = options_.timer->Now() + kStallLimit;
    if (!AwaitUntil(options_.timer, &mu_, absl::Condition(&moved), limit)) {
      return absl::UnavailableError(absl::StrCat(
          "SSD tier in ", options_.directory, ": cannot ", action, ": nothing was written for ",
          absl::FormatDuration(kStallLimit), "; the disk is too slow or hangs"));
    }
  }
  return absl::OkStatus();
}

absl::Status Contents::Commit(absl::string_view action) {
  const uint64_t wanted = ++commits_wanted_;
  const auto committed = [this, wanted] {
    mu_.AssertReaderHeld();
    return commits_ >= wanted;
  };
  return AwaitProgress(committed, action);
}

// Hands the active memtable to the thread.
absl::Status Contents::Freeze() {
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

void Contents::Work() {
  MutexLock lock(&mu_);
  for (;;) {
    mu_.Await(absl::Condition(this, &Contents::HasWork));
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
    AwaitUntil(options_.timer, &mu_, absl::Condition(this, &Contents::KickedOrClosing),
               options_.timer->Now() + kRetry);
  }
}

absl::Status Contents::Cycle() {
  VersionPointer version;
  std::shared_ptr<const Memtable> frozen;
  std::vector<PartitionRange> drops;
  {
    MutexLock lock(&mu_);
    version = version_;
    frozen = frozen_;
    drops = drops_;
  }
  if (frozen != nullptr) {
    auto next = writer_->Flush(*version, *frozen);
    if (absl::IsResourceExhausted(next.status()) && writer_->Commit(*version).ok()) {
      next = writer_->Flush(*version, *frozen);  // in what the commit freed
    }
    if (!next.ok()) return next.status();
    Publish(version, *std::move(next), /*flushed=*/true);
  }
  for (const PartitionRange& partitions : drops) {
    auto next = writer_->Drop(*version, partitions.first, partitions.last);
    if (!next.ok()) return next.status();
    Publish(version, *std::move(next), /*flushed=*/false);
    MutexLock lock(&mu_);
    Dropped(partitions);
  }
  if (absl::Status s = MergeAll(version); !s.ok()) return s;
  return writer_->Commit(*version);
}

// Without room the merges wait for the next cycle: the commit frees what they need.
absl::Status Contents::MergeAll(VersionPointer& version) {
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

void Contents::Publish(VersionPointer& version, VersionPointer next, bool flushed) {
  version = next;
  std::shared_ptr<const Memtable> old;  // freed without the lock
  MutexLock lock(&mu_);
  version_.swap(next);
  if (flushed) old.swap(frozen_);
  ++progress_;
}

}  // namespace strata::storage::row_file
