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
  chain_.SetReady(shard, false);
  disk_->Post(
      [this, shard, after, through = chain_.end(shard)] { ReadNow(shard, after, through); });
}

void ChainLink::ReadNow(size_t shard, LogEnd after, LogEnd through) {
  auto entries = ReadChainEntries(*options_.log, options_.shards[shard], 0, after, through,
                                  kMostBytes / (2 * options_.shards.size()));
  {
    absl::MutexLock lock(&mu_);
    if (entries.ok()) {
      shards_[shard].entries.Take(after, *std::move(entries));  // what follows is read, too
      chain_.SetReady(shard, true);
    } else {
      if (absl::IsOutOfRange(entries.status())) trouble_ = entries.status();
      LOG(ERROR) << "copy_not_fed job=" << options_.job.value << " server=" << options_.server_index
                 << " next=retry error=\"" << entries.status() << '"';
      ReadyAt(shard, options_.timer->Now() + kLastPause);
    }
  }
  Pump();
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
    if (shards_[shard].refused >= kMostRefused) return;  // the shard is not ready any more
    if (shards_[shard].renews) s = absl::NotFoundError("a new base image is being written");
  }
  if (s.ok() && (source == nullptr || offset == 0)) {
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
  {
    absl::MutexLock lock(&mu_);
    if (chunk.ok()) shards_[shard].file = source->path();
    shards_[shard].source = std::move(source);
    if (chunk.ok()) {
      shards_[shard].chunk = *std::move(chunk);
      ReadyAt(shard, std::max(now, pace_.Took(now, shards_[shard].chunk->data.size())));
    } else {
      if (!absl::IsNotFound(chunk.status())) {
        LOG(ERROR) << "image_not_sent job=" << options_.job.value
                   << " shard=" << options_.shards[shard].value << " next=retry error=\""
                   << chunk.status() << '"';
      }
      ReadyAt(shard, now + kFirstPause);
    }
  }
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
    shard.source.reset();
    shard.chunk.reset();
    shard.damage = absl::StrCat(
        "server ", to.server(), ", to which the base image ", shard.file, " of shard ", id.value,
        " was copied, could not load it (", why.message(), "); ",
        shard.refused < kMostRefused
            ? "a new one is written"
            : absl::StrCat("it is number ", shard.refused,
                           " in a row, and no other is sent until "
                           "this server is started again: look at its disk and its memory"));
    LOG(ERROR) << "image_refused job=" << options_.job.value << " shard=" << id.value << " error=\""
               << shard.damage << '"';
  }
}

void ChainLink::ImageWritten(size_t shard) {
  absl::MutexLock lock(&mu_);
  shards_[shard].renews = false;
}

}  // namespace strata::server
