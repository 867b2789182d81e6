#include "ops/nn/mixture.h"

#include "ops/exact_math.h"

namespace strata::ops {

using exact::Fma;

void Softmax(size_t n, const float* in, float* out) {
  float most = in[0];
  for (size_t i = 1; i < n; ++i) most = most < in[i] ? in[i] : most;
  float sum = 0.0f;
  for (size_t i = 0; i < n; ++i) {
    out[i] = exact::Exp(in[i] - most);
    sum += out[i];
  }
  for (size_t i = 0; i < n; ++i) out[i] = exact::Div(out[i], sum);
}

void SoftmaxGradients(size_t n, const float* out, const float* gradient, float* in_gradient) {
  float sum = 0.0f;
  for (size_t i = 0; i < n; ++i) sum = Fma(out[i], gradient[i], sum);
  for (size_t i = 0; i < n; ++i) in_gradient[i] = out[i] * (gradient[i] - sum);
}

void Mix(size_t n, const float* weights, const float* const* vectors, size_t width, float* out) {
  for (size_t d = 0; d < width; ++d) out[d] = weights[0] * vectors[0][d];
  for (size_t e = 1; e < n; ++e) {
    const float weight = weights[e];
    const float* const vector = vectors[e];
    for (size_t d = 0; d < width; ++d) out[d] = Fma(weight, vector[d], out[d]);
  }
}

float Dot(size_t width, const float* x, const float* y) {
  float sum = 0.0f;
  for (size_t d = 0; d < width; ++d) sum = Fma(x[d], y[d], sum);
  return sum;
}

}  // namespace strata::ops
