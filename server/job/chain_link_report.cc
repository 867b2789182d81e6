// ChainLink: what is told of it.
#include <algorithm>
#include <limits>

#include "absl/time/time.h"
#include "server/job/chain_link.h"

namespace strata::server {

LogEnd ChainLink::committed(size_t shard) const {
  absl::MutexLock lock(&mu_);
  return chain_.committed(shard);
}

bool ChainLink::empty(size_t shard) const {
  absl::MutexLock lock(&mu_);
  return shards_[shard].empty;
}

absl::Status ChainLink::trouble() const {
  absl::MutexLock lock(&mu_);
  return trouble_;
}

uint64_t ChainLink::TrimBefore() const {
  constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
  absl::MutexLock lock(&mu_);
  if (chain_.configuration().next.empty()) return kAll;
  uint64_t before = kAll;
  for (size_t i = 0; i < shards_.size(); ++i) {
    const auto next = chain_.next(i);
    if (!next || next->empty) return 0;
    if (next->committed >= chain_.end(i)) continue;
    const auto segment = shards_[i].entries.first_segment();
    if (shards_[i].entries.after() > next->committed || !segment) return 0;
    before = std::min(before, *segment);
  }
  return before;
}

void ChainLink::ReportImages(ServerJobReport& report) const {
  absl::MutexLock lock(&mu_);
  for (const Shard& shard : shards_) {
    if (shard.damage.empty()) continue;
    Trouble* trouble = report.add_troubles();
    trouble->set_reason("ImageDamaged");
    trouble->set_message(shard.damage);
    return;  // the first one
  }
}

void ChainLink::Report(CopyReport& report) const {
  absl::MutexLock lock(&mu_);
  report.set_chain_epoch(chain_.configuration().epoch);
  report.set_log_id(options_.log_id);
  report.set_place(chain_.configuration().place);
  const auto end_of = [&](size_t i, LogEnd end, LogEnd committed, CopyEnd* out) {
    out->set_shard(options_.shards[i].value);
    out->set_step(end.step);
    out->set_cut(end.cut);
    out->set_committed_step(committed.step);
    out->set_committed_cut(committed.cut);
  };
  for (size_t i = 0; i < shards_.size(); ++i) {
    const Shard& shard = shards_[i];
    if (!shard.empty) end_of(i, chain_.end(i), chain_.committed(i), report.add_ends());
    const auto next = chain_.next(i);
    if (next && !next->empty) {
      end_of(i, next->end, next->committed, report.add_next_ends());
      // What is in the log alone is more than stays in memory.
      const bool here =
          shard.entries.after() <= next->end && shard.entries.through() == chain_.end(i);
      const bool lacks = next->end < chain_.end(i);
      const uint64_t known = shard.entries.BytesAfter(next->end);
      report.set_lag_bytes(report.lag_bytes() +
                           (here || !lacks ? known : std::max(known, kMostBytes)));
    }
    if (shard.source == nullptr || !next || !next->empty) continue;
    report.set_image_bytes(report.image_bytes() + shard.source->bytes());
    const bool mine = next->image == shard.source->image();
    if (mine) report.set_image_bytes_sent(report.image_bytes_sent() + next->image_bytes);
  }
  report.set_next_has_all(chain_.NextHasAll());
  if (waits_since_) {
    report.set_waits_since_unix_ms(absl::ToUnixMillis(options_.timer->Wall(*waits_since_)));
  }
}

}  // namespace strata::server
