// A mixture of vectors by weights that a softmax gives (Ma et al., Multi-gate Mixture-of-Experts,
// KDD 2018, equations 5 to 7), and its gradients. One example at a time; any thread.
#ifndef STRATA_OPS_NN_MIXTURE_H_
#define STRATA_OPS_NN_MIXTURE_H_

#include <cstddef>

namespace strata::ops {

// out (n) = e^(in - max in) over their sum, which is a chain over ascending elements. n >= 1.
void Softmax(size_t n, const float* in, float* out);

// Derivatives by Softmax's in, from those by its out: in_gradient[i] = out[i] (gradient[i] - s),
// s = sum_j out[j] gradient[j], a chain of fma. in_gradient may be gradient.
void SoftmaxGradients(size_t n, const float* out, const float* gradient, float* in_gradient);

// out (width) = sum_e weights[e] vectors[e], ascending, the first a product, each further one a
// fma.
void Mix(size_t n, const float* weights, const float* const* vectors, size_t width, float* out);

// x . y, a chain of fma over ascending elements.
float Dot(size_t width, const float* x, const float* y);

}  // namespace strata::ops

#endif  // STRATA_OPS_NN_MIXTURE_H_
