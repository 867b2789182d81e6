#include "ops/cuda/rows/initialize.h"

#include "ops/counter_random.h"
#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/inline.h"

namespace strata::ops::gpu {
namespace {

// One thread computes a quad of a row: of its weights, then of its state.
template <InitializerKind kKind>
struct InitializeQuads {
  static constexpr uint32_t kLanes = 1;
  InitializeTask task;
  float scale;
  uint32_t weight_quads, quads;
  uint32_t state_floats;
  float state;  // what each of them begins with
  bool aligned;

  STRATA_HD_MEMBER uint64_t items() const { return uint64_t{task.rows.Get()} * quads; }

  STRATA_HD_MEMBER float Weight(uint64_t stream, uint32_t element) const {
    if (kKind == InitializerKind::kZero) return 0.0f;
    const uint64_t bits = ElementBits(stream, task.first_element + element);
    return scale *
           (kKind == InitializerKind::kUniform ? SymmetricUniform(bits) : StandardNormal(bits));
  }

  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t item) const {
    const RowAndQuad at = SplitItem(item, quads);
    const uint32_t row = task.row_of == nullptr ? at.row : task.row_of[at.row];
    if (row == kNoRow) return;
    float* to = task.table.At(row);
    Vector4 x;
    if (at.quad < weight_quads) {
      const uint64_t stream = RowStream(task.seed, task.table_number, task.keys[at.row]);
      for (uint32_t d = 0; d < 4; ++d) x.at[d] = Weight(stream, at.quad * 4 + d);
      Store4(x, to + at.quad * 4, task.dim - at.quad * 4, aligned);
    } else {
      const uint32_t first = (at.quad - weight_quads) * 4;
      for (uint32_t d = 0; d < 4; ++d) x.at[d] = state;
      Store4(x, to + task.state_offset + first, state_floats - first, aligned);
    }
  }
};

template <InitializerKind kKind>
absl::Status LaunchKind(CudaApi& api, const InitializerConfig& initializer,
                        const OptimizerConfig& optimizer, const InitializeTask& task,
                        StreamHandle stream) {
  InitializeQuads<kKind> kernel;
  kernel.task = task;
  kernel.scale = initializer.scale;
  kernel.state_floats = StateFloats(optimizer.kind, task.dim);
  kernel.weight_quads = (task.dim + 3) / 4;
  kernel.quads = kernel.weight_quads + (kernel.state_floats + 3) / 4;
  kernel.state =
      optimizer.kind == OptimizerKind::kAdagrad || optimizer.kind == OptimizerKind::kRowwiseAdagrad
          ? optimizer.initial_accumulator
          : 0.0f;
  kernel.aligned = IsAligned4(task.table.base, task.table.stride) && task.state_offset % 4 == 0;
  return LaunchOver(api, "initialize rows", kernel, uint64_t{task.rows.most} * kernel.quads,
                    stream);
}

}  // namespace

absl::Status Initialize(CudaApi& api, const InitializerConfig& initializer,
                        const OptimizerConfig& optimizer, const InitializeTask& task,
                        StreamHandle stream) {
  switch (initializer.kind) {
    case InitializerKind::kZero:
      return LaunchKind<InitializerKind::kZero>(api, initializer, optimizer, task, stream);
    case InitializerKind::kUniform:
      return LaunchKind<InitializerKind::kUniform>(api, initializer, optimizer, task, stream);
    case InitializerKind::kNormal:
      return LaunchKind<InitializerKind::kNormal>(api, initializer, optimizer, task, stream);
  }
  return absl::InvalidArgumentError("an initializer of no known kind");
}

}  // namespace strata::ops::gpu
