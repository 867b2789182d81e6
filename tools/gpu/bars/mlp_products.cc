#include "tools/gpu/bars/mlp_products.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/gpu/bars/fill.h"

namespace strata::gpu_check {
namespace {

using ops::gpu::Arena;
using ops::gpu::Buffer;
using ops::gpu::CudaApi;
using ops::gpu::MatmulEpilogue;
using ops::gpu::MatmulPrecision;
using ops::gpu::StreamHandle;

size_t ElementBytesOf(MatmulPrecision precision) {
  return precision == MatmulPrecision::kBf16 ? sizeof(uint16_t) : sizeof(float);
}

// Bits between rows of a mask.
uint32_t MaskStride(uint32_t width) { return (width + 127) / 128 * 128; }

}  // namespace

uint32_t PaddedOutputs(const MlpShape& shape) {
  uint32_t multiple = 1;
  if (shape.precision == MatmulPrecision::kTf32) multiple = 4;
  if (shape.precision == MatmulPrecision::kBf16) multiple = 8;
  return (shape.widths.back() + multiple - 1) / multiple * multiple;
}

double MlpOperations(const MlpShape& shape) {
  double weights = 0;
  for (size_t l = 1; l < shape.widths.size(); ++l) {
    weights += static_cast<double>(shape.widths[l - 1]) * shape.widths[l];
  }
  return 6.0 * shape.batch * weights;
}

size_t MlpBytes(const MlpShape& shape) {
  const uint32_t outputs = PaddedOutputs(shape);
  size_t bytes = 0;
  for (size_t l = 0; l < shape.widths.size(); ++l) {
    const size_t width = l + 1 < shape.widths.size() ? shape.widths[l] : outputs;
    const size_t before = l == 0 ? 0 : shape.widths[l - 1];
    // Activations, gradients, mask; weights and their gradients; biases and their gradients.
    bytes += width * shape.batch * 2 * sizeof(float) +
             size_t{MaskStride(static_cast<uint32_t>(width))} * shape.batch / 8 +
             before * width * 2 * sizeof(float) + width * 2 * sizeof(float) + 7 * 256;
  }
  return bytes;
}

Mlp::Mlp(const MlpShape& shape) : shape_(shape), widths_(shape.widths) {
  widths_.back() = PaddedOutputs(shape);
}

size_t Mlp::ElementBytes() const { return ElementBytesOf(shape_.precision); }

absl::StatusOr<std::unique_ptr<Mlp>> Mlp::Make(CudaApi* api, Arena* arena, const MlpShape& shape,
                                               StreamHandle stream) {
  if (shape.batch == 0 || shape.widths.size() < 2) {
    return absl::InvalidArgumentError("a perceptron has examples and at least one layer");
  }
  std::unique_ptr<Mlp> mlp(new Mlp(shape));
  absl::Status status = mlp->Allocate(arena);
  if (status.ok()) status = mlp->Fill(api, stream);
  if (!status.ok()) return status;
  for (size_t l = 1; l < mlp->widths_.size(); ++l) mlp->AddForward(l);
  for (size_t l = mlp->widths_.size() - 1; l > 0; --l) mlp->AddBackward(l);
  return mlp;
}

absl::Status Mlp::Allocate(Arena* arena) {
  const size_t layers = widths_.size(), batch = shape_.batch;
  for (std::vector<Buffer>* buffers : {&weights_, &biases_, &activations_, &masks_, &gradients_,
                                       &weight_gradients_, &bias_gradients_}) {
    buffers->resize(layers);
  }
  for (size_t l = 0; l < layers; ++l) {
    const size_t width = widths_[l], before = l == 0 ? 0 : widths_[l - 1];
    const std::initializer_list<std::pair<Buffer*, size_t>> wanted = {
        {&activations_[l], width * batch * sizeof(float)},
        {&gradients_[l], width * batch * sizeof(float)},
        {&masks_[l], size_t{MaskStride(widths_[l])} * batch / 8},
        {&weights_[l], before * width * ElementBytes()},
        {&weight_gradients_[l], before * width * sizeof(float)},
        {&biases_[l], width * sizeof(float)},
        {&bias_gradients_[l], width * sizeof(float)},
    };
    for (const auto& [buffer, bytes] : wanted) {
      auto taken = arena->Allocate(bytes);
      if (!taken.ok()) return taken.status();
      *buffer = *std::move(taken);
    }
  }
  return absl::OkStatus();
}

absl::Status Mlp::Fill(CudaApi* api, StreamHandle stream) {
  const size_t last = widths_.size() - 1;
  uint64_t seed = 20;
  absl::Status status;
  const auto fill = [&](const Buffer& buffer, uint64_t n, float most, bool bf16) {
    if (!status.ok()) return;
    ++seed;
    status = bf16 ? FillBf16(*api, n, -most, most, seed, buffer.as<uint16_t>(), stream)
                  : FillFloats(*api, n, -most, most, seed, buffer.as<float>(), stream);
  };
  const bool bf16 = shape_.precision == MatmulPrecision::kBf16;
  fill(activations_[0], uint64_t{widths_[0]} * shape_.batch, 1.0f, bf16);
  fill(gradients_[last], uint64_t{widths_[last]} * shape_.batch, 1.0f, bf16);
  for (size_t l = 1; l <= last; ++l) {
    // So that activations keep their size from layer to layer.
    const float most = std::sqrt(6.0f / static_cast<float>(widths_[l - 1]));
    fill(weights_[l], uint64_t{widths_[l - 1]} * widths_[l], most, bf16);
    fill(biases_[l], widths_[l], 0.1f, bf16 && l < last);
  }
  return status;
}

void Mlp::AddForward(size_t l) {
  const bool hidden = l + 1 < widths_.size();
  MlpProduct product;
  product.name = absl::StrCat("forward ", l);
  product.shape.m = shape_.batch;
  product.shape.n = product.shape.ldb = product.shape.ldc = widths_[l];
  product.shape.k = product.shape.lda = widths_[l - 1];
  product.shape.precision = shape_.precision;
  product.shape.bf16_out = hidden && shape_.precision == MatmulPrecision::kBf16;
  product.shape.epilogue = hidden ? MatmulEpilogue::kBiasReluMask : MatmulEpilogue::kBias;
  if (hidden) product.shape.mask_stride = MaskStride(widths_[l]);
  product.operands = {activations_[l - 1].as<void>(), weights_[l].as<void>(),
                      activations_[l].as<void>(), biases_[l].as<void>(),
                      hidden ? masks_[l].as<void>() : nullptr};
  products_.push_back(std::move(product));
}

void Mlp::AddBackward(size_t l) {
  MlpProduct weights;
  weights.name = absl::StrCat("weight gradient ", l);
  weights.shape.m = weights.shape.lda = widths_[l - 1];
  weights.shape.n = weights.shape.ldb = weights.shape.ldc = widths_[l];
  weights.shape.k = shape_.batch;
  weights.shape.transpose_a = true;
  weights.shape.precision = shape_.precision;
  weights.operands = {activations_[l - 1].as<void>(), gradients_[l].as<void>(),
                      weight_gradients_[l].as<void>(), nullptr, nullptr};
  products_.push_back(std::move(weights));

  const bool hidden = l > 1;  // what comes before this layer
  MlpProduct inputs;
  inputs.name = absl::StrCat("gradient ", l - 1);
  inputs.shape.m = shape_.batch;
  inputs.shape.n = inputs.shape.ldc = widths_[l - 1];
  inputs.shape.k = inputs.shape.lda = inputs.shape.ldb = widths_[l];
  inputs.shape.transpose_b = true;
  inputs.shape.precision = shape_.precision;
  inputs.shape.bf16_out = hidden && shape_.precision == MatmulPrecision::kBf16;
  inputs.operands = {gradients_[l].as<void>(), weights_[l].as<void>(), gradients_[l - 1].as<void>(),
                     nullptr, nullptr};
  if (hidden) {
    inputs.shape.epilogue = MatmulEpilogue::kReluGradientBias;
    inputs.shape.mask_stride = MaskStride(widths_[l - 1]);
    inputs.operands.bias = bias_gradients_[l - 1].as<void>();
    inputs.operands.mask = masks_[l - 1].as<void>();
    inputs.passed = activations_[l - 1].as<void>();
  }
  products_.push_back(std::move(inputs));
}

}  // namespace strata::gpu_check
