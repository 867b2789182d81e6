#include "server/protocol/image_schedule.h"

#include <algorithm>

namespace strata::server {

ImageSchedule::ImageSchedule(const ImageScheduleOptions& options, const std::vector<Start>& shards)
    : options_(options), shards_(shards.size()) {
  for (size_t i = 0; i < shards.size(); ++i) {
    shards_[i].image_bytes = shards[i].image_bytes;
    shards_[i].segment = shards[i].segment;
  }
  const auto limit = static_cast<int64_t>(LogLimit());
  const auto n = static_cast<int64_t>(shards.size());
  for (size_t i = 0; i < shards.size(); ++i) {
    const auto behind = static_cast<int64_t>(shards[i].replay_bytes);
    const int64_t staggered = limit / n * (n - 1 - static_cast<int64_t>(i));
    shards_[i].begun_at = -(behind == 0 ? staggered : behind);
  }
}

uint64_t ImageSchedule::LogLimit() const {
  double images = 0;
  for (const Shard& shard : shards_) images += static_cast<double>(shard.image_bytes);
  const auto cores =
      static_cast<double>(std::max<size_t>(1, std::min(options_.cores, shards_.size())));
  const double left = options_.restart_seconds - images / (cores * options_.load_rate);
  const double limit = std::max(left * cores * options_.replay_rate, images / 4);
  if (limit >= static_cast<double>(options_.log_bytes)) return options_.log_bytes;
  return static_cast<uint64_t>(limit);
}

std::optional<size_t> ImageSchedule::Due(uint64_t appended) const {
  if (running_ || shards_.empty() || appended < not_before_) return std::nullopt;
  const auto oldest =
      std::min_element(shards_.begin(), shards_.end(),
                       [](const Shard& a, const Shard& b) { return a.begun_at < b.begun_at; });
  const int64_t grown = static_cast<int64_t>(appended) - oldest->begun_at;
  if (grown <= static_cast<int64_t>(LogLimit())) return std::nullopt;
  return static_cast<size_t>(oldest - shards_.begin());
}

void ImageSchedule::Begin(size_t shard, uint64_t appended) {
  running_ = shard;
  begin_ = static_cast<int64_t>(appended);
  boundary_ = shards_[shard].segment;
}

void ImageSchedule::Done(uint64_t image_bytes) {
  shards_[*running_] = {begin_, image_bytes, boundary_};
  running_.reset();
}

void ImageSchedule::Failed(uint64_t appended) {
  not_before_ = appended + LogLimit() / 8;
  running_.reset();
}

uint64_t ImageSchedule::TrimBefore() const {
  uint64_t segment = ~uint64_t{0};
  for (const Shard& shard : shards_) segment = std::min(segment, shard.segment);
  return segment;
}

}  // namespace strata::server
