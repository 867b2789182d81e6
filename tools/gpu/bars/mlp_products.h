// The matrix products of a multi-layer perceptron's forward and backward pass, with bias and ReLU
// in the products' kernels.
// Tested by tests/tools/gpu/bars/bars_test.cc
#ifndef STRATA_TOOLS_GPU_BARS_MLP_PRODUCTS_H_
#define STRATA_TOOLS_GPU_BARS_MLP_PRODUCTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/products/blas.h"

namespace strata::gpu_check {

// One product; `passed`: where its epilogue reads a mask, the activations (m, n) whose ReLU made
// it, of C's type; else null.
struct MlpProduct {
  std::string name;  // "forward 1", "weight gradient 3"
  ops::gpu::MatmulShape shape;
  ops::gpu::MatmulOperands operands;
  const void* passed = nullptr;
};

struct MlpShape {
  uint32_t batch = 0;
  std::vector<uint32_t> widths;  // inputs, each hidden layer's outputs, outputs
  ops::gpu::MatmulPrecision precision = ops::gpu::MatmulPrecision::kFp32;
};

// The outputs' width, rounded up to what products want to be aligned to: 16 bytes of what factors
// are read as.
uint32_t PaddedOutputs(const MlpShape& shape);

// Floating-point operations of a forward and a backward pass: 6 x batch x the weights (not padded).
double MlpOperations(const MlpShape& shape);

// Layer l = 1 .. L computes a[l] = ReLU(a[l-1] W[l] + b[l]), the last one without ReLU; backward
// dW[l] = a[l-1]^T d[l] and d[l-1] = d[l] W[l]^T where a[l-1] > 0, with db[l-1] its columns' sums.
// d[L], the outputs' gradient, is given (and so is not db[L], which a loss sums); d[0] is the
// gradient of the inputs. In bf16, factors and hidden layers are bf16, the rest is fp32. Weights
// lie row by row, (inputs, outputs).
class Mlp {
 public:
  // Takes MlpBytes(shape) of `arena`; fills inputs, weights, biases and d[L] at random, on
  // `stream`.
  static absl::StatusOr<std::unique_ptr<Mlp>> Make(ops::gpu::CudaApi* api, ops::gpu::Arena* arena,
                                                   const MlpShape& shape,
                                                   ops::gpu::StreamHandle stream);

  // In the order of a step.
  const std::vector<MlpProduct>& products() const { return products_; }

 private:
  explicit Mlp(const MlpShape& shape);
  size_t ElementBytes() const;  // of factors
  absl::Status Allocate(ops::gpu::Arena* arena);
  absl::Status Fill(ops::gpu::CudaApi* api, ops::gpu::StreamHandle stream);
  void AddForward(size_t layer);
  void AddBackward(size_t layer);

  const MlpShape shape_;
  std::vector<uint32_t> widths_;  // the last one padded
  // Of each layer; [0]: of the inputs.
  std::vector<ops::gpu::Buffer> weights_, biases_, activations_, masks_;
  std::vector<ops::gpu::Buffer> gradients_, weight_gradients_, bias_gradients_;
  std::vector<MlpProduct> products_;
};

// Bytes of an arena that Mlp::Make takes, at most.
size_t MlpBytes(const MlpShape& shape);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_BARS_MLP_PRODUCTS_H_
