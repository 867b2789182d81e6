#include "tools/gpu/bars/mlp_bar.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/products/blas.h"
#include "tools/gpu/bars/bar_memory.h"
#include "tools/gpu/bars/mlp_products.h"
#include "tools/gpu/bars/product_check.h"

namespace strata::gpu_check {
namespace {

using ops::gpu::Blas;
using ops::gpu::MatmulPrecision;

struct Case {
  const char* name;
  MatmulPrecision precision;
  double least_of_bare;
};
constexpr Case kCases[] = {
    {"fp32", MatmulPrecision::kFp32, 0.95},
    {"TF32", MatmulPrecision::kTf32, 0.80},
    {"bf16", MatmulPrecision::kBf16, 0.75},
};

MlpShape ShapeOf(const BarSizes& sizes, uint32_t batch, MatmulPrecision precision) {
  return {batch, sizes.mlp_widths, precision};
}

// The batch is the bar's, whatever is free.
size_t Wanted(const BarSizes& sizes) {
  size_t most = 0;
  for (const Case& c : kCases) {
    most = std::max(most, MlpBytes(ShapeOf(sizes, sizes.mlp_batch, c.precision)) +
                              MlpBytes(ShapeOf(sizes, sizes.checked_batch, c.precision)));
  }
  return most + PieceBytes(Blas::Options::kBytes);
}

absl::Status CheckProducts(const BarContext& context, const BarMemory& memory, Blas* blas,
                           const Case& c) {
  auto mlp =
      Mlp::Make(context.api, memory.arena(),
                ShapeOf(memory.sizes(), memory.sizes().checked_batch, c.precision), context.stream);
  if (!mlp.ok()) return mlp.status();
  for (const MlpProduct& product : (*mlp)->products()) {
    absl::Status status = blas->Multiply(product.shape, product.operands, context.stream);
    if (status.ok()) status = CheckProduct(context.api, product, context.stream);
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat(c.name, ", ", product.name, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status MeasureCase(const BarContext& context, const BarMemory& memory, Blas* blas,
                         const Case& c) {
  absl::Status status = CheckProducts(context, memory, blas, c);
  if (!status.ok()) return status;
  const MlpShape shape = ShapeOf(memory.sizes(), memory.sizes().mlp_batch, c.precision);
  auto mlp = Mlp::Make(context.api, memory.arena(), shape, context.stream);
  if (!mlp.ok()) return mlp.status();

  const auto all = [&](bool bare) {
    for (const MlpProduct& product : (*mlp)->products()) {
      ops::gpu::MatmulShape one = product.shape;
      if (bare) {
        one.epilogue = ops::gpu::MatmulEpilogue::kNone;
        one.mask_stride = 0;
      }
      absl::Status done = blas->Multiply(one, product.operands, context.stream);
      if (!done.ok()) return done;
    }
    return absl::OkStatus();
  };
  BarLine line;
  line.bar = "mlp";
  line.name = absl::StrCat(absl::StrJoin(shape.widths, "-"), ", batch ", shape.batch, ", ", c.name);
  line.operations = MlpOperations(shape);
  line.operation = "flop";
  line.least_of_probe = c.least_of_bare;
  const uint32_t padded = PaddedOutputs(shape);
  line.note = absl::StrCat("cuBLASLt ", blas->version(), ", products checked");
  if (padded != shape.widths.back()) absl::StrAppend(&line.note, ", outputs padded to ", padded);
  return memory.Measure(
      line, [&] { return all(false); }, [&] { return all(true); });
}

}  // namespace

absl::Status MlpBar(const BarContext& context) {
  auto memory = BarMemory::Make(context, &Wanted);
  if (!memory.ok()) return memory.status();
  auto blas = context.open_blas((*memory)->arena());
  if (!blas.ok()) return blas.status();
  absl::Status status;
  for (const Case& c : kCases) {
    // A precision that the library does not know here says nothing about the others.
    const absl::Status done = MeasureCase(context, **memory, blas->get(), c);
    status.Update(done);
    if (ops::gpu::IsDeviceLost(done)) break;
  }
  return status;
}

}  // namespace strata::gpu_check
