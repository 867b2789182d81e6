// ChainLink: what is read from disk for the next copy.
#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/runtime/base/failpoints.h"
#include "server/job/chain_link.h"

namespace strata::server {

void ChainLink::Read(size_t shard, LogEnd after) {
  Shard& s = shards_[shard];
  if (std::exchange(s.reading, true)) return;
  disk_->Post([this, shard, segment = s.segments.From(after), after, through = s.entries.after()] {
    ReadNow(shard, segment, after, through);
  });
}

// While what was read before, from `after` on, is on its way.
void ChainLink::ReadAhead(size_t shard, LogEnd after) {
  const ChainEntries& entries = shards_[shard].entries;
  if (after >= entries.after() || entries.read_through() >= entries.after()) return;
  if (entries.read_bytes() <= kReadBytes / shards_.size()) Read(shard, entries.read_through());
}

void ChainLink::ReadNow(size_t shard, uint64_t segment, LogEnd after, LogEnd through) {
  auto entries = readers_[shard].Read(*options_.log, options_.shards[shard], segment, after,
                                      through, kReadBytes / options_.shards.size());
  {
    absl::MutexLock lock(&mu_);
    shards_[shard].reading = false;
    const auto next = chain_.next(shard);
    const bool wants = next && !next->empty && next->end == after;
    if (entries.ok()) {
      shards_[shard].entries.Take(after, *std::move(entries));
      chain_.SetReady(shard, true);
    } else if (absl::IsOutOfRange(entries.status())) {
      if (wants) NeedImage(shard, entries.status());  // else it asks again for what it wants now
      chain_.SetReady(shard, true);
    } else {
      LOG(ERROR) << "copy_not_fed job=" << options_.job.value << " server=" << options_.server_index
                 << " next=retry error=\"" << entries.status() << '"';
      ReadyAt(shard, options_.timer->Now() + kLastPause);
    }
  }
  Pump();
}

// It is no fault of this copy's. The next one hears it by an image that it did not ask for, and
// says that it is of no use (ServerJob::TakeImage): it is made anew.
void ChainLink::NeedImage(size_t shard, const absl::Status& why) {
  StopSending(shards_[shard]);
  if (std::exchange(shards_[shard].needs_image, true)) return;
  LOG(WARNING) << "copy_needs_image job=" << options_.job.value
               << " server=" << options_.server_index << " shard=" << options_.shards[shard].value
               << " reason=\"" << why.message() << '"';
}

void ChainLink::StopSending(Shard& shard) {
  shard.source.reset();
  shard.sending.reset();
  shard.chunk.reset();
}

void ChainLink::ReadImage(size_t shard, uint64_t offset) {
  chain_.SetReady(shard, false);
  disk_->Post([this, shard, offset] { ReadImageNow(shard, offset); });
}

// The disk's work of a link is done one piece after the other: nobody else touches the source.
void ChainLink::ReadImageNow(size_t shard, uint64_t offset) {
  absl::Status s = Failpoint("server.chain.image");
  std::unique_ptr<ImageSource> source;
  {
    absl::MutexLock lock(&mu_);
    source = std::move(shards_[shard].source);
    const absl::Time rests_until = shards_[shard].rests_until;
    if (options_.timer->Now() < rests_until) return ReadyAt(shard, rests_until);
    if (shards_[shard].renews) s = absl::NotFoundError("a new base image is being written");
  }
  const bool opens = source == nullptr || offset == 0;
  if (s.ok() && opens) {
    auto opened = ImageSource::Open(options_.folder, options_.shards[shard]);
    s = opened.status();
    source = opened.ok() ? *std::move(opened) : nullptr;
    offset = 0;
  }
  absl::StatusOr<ImageChunk> chunk = s.ok() ? source->Read(offset) : absl::StatusOr<ImageChunk>(s);
  if (absl::IsNotFound(s)) {
    absl::ReaderMutexLock calling(&calling_);
    options_.want_image(shard);
  }
  const absl::Time now = options_.timer->Now();
  absl::MutexLock lock(&mu_);
  if (!opens && !shards_[shard].sending) return ReadyAt(shard, now);  // it was given up meanwhile
  if (opens) shards_[shard].sending.reset();
  if (chunk.ok()) shards_[shard].file = source->path();
  if (opens && source != nullptr) {
    shards_[shard].sending = source->sending();
    shards_[shard].newest_image_bytes = source->sending().bytes;
  }
  shards_[shard].source = std::move(source);
  if (chunk.ok()) {
    shards_[shard].chunk = *std::move(chunk);
    ReadyAt(shard, std::max(now, pace_.Took(now, shards_[shard].chunk->data.size())));
    return;
  }
  if (!absl::IsNotFound(chunk.status())) {
    LOG(ERROR) << "image_not_sent job=" << options_.job.value
               << " shard=" << options_.shards[shard].value << " next=retry error=\""
               << chunk.status() << '"';
  }
  ReadyAt(shard, now + kFirstPause);
}

// The parts arrived whole, so what they make is damaged where it was read, or where it was written.
// It is not sent to the next one, too.
void ChainLink::ImagesRefused(const std::vector<ShardId>& shards, const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  const int next = static_cast<int>(chain_.configuration().place) + 1;
  const ChainMember& to =
      next < directive_.members_size() ? directive_.members(next) : directive_.joining();
  for (const ShardId id : shards) {
    const auto at = std::find(options_.shards.begin(), options_.shards.end(), id);
    if (at == options_.shards.end() || STRATA_MUTATION("chain.damaged_image_again")) continue;
    Shard& shard = shards_[static_cast<size_t>(at - options_.shards.begin())];
    ++shard.refused;
    shard.renews = true;
    const bool rests = shard.refused >= kMostRefused;
    if (rests) shard.rests_until = options_.timer->Now() + kRest;
    StopSending(shard);
    shard.damage = absl::StrCat(
        "server ", to.server(), ", to which the base image ", shard.file, " of shard ", id.value,
        " was copied, could not load it (", why.message(), "); ",
        rests ? absl::StrCat("it is number ", shard.refused, " in a row, and no other is sent for ",
                             absl::FormatDuration(kRest),
                             ": look at this server's disk and its memory")
              : "a new one is written");
    LOG(ERROR) << "image_refused job=" << options_.job.value << " shard=" << id.value << " error=\""
               << shard.damage << '"';
  }
}

void ChainLink::ImageWritten(size_t shard) {
  absl::MutexLock lock(&mu_);
  shards_[shard].renews = false;
}

}  // namespace strata::server
