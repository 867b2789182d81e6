#include "worker/device/dense_step.h"

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "ops/cuda/api/memory.h"
#include "ops/cuda/api/stream.h"
#include "ops/cuda/nn/layers.h"
#include "ops/cuda/rows/apply.h"
#include "ops/optimizer.h"
#include "ops/optimizer_of.h"
#include "worker/device/layers/buffer_list.h"
#include "worker/device/layers/return_if_error.h"

namespace strata::device {
namespace {

using ops::gpu::Arena;
using ops::gpu::Buffer;
using ops::gpu::MemoryKind;

// One optimizer over some columns of each row.
struct Segment {
  ops::OptimizerConfig config;
  ops::ScalarSource scalars;
  uint32_t dim = 0, column = 0;
  // Its own rows: weights, then state.
  uint32_t stride = 0;
  Buffer rows, outcomes, pinned_outcomes;
  Buffer scalars_there, pinned_scalars;
};

class DenseStep : public DenseOptimizer {
 public:
  DenseStep(ops::gpu::CudaApi* api, const TableSpec& table, size_t rows)
      : api_(api), dim_(table.dim()), n_(static_cast<uint32_t>(rows)) {
    uint32_t column = 0;
    for (const SegmentSpec& spec : table.segments) {
      const ops::OptimizerConfig config = ops::OptimizerOf(spec.optimizer);
      Segment& s = segments_.emplace_back(Segment{config, ops::ScalarSource(config)});
      s.dim = spec.dim;
      s.column = column;
      s.stride = s.dim + ops::StateFloats(config.kind, s.dim);
      column += s.dim;
    }
  }

  absl::Status Open() {
    auto stream = ops::gpu::MakeStream(api_);
    if (!stream.ok()) return stream.status();
    stream_ = *std::move(stream);
    BufferList device, pinned;
    const size_t floats = size_t{n_} * dim_;
    device.WantArray<float>(&weights_, floats);
    device.WantArray<float>(&sums_, floats);
    pinned.WantArray<float>(&pinned_weights_, floats);
    pinned.WantArray<float>(&pinned_sums_, floats);
    for (Segment& s : segments_) {
      device.WantArray<float>(&s.rows, size_t{n_} * s.stride);
      device.WantArray<uint8_t>(&s.outcomes, n_);
      device.WantArray<ops::StepScalars>(&s.scalars_there, 1);
      pinned.WantArray<uint8_t>(&s.pinned_outcomes, n_);
      pinned.WantArray<ops::StepScalars>(&s.pinned_scalars, 1);
    }
    auto device_arena =
        Arena::Create(api_, MemoryKind::kDevice, device.bytes(), "the local optimizer");
    if (!device_arena.ok()) return device_arena.status();
    device_ = *std::move(device_arena);
    auto pinned_arena =
        Arena::Create(api_, MemoryKind::kPinned, pinned.bytes(), "the local optimizer");
    if (!pinned_arena.ok()) return pinned_arena.status();
    pinned_ = *std::move(pinned_arena);
    STRATA_RETURN_IF_ERROR(device.Take(device_.get()));
    STRATA_RETURN_IF_ERROR(pinned.Take(pinned_.get()));
    return InitStates();
  }

  ~DenseStep() override {
    if (stream_) (void)api_->Synchronize(stream_.get());
  }

  absl::StatusOr<LocalOptimizer::Counts> Apply(uint64_t step, uint64_t examples, float* weights,
                                               const float* sums) override {
    const size_t bytes = size_t{n_} * dim_ * sizeof(float);
    std::memcpy(pinned_weights_.as<float>(), weights, bytes);
    std::memcpy(pinned_sums_.as<float>(), sums, bytes);
    absl::Status status = Give(step, examples, bytes);
    if (status.ok()) status = api_->Synchronize(stream_.get());
    if (!status.ok()) {
      (void)api_->Synchronize(stream_.get());  // what was given uses this memory
      return status;
    }
    std::memcpy(weights, pinned_weights_.as<float>(), bytes);
    return Count();
  }

 private:
  ops::gpu::Matrix Columns(const Buffer& buffer, const Segment& s) const {
    return {buffer.as<float>() + s.column, dim_};
  }
  ops::gpu::Matrix Rows(const Segment& s) const { return {s.rows.as<float>(), s.stride}; }

