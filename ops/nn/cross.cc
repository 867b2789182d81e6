#include "ops/nn/cross.h"

#include <cstring>

#include "ops/exact_math.h"

namespace strata::ops {
namespace {

using exact::Fma;

// next = x0 u + x.
void Next(size_t n, const float* x0, const float* u, const float* x, float* next) {
  for (size_t j = 0; j < n; ++j) next[j] = Fma(x0[j], u[j], x[j]);
}

// g by the layer's output: t = g x0, and x0's own gradient grows by g u.
void Split(size_t n, const float* g, const float* x0, const float* u, float* t,
           float* x0_gradient) {
  for (size_t j = 0; j < n; ++j) t[j] = g[j] * x0[j];
  for (size_t j = 0; j < n; ++j) x0_gradient[j] = Fma(g[j], u[j], x0_gradient[j]);
}

void Add(size_t n, const float* g, float* sum) {
  for (size_t j = 0; j < n; ++j) sum[j] = sum[j] + g[j];
}

}  // namespace

CrossNetwork::CrossNetwork(const GemmKernel& kernel, size_t width, size_t layers, size_t rank)
    : width_(width), rank_(rank), stride_(RowStride(width)), rank_stride_(RowStride(rank)) {
  for (size_t l = 0; l < layers; ++l) layers_.emplace_back(kernel);
}

void CrossNetwork::SetWeights(std::span<const CrossLayer> layers, Passes passes,
                              Parallel* parallel) {
  const size_t inputs = rank_ > 0 ? rank_ : width_;
  for (size_t l = 0; l < layers.size(); ++l) {
    Layer& layer = layers_[l];
    layer.weight.Pack(layers[l].weight, inputs, width_, width_, parallel);
    if (rank_ > 0) layer.v.Pack(layers[l].v, width_, rank_, rank_, parallel);
    std::memcpy(layer.bias.Reserve(width_), layers[l].bias, width_ * sizeof(float));
    if (passes == Passes::kForward) continue;
    layer.weight_back.PackTransposed(layers[l].weight, width_, inputs, width_, parallel);
    if (rank_ > 0) layer.v_back.PackTransposed(layers[l].v, rank_, width_, rank_, parallel);
  }
}

void CrossNetwork::Resize(size_t batch, Passes passes) {
  const bool backward = passes == Passes::kForwardAndBackward;
  for (Layer& layer : layers_) {
    layer.factor.Reserve(batch * stride_);
    layer.next.Reserve(batch * stride_);
    if (rank_ > 0) layer.projected.Reserve(batch * rank_stride_);
    if (!backward) continue;
    layer.factor_gradient.Reserve(batch * stride_);
    if (rank_ > 0) layer.projected_gradient.Reserve(batch * rank_stride_);
  }
  if (backward) gradient_.Reserve(batch * stride_);
}

CrossInput CrossNetwork::InputOf(size_t layer, const CrossInput& x0) const {
  return layer == 0 ? x0 : CrossInput{layers_[layer - 1].next.data(), stride_};
}

void CrossNetwork::Forward(size_t first, size_t rows, const CrossInput& x0) {
  for (size_t l = 0; l < layers_.size(); ++l) {
    Layer& layer = layers_[l];
    const CrossInput x = InputOf(l, x0);
    CrossInput in = {x.data + first * x.stride, x.stride};
    if (rank_ > 0) {
      float* const p = layer.projected.data() + first * rank_stride_;
      GemmRows(rows, in.data, in.stride, layer.v, GemmStart::kZero, p, rank_stride_, {});
      in = {p, rank_stride_};
    }
    GemmEpilogue e;
    e.bias = layer.bias.data();
    float* const u = layer.factor.data() + first * stride_;
    GemmRows(rows, in.data, in.stride, layer.weight, GemmStart::kZero, u, stride_, e);
    for (size_t r = 0; r < rows; ++r) {
      Next(width_, x0.data + (first + r) * x0.stride, u + r * stride_,
           x.data + (first + r) * x.stride, layer.next.data() + (first + r) * stride_);
    }
  }
}

void CrossNetwork::Backward(size_t first, size_t rows, const CrossInput& x0,
                            float* input_gradient) {
  float* const g = gradient_.data() + first * stride_;
  for (size_t l = layers_.size(); l-- > 0;) {
    Layer& layer = layers_[l];
    float* const t = layer.factor_gradient.data() + first * stride_;
    for (size_t r = 0; r < rows; ++r) {
      Split(width_, g + r * stride_, x0.data + (first + r) * x0.stride,
            layer.factor.data() + (first + r) * stride_, t + r * stride_,
            input_gradient + (first + r) * x0.stride);
    }
    // The gradient by x_l: the chain goes on from what came through the sum.
    if (rank_ == 0) {
      GemmRows(rows, t, stride_, layer.weight_back, GemmStart::kContinue, g, stride_, {});
      continue;
    }
    float* const q = layer.projected_gradient.data() + first * rank_stride_;
    GemmRows(rows, t, stride_, layer.weight_back, GemmStart::kZero, q, rank_stride_, {});
    GemmRows(rows, q, rank_stride_, layer.v_back, GemmStart::kContinue, g, stride_, {});
  }
  for (size_t r = 0; r < rows; ++r) {
    Add(width_, g + r * stride_, input_gradient + (first + r) * x0.stride);
  }
}

void CrossNetwork::AppendWeightGradients(size_t batch, const CrossInput& x0,
                                         std::span<const CrossLayerGradient> out,
                                         std::vector<TransposedProduct>* products) const {
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const CrossInput x = InputOf(l, x0);
    TransposedProduct p;
    p.rows = batch;
    p.m = rank_ > 0 ? rank_ : width_;
    p.n = width_;
    p.a = rank_ > 0 ? layer.projected.data() : x.data;
    p.lda = rank_ > 0 ? rank_stride_ : x.stride;
    p.b = layer.factor_gradient.data();
    p.ldb = stride_;
    p.c = out[l].weight;
    p.ldc = width_;
    p.column_sums = out[l].bias;
    products->push_back(p);
    if (rank_ == 0) continue;
    p.m = width_;
    p.n = rank_;
    p.a = x.data;
    p.lda = x.stride;
    p.b = layer.projected_gradient.data();
    p.ldb = rank_stride_;
    p.c = out[l].v;
    p.ldc = rank_;
    p.column_sums = nullptr;
    products->push_back(p);
  }
}

}  // namespace strata::ops
