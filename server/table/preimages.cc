#include "server/table/preimages.h"

#include <glog/logging.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace strata::server {

void PreImages::Clear() {
  positions_.clear();
  weights_.clear();
  blocks_.clear();
  piece_ = 0;
  used_ = 0;
  refused_ = false;
}

float* PreImages::Extend(std::span<const Position> positions) {
  positions_.insert(positions_.end(), positions.begin(), positions.end());
  const size_t before = weights_.size();
  weights_.resize(before + positions.size() * dim_);
  return weights_.data() + before;
}

absl::StatusOr<float*> PreImages::ExtendThere(std::span<const Position> positions) {
  if (device_ == nullptr || refused_ || !weights_.empty()) return nullptr;
  const size_t floats = positions.size() * dim_;
  while (piece_ < pieces_.size() && pieces_[piece_].floats - used_ < floats) {
    ++piece_;
    used_ = 0;
  }
  if (piece_ == pieces_.size()) {
    // Whole blocks of that size, which most of a step are: nothing is left over at a piece's end.
    // While there are few, a quarter of one: else every step that is the largest by a row, and has
    // one block, would take a piece of its own.
    const size_t blocks = piece_floats_ / 4 / floats;
    const size_t more = blocks == 0 ? floats + floats / 4 : blocks * floats;
    const auto memory = device_->AllocateThere(more);
    refused_ = absl::IsResourceExhausted(memory.status());
    if (refused_) return nullptr;
    if (!memory.ok()) return memory.status();
    pieces_.push_back({*memory, more});
    piece_floats_ += more;
  }
  float* const there = pieces_[piece_].memory + used_;
  used_ += floats;
  blocks_.push_back({there, positions.size()});
  positions_.insert(positions_.end(), positions.begin(), positions.end());
  return there;
}

absl::StatusOr<bool> PreImages::KeepThere(std::span<const Position> positions,
                                          std::span<const storage::RowRef> refs) {
  if (device_ == nullptr) return false;
  elsewhere_.clear();
  for (size_t i = 0; i < positions.size(); ++i) {
    if (!refs[i].on_device) elsewhere_.push_back(static_cast<uint32_t>(i));
  }
  if (elsewhere_.size() == positions.size()) return false;
  const auto there = ExtendThere(positions);
  if (!there.ok()) return there.status();
  if (*there == nullptr) return false;
  if (absl::Status s = device_->GatherThere(dim_, *there); !s.ok()) return s;
  if (elsewhere_.empty()) return true;
  weights_elsewhere_.resize(elsewhere_.size() * dim_);
  float* out = weights_elsewhere_.data();
  for (const uint32_t i : elsewhere_) {
    std::copy_n(reinterpret_cast<const float*>(refs[i].row), dim_, out);
    out += dim_;
  }
  absl::Status s = device_->Upload(weights_elsewhere_.data(), elsewhere_, dim_, *there);
  if (!s.ok()) return s;
  return true;
}

absl::Status PreImages::BringToHost() {
  if (on_host()) return absl::OkStatus();
  std::vector<float, Uninitialised> all(positions_.size() * dim_);
  std::vector<uint32_t> numbers;
  float* out = all.data();
  for (const Block& block : blocks_) {
    numbers.resize(block.rows);
    std::iota(numbers.begin(), numbers.end(), 0u);
    if (absl::Status s = device_->Download(block.weights, numbers, dim_, out); !s.ok()) return s;
    out += block.rows * dim_;
  }
  std::copy(weights_.begin(), weights_.end(), out);
  weights_ = std::move(all);
  blocks_.clear();
  return absl::OkStatus();
}

std::span<const float> PreImages::all_weights() const {
  CHECK(on_host());
  return weights_;
}

void PreImages::Merge(const PreImages& rows) {
  if (rows.positions_.empty()) return;
  CHECK(on_host() && rows.on_host());
  PreImages merged(dim_);
  merged.positions_.reserve(positions_.size() + rows.positions_.size());
  merged.weights_.reserve(merged.positions_.capacity() * dim_);
  const auto take = [&](const PreImages& from, size_t i) {
    std::copy_n(from.weights(i), dim_, merged.Extend({&from.positions_[i], 1}));
  };
  size_t here = 0, there = 0;
  while (here < positions_.size() || there < rows.positions_.size()) {
    if (there == rows.positions_.size()) {
      take(*this, here++);
    } else if (here == positions_.size() || rows.positions_[there] < positions_[here]) {
      take(rows, there++);
    } else {
      there += rows.positions_[there] == positions_[here];
      take(*this, here++);
    }
  }
  positions_ = std::move(merged.positions_);
  weights_ = std::move(merged.weights_);
}

PreImages::Cursor::Cursor(const PreImages& images) : images_(images) { CHECK(images.on_host()); }

const float* PreImages::Cursor::Find(Position position) {
  const std::vector<Position>& all = images_.positions_;
  // Gallop: requests and steps are of like size, so the next one is near.
  size_t step = 1;
  while (at_ + step < all.size() && all[at_ + step] < position) step *= 2;
  const auto begin = all.begin() + static_cast<ptrdiff_t>(at_ + step / 2);
  const auto end = all.begin() + static_cast<ptrdiff_t>(std::min(at_ + step + 1, all.size()));
  at_ = static_cast<size_t>(std::lower_bound(begin, end, position) - all.begin());
  return at_ < all.size() && all[at_] == position ? images_.weights(at_) : nullptr;
}

}  // namespace strata::server
