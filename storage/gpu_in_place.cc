// A GPU table's rows, read and updated where they lie (device_rows.h).
#include "storage/gpu_rows.h"

namespace strata::storage {

absl::Status GpuTable::Locate(std::span<const Position> positions, Access access,
                              std::span<RowRef> refs, std::span<RowSlot> slots) {
  return Hold(positions, access, Leave::kThere, refs, slots);
}

absl::Status GpuTable::PutRows(std::span<const uint8_t* const> rows) {
  if (!broken_.ok()) return broken_;
  put_slots_.clear();
  put_rows_.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == nullptr || in_place_[i] == kNoGpuSlot) continue;
    put_slots_.push_back(in_place_[i]);
    put_rows_.push_back(rows[i]);
  }
  return Device(backend_->Put(put_slots_, put_rows_));
}

absl::Status GpuTable::CopyRows(std::span<RowRef> refs) {
  if (!broken_.ok()) return broken_;
  put_rows_.resize(held_.size());
  if (absl::Status s = backend_->Read(held_, put_rows_); !s.ok()) return Device(std::move(s));
  size_t k = 0;
  for (size_t i = 0; i < in_place_.size(); ++i) {
    if (in_place_[i] != kNoGpuSlot) refs[i].row = const_cast<uint8_t*>(put_rows_[k++]);
  }
  return absl::OkStatus();
}

absl::Status GpuTable::Gather(ops::RowCodec codec, uint32_t dim, uint8_t* out) {
  if (!broken_.ok()) return broken_;
  if (held_.empty()) return absl::OkStatus();
  gathered_ += held_.size();
  return Device(backend_->Gather(in_place_, codec, dim, out));
}

absl::Status GpuTable::GatherThere(uint32_t dim, float* out) {
  if (!broken_.ok()) return broken_;
  if (held_.empty()) return absl::OkStatus();
  gathered_ += held_.size();
  return Device(backend_->GatherThere(in_place_, dim, out));
}

absl::Status GpuTable::Upload(const float* rows, std::span<const uint32_t> numbers, uint32_t dim,
                              float* there) {
  if (!broken_.ok()) return broken_;
  return Device(backend_->Upload(rows, numbers, dim, there));
}

absl::Status GpuTable::Download(const float* there, std::span<const uint32_t> numbers, uint32_t dim,
                                float* rows) {
  if (!broken_.ok()) return broken_;
  return Device(backend_->Download(there, numbers, dim, rows));
}

absl::Status GpuTable::Apply(const RowUpdate& update, uint8_t* outcomes) {
  if (!broken_.ok()) return broken_;
  updated_ += held_.size();
  return Device(backend_->Apply(in_place_, update, outcomes));
}

}  // namespace strata::storage
