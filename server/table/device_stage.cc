#include "server/table/device_stage.h"

#include <algorithm>
#include <numeric>

namespace strata::server {

size_t DeviceStage::PieceRows(uint32_t dim) const {
  return std::clamp<size_t>(piece_bytes_ / (size_t{dim} * sizeof(float)), 1, max_batch_);
}

absl::Status DeviceStage::Upload(std::span<const uint32_t> numbers, uint32_t dim, float* there,
                                 const Fill& fill) {
  const size_t most = PieceRows(dim);
  for (size_t at = 0; at < numbers.size(); at += most) {
    const auto piece = numbers.subspan(at, std::min(most, numbers.size() - at));
    rows_.resize(piece.size() * dim);
    for (size_t k = 0; k < piece.size(); ++k) fill(at + k, rows_.data() + k * dim);
    if (absl::Status s = device_->Upload(rows_.data(), piece, dim, there); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status DeviceStage::Download(const float* there, std::span<const uint32_t> numbers,
                                   uint32_t dim, const Take& take) {
  const size_t most = PieceRows(dim);
  for (size_t at = 0; at < numbers.size(); at += most) {
    const auto piece = numbers.subspan(at, std::min(most, numbers.size() - at));
    rows_.resize(piece.size() * dim);
    if (absl::Status s = device_->Download(there, piece, dim, rows_.data()); !s.ok()) return s;
    take(at, piece.size(), rows_.data());
  }
  return absl::OkStatus();
}

absl::Status DeviceStage::DownloadAll(const float* there, size_t n, uint32_t dim, float* rows) {
  constexpr size_t kMostRows = size_t{1} << 16;  // bounds ascending_, where a batch has no bound
  const size_t most = std::min(max_batch_, kMostRows);
  ascending_.resize(std::min(most, n));
  std::iota(ascending_.begin(), ascending_.end(), uint32_t{0});
  for (size_t at = 0; at < n; at += most) {
    const auto numbers = std::span(ascending_).first(std::min(most, n - at));
    absl::Status s = device_->Download(there + at * dim, numbers, dim, rows + at * dim);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace strata::server
