// ChainLink: what is told of it.
#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/mutation.h"
#include "server/job/chain_link.h"

namespace strata::server {

LogEnd ChainLink::end(size_t shard) const {
  absl::MutexLock lock(&mu_);
  return chain_.end(shard);
}

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

uint64_t ChainLink::image(size_t shard) const {
  absl::MutexLock lock(&mu_);
  return shards_[shard].image;
}

std::string ChainLink::sender() const {
  absl::MutexLock lock(&mu_);
  const int before = static_cast<int>(directive_.place()) - 1;
  return before < 0 || before >= directive_.members_size() ? ""
                                                           : directive_.members(before).server();
}

std::string ChainLink::role() const {
  absl::MutexLock lock(&mu_);
  const ChainConfiguration& c = chain_.configuration();
  if (c.place >= c.members) return "joining";
  if (c.place == 0) return "head";
  return c.last() ? "tail" : "middle";
}

// The first segment that the next copy needs of the shard (0: all that are there); nothing: none.
std::optional<uint64_t> ChainLink::NeededBy(size_t i) const {
  const Shard& shard = shards_[i];
  const auto next = chain_.next(i);
  if (shard.needs_image || (next && next->empty)) {
    if (!shard.sending) return std::nullopt;  // it gets the newest image
    return shard.segments.From(shard.sending->at);
  }
  if (!next) return 0;
  if (next->committed >= chain_.end(i)) return std::nullopt;
  return shard.segments.From(next->committed);
}

uint64_t ChainLink::TrimBefore(uint64_t before) {
  absl::MutexLock lock(&mu_);
  uint64_t needed = before;
  for (size_t i = 0; i < shards_.size() && !chain_.configuration().next.empty(); ++i) {
    needed = std::min(needed, NeededBy(i).value_or(before));
  }
  if (needed < before && GivesUp(needed, before)) needed = before;
  for (Shard& shard : shards_) shard.segments.Trimmed(needed);
  return needed;
}

// Of a member commits wait for, so that little is kept. One that is none would have the log grow
// for as long as it is slower than the job.
bool ChainLink::GivesUp(uint64_t needed, uint64_t before) {
  if (!chain_.configuration().last() || STRATA_MUTATION("chain.log_kept_without_bound"))
    return false;
  uint64_t most = options_.most_kept_bytes;
  for (const Shard& shard : shards_) most += 2 * shard.newest_image_bytes;
  const uint64_t kept = options_.log->BytesFrom(needed) - options_.log->BytesFrom(before);
  if (kept <= most) return false;
  const absl::Status why = absl::OutOfRangeError(
      absl::StrCat("the copy to be is ", kept, " bytes of log behind, and ", most,
                   " are kept for it: it begins anew with a newer image"));
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (NeededBy(i).value_or(before) >= before) continue;
    const auto next = chain_.next(i);
    if (next && next->empty) {
      StopSending(shards_[i]);
    } else {
      NeedImage(i, why);
    }
  }
  return true;
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
  bool needs_image = false;
  uint64_t lag = 0;
  std::optional<uint64_t> from;  // what is in the log alone: the segment where it begins
  for (size_t i = 0; i < shards_.size(); ++i) {
    const Shard& shard = shards_[i];
    if (!shard.empty) end_of(i, chain_.end(i), chain_.committed(i), report.add_ends());
    const auto next = chain_.next(i);
    needs_image |= shard.needs_image;
    if (next && !next->empty && !shard.needs_image) {
      end_of(i, next->end, next->committed, report.add_next_ends());
      lag += shard.entries.BytesAfter(next->end);
      const bool in_memory = next->end >= std::min(shard.entries.after(), chain_.end(i));
      const uint64_t segment = shard.segments.From(next->end);
      if (!in_memory) from = std::min(from.value_or(segment), segment);
    }
    if (!shard.sending || !next || !next->empty) continue;
    report.set_image_bytes(report.image_bytes() + shard.sending->bytes);
    const bool mine = next->image == shard.sending->image;
    if (mine) report.set_image_bytes_sent(report.image_bytes_sent() + next->image_bytes);
  }
  report.set_lag_bytes(from ? std::max(lag, options_.log->BytesFrom(*from)) : lag);
  report.set_next_has_all(chain_.NextHasAll() && !needs_image);
  if (waits_since_) {
    report.set_waits_since_unix_ms(absl::ToUnixMillis(options_.timer->Wall(*waits_since_)));
  }
}

}  // namespace strata::server
