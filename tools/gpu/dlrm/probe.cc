#include "tools/gpu/dlrm/probe.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "tools/gpu/bars/bar_memory.h"
#include "tools/gpu/bars/fill.h"
#include "tools/gpu/bars/mlp_products.h"
#include "tools/gpu/bars/probe.h"

namespace strata::gpu_check {
namespace {

using ops::gpu::Blas;
using ops::gpu::Buffer;

// Inputs of the same number of 16-byte pieces in every precision.
constexpr uint32_t kAlignedInputs = 8;

MlpShape ShapeOf(const DlrmProbeOptions& o, const std::vector<uint32_t>& widths) {
  MlpShape shape{o.batch, widths, o.precision};
  uint32_t& inputs = shape.widths.front();
  inputs = (inputs + kAlignedInputs - 1) / kAlignedInputs * kAlignedInputs;
  return shape;
}

// Rows that are gathered and updated.
class Rows {
 public:
  explicit Rows(const DlrmProbeOptions& o)
      : bits_(FloorLog2(std::max<uint64_t>(1, o.table_rows))),
        quads_((o.row_floats + 3) / 4),
        sum_quads_(o.dim / 4),
        n_(static_cast<uint32_t>(std::min<uint64_t>(o.rows, uint64_t{1} << bits_))) {}

  size_t bytes() const {
    return PieceBytes(table_floats() * sizeof(float)) + PieceBytes(out_floats() * sizeof(float)) +
           PieceBytes(sum_floats() * sizeof(float)) + PieceBytes(n_ * sizeof(uint32_t));
  }

  absl::Status Make(const BarContext& context, ops::gpu::Arena* arena) {
    const std::pair<Buffer*, size_t> wanted[] = {{&table_, table_floats() * sizeof(float)},
                                                 {&out_, out_floats() * sizeof(float)},
                                                 {&sums_, sum_floats() * sizeof(float)},
                                                 {&row_of_, n_ * sizeof(uint32_t)}};
    for (const auto& [buffer, bytes] : wanted) {
      auto taken = arena->Allocate(bytes);
      if (!taken.ok()) return taken.status();
      *buffer = *std::move(taken);
    }
    absl::Status status =
        FillRowNumbers(*context.api, n_, bits_, 1, row_of_.as<uint32_t>(), context.stream);
    if (status.ok()) {
      status = FillFloats(*context.api, table_floats(), -1.0f, 1.0f, 2, table_.as<float>(),
                          context.stream);
    }
    if (!status.ok()) return status;
    return FillFloats(*context.api, sum_floats(), -1.0f, 1.0f, 3, sums_.as<float>(),
                      context.stream);
  }

  absl::Status Move(const BarContext& context) const {
    ReadProbe read;
    read.table = table_.as<float>();
    read.quads = quads_;
    read.row_of = row_of_.as<uint32_t>();
    read.bags = read.stored = n_;
    read.out = out_.as<float>();
    absl::Status status = ProbeReads(*context.api, read, context.stream);
    if (!status.ok()) return status;
    UpdateProbe update;
    update.table = table_.as<float>();
    update.quads = quads_;
    update.row_of = row_of_.as<uint32_t>();
    update.rows = n_;
    update.sums = sums_.as<float>();
    update.sum_quads = sum_quads_;
    return ProbeUpdates(*context.api, update, context.stream);
  }

 private:
  size_t table_floats() const { return (size_t{1} << bits_) * quads_ * 4; }
  size_t out_floats() const { return size_t{n_} * quads_ * 4; }
  size_t sum_floats() const { return size_t{n_} * sum_quads_ * 4; }

  const uint32_t bits_, quads_, sum_quads_, n_;
  Buffer table_, out_, sums_, row_of_;
};

}  // namespace

absl::StatusOr<DlrmProbe> ProbeDlrm(const BarContext& context, const DlrmProbeOptions& o) {
  const MlpShape bottom = ShapeOf(o, o.bottom), top = ShapeOf(o, o.top);
  auto memory = BarMemory::Make(context, [&](const BarSizes&) {
    return MlpBytes(bottom) + MlpBytes(top) + Rows(o).bytes() + PieceBytes(Blas::Options::kBytes);
  });
  if (!memory.ok()) return memory.status();
  auto blas = context.open_blas((*memory)->arena());
  if (!blas.ok()) return blas.status();
  std::vector<std::unique_ptr<Mlp>> perceptrons;
  for (const MlpShape* shape : {&bottom, &top}) {
    auto mlp = Mlp::Make(context.api, (*memory)->arena(), *shape, context.stream);
    if (!mlp.ok()) return mlp.status();
    perceptrons.push_back(*std::move(mlp));
  }
  Rows rows(o);
  if (absl::Status s = rows.Make(context, (*memory)->arena()); !s.ok()) return s;

  const auto products = [&] {
    for (const auto& mlp : perceptrons) {
      for (const MlpProduct& product : mlp->products()) {
        ops::gpu::MatmulShape bare = product.shape;
        bare.epilogue = ops::gpu::MatmulEpilogue::kNone;
        bare.mask_stride = 0;
        absl::Status done = (*blas)->Multiply(bare, product.operands, context.stream);
        if (!done.ok()) return done;
      }
    }
    return absl::OkStatus();
  };
  const auto timed = (*memory)->Time(BarLine(), products, [&] {
    const absl::Status done = products();
    return done.ok() ? rows.Move(context) : done;
  });
  if (!timed.ok()) return timed.status();
  return DlrmProbe{timed->ms, timed->probe_ms, timed->copy_bytes_per_s};
}

}  // namespace strata::gpu_check