  // States as of rows that were never updated.
  absl::Status InitStates() {
    for (Segment& s : segments_) {
      const uint32_t floats = s.stride - s.dim;
      if (floats == 0) continue;
      std::vector<float> state(floats);
      ops::InitState(s.config, s.dim, state.data());
      std::vector<float> rows(size_t{n_} * s.stride, 0.0f);
      for (size_t r = 0; r < n_; ++r) {
        std::memcpy(&rows[r * s.stride + s.dim], state.data(), floats * sizeof(float));
      }
      STRATA_RETURN_IF_ERROR(api_->CopyAsync(s.rows.as<void>(), rows.data(),
                                             rows.size() * sizeof(float), stream_.get()));
      STRATA_RETURN_IF_ERROR(api_->Synchronize(stream_.get()));
    }
    return absl::OkStatus();
  }

  absl::Status Give(uint64_t step, uint64_t examples, size_t bytes) {
    const ops::gpu::StreamHandle stream = stream_.get();
    STRATA_RETURN_IF_ERROR(
        api_->CopyAsync(weights_.as<void>(), pinned_weights_.as<void>(), bytes, stream));
    STRATA_RETURN_IF_ERROR(
        api_->CopyAsync(sums_.as<void>(), pinned_sums_.as<void>(), bytes, stream));
    for (Segment& s : segments_) STRATA_RETURN_IF_ERROR(GiveSegment(s, step, examples));
    return api_->CopyAsync(pinned_weights_.as<void>(), weights_.as<void>(), bytes, stream);
  }

  absl::Status GiveSegment(Segment& s, uint64_t step, uint64_t examples) {
    const ops::gpu::StreamHandle stream = stream_.get();
    const ops::gpu::Extent extent = {n_, s.dim};
    *s.pinned_scalars.as<ops::StepScalars>() = s.scalars.At(step, examples);
    STRATA_RETURN_IF_ERROR(api_->CopyAsync(s.scalars_there.as<void>(), s.pinned_scalars.as<void>(),
                                           sizeof(ops::StepScalars), stream));
    STRATA_RETURN_IF_ERROR(CopyMatrix(*api_, extent, Columns(weights_, s), Rows(s), stream));
    ops::gpu::ApplyTask task;
    task.table = {s.rows.as<float>(), s.stride};
    task.state_offset = s.dim;
    task.dim = s.dim;
    task.rows.most = n_;
    task.sums = sums_.as<float>() + s.column;
    task.sum_stride = dim_;
    task.step = s.scalars_there.as<ops::StepScalars>();
    task.outcomes = s.outcomes.as<uint8_t>();
    STRATA_RETURN_IF_ERROR(ops::gpu::Apply(*api_, s.config, task, stream));
    STRATA_RETURN_IF_ERROR(CopyMatrix(*api_, extent, Rows(s), Columns(weights_, s), stream));
    return api_->CopyAsync(s.pinned_outcomes.as<void>(), s.outcomes.as<void>(), n_, stream);
  }

  // Rows of which any segment refused, or clipped.
  LocalOptimizer::Counts Count() const {
    LocalOptimizer::Counts counts;
    for (uint32_t r = 0; r < n_; ++r) {
      bool refused = false, clipped = false;
      for (const Segment& s : segments_) {
        refused |= s.pinned_outcomes.as<uint8_t>()[r] == ops::kRowRefused;
        clipped |= s.pinned_outcomes.as<uint8_t>()[r] == ops::kRowClipped;
      }
      counts.refused += refused;
      counts.clipped += clipped;
    }
    return counts;
  }

  ops::gpu::CudaApi* const api_;
  const uint32_t dim_, n_;
  ops::gpu::Stream stream_;
  std::unique_ptr<Arena> device_, pinned_;  // gone after what lies in them
  Buffer weights_, sums_, pinned_weights_, pinned_sums_;
  std::vector<Segment> segments_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DenseOptimizer>> MakeDenseStep(ops::gpu::CudaApi* api,
                                                              const TableSpec& table, size_t rows) {
  auto step = std::make_unique<DenseStep>(api, table, rows);
  STRATA_RETURN_IF_ERROR(step->Open());
  return std::unique_ptr<DenseOptimizer>(std::move(step));
}

}  // namespace strata::device
