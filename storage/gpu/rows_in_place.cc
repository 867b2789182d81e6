// A GPU table's rows, read and updated where they lie (storage/row/device_rows.h).
#include "storage/gpu/rows.h"

namespace strata::storage::gpu {

absl::Status GpuTable::Locate(std::span<const Position> positions, Access access,
                              std::span<RowRef> refs, std::span<RowSlot> slots) {
  return Hold(positions, access, Leave::kThere, refs, slots);
}

absl::Status GpuTable::CopyRows(std::span<RowRef> refs) {
  if (!broken_.ok()) return broken_;
  copied_.resize(held_.size());
  if (absl::Status s = backend_->Read(held_, copied_); !s.ok()) return Device(std::move(s));
  size_t k = 0;
  for (size_t i = 0; i < in_place_.size(); ++i) {
    if (in_place_[i] != kNoGpuSlot) refs[i].row = const_cast<uint8_t*>(copied_[k++]);
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

absl::StatusOr<float*> GpuTable::AllocateThere(size_t floats) {
  if (!broken_.ok()) return broken_;
  auto memory = backend_->AllocateThere(floats);
  if (memory.ok()) {
    extra_bytes_ += floats * sizeof(float);
  } else if (!absl::IsResourceExhausted(memory.status())) {
    return Device(memory.status());
  }
  return memory;
}

absl::Status GpuTable::InitializeRows(const RowBirths& births, std::span<const uint32_t> numbers) {
  if (!broken_.ok()) return broken_;
  born_slots_.clear();
  for (const uint32_t i : numbers) born_slots_.push_back(in_place_[i]);
  return Device(backend_->InitializeRows(born_slots_, births));
}

absl::Status GpuTable::InitializeThere(const RowBirths& births, std::span<const uint32_t> numbers,
                                       float* there) {
  if (!broken_.ok()) return broken_;
  return Device(backend_->InitializeThere(births, numbers, there));
}

absl::Status GpuTable::Apply(const RowUpdate& update, uint8_t* outcomes) {
  if (!broken_.ok()) return broken_;
  updated_ += held_.size();
  return Device(backend_->Apply(in_place_, update, outcomes));
}

}  // namespace strata::storage::gpu
