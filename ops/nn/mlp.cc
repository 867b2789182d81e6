#include "ops/nn/mlp.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace strata::ops {
namespace {

constexpr size_t kBlockRows = 112;

}  // namespace

Mlp::Mlp(const GemmKernel& kernel, std::vector<size_t> widths, Output output)
    : widths_(std::move(widths)), output_(output) {
  for (size_t w : widths_) stride_.push_back(RowStride(w));
  value_.resize(widths_.size());
  gradient_.resize(widths_.size());
  bias_.resize(layers());
  for (size_t i = 0; i < layers(); ++i) {
    forward_.emplace_back(kernel);
    backward_.emplace_back(kernel);
  }
}

size_t Mlp::block_rows() const {
  const size_t tile = forward_[0].kernel().tile_rows;
  return kBlockRows / tile * tile;
}

void Mlp::SetWeights(std::span<const MlpLayer> layers, Passes passes, Parallel* parallel) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const size_t in = widths_[i], out = widths_[i + 1];
    forward_[i].Pack(layers[i].weight, in, out, out, parallel);
    if (passes == Passes::kForwardAndBackward) {
      backward_[i].PackTransposed(layers[i].weight, out, in, out, parallel);
    }
    std::memcpy(bias_[i].Reserve(out), layers[i].bias, out * sizeof(float));
  }
}

void Mlp::Resize(size_t batch, Passes passes) {
  for (size_t i = 0; i < widths_.size(); ++i) {
    value_[i].Reserve(batch * stride_[i]);
    if (passes == Passes::kForwardAndBackward) gradient_[i].Reserve(batch * stride_[i]);
  }
}

void Mlp::Forward(size_t first, size_t rows) {
  for (size_t i = 0; i < layers(); ++i) {
    GemmEpilogue e;
    e.bias = bias_[i].data();
    e.relu = i + 1 < layers() || output_ == Output::kRelu;
    GemmRows(rows, value_[i].data() + first * stride_[i], stride_[i], forward_[i], GemmStart::kZero,
             value_[i + 1].data() + first * stride_[i + 1], stride_[i + 1], e);
  }
}

void Mlp::Backward(size_t first, size_t rows) {
  if (output_ == Output::kRelu) {
    for (size_t r = first; r < first + rows; ++r) {
      const float* const value = output(r);
      float* const gradient = output_gradient(r);
      for (size_t j = 0; j < widths_.back(); ++j) {
        gradient[j] = value[j] > 0.0f ? gradient[j] : 0.0f;
      }
    }
  }
  for (size_t i = layers(); i-- > 0;) {
    GemmEpilogue e;
    if (i > 0) {
      e.mask = value_[i].data() + first * stride_[i];
      e.ld_mask = stride_[i];
    }
    GemmRows(rows, gradient_[i + 1].data() + first * stride_[i + 1], stride_[i + 1], backward_[i],
             GemmStart::kZero, gradient_[i].data() + first * stride_[i], stride_[i], e);
  }
}

void Mlp::AppendWeightGradients(size_t batch, std::span<const MlpLayerGradient> out,
                                std::vector<TransposedProduct>* products) const {
  for (size_t i = 0; i < layers(); ++i) {
    TransposedProduct p;
    p.rows = batch;
    p.m = widths_[i];
    p.n = widths_[i + 1];
    p.a = value_[i].data();
    p.lda = stride_[i];
    p.b = gradient_[i + 1].data();
    p.ldb = stride_[i + 1];
    p.c = out[i].weight;
    p.ldc = widths_[i + 1];
    p.column_sums = out[i].bias;
    products->push_back(p);
  }
}

}  // namespace strata::ops
