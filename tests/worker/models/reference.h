// The models of worker/models/models.h in double precision, example by example, written from their
// equations; their gradients by reverse accumulation and by finite differences.
#ifndef STRATA_TESTS_WORKER_MODELS_REFERENCE_H_
#define STRATA_TESTS_WORKER_MODELS_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "tests/worker/models/problem.h"

namespace strata::testing {

struct Gradients {
  std::vector<double> rows;
  std::vector<std::vector<double>> tensors;
};

class Reference {
 public:
  explicit Reference(const Problem& p);  // which must outlive it

  // Of an example's task: the model's sum, and what it predicts by it.
  double Logit(uint32_t example, uint32_t task = 0) const;
  double Prediction(uint32_t example, uint32_t task) const;
  double Loss() const;  // the sum over examples and tasks, weighted
  // Derivatives of Loss() by every weight.
  Gradients ByTape() const;
  // The same by central differences.
  Gradients ByDifferences();

 private:
  const Problem& p_;
  std::vector<double> rows_;
  std::vector<std::vector<double>> tensors_;
};

// Largest difference, relative to the largest of `expected`.
template <typename Number>
double RelativeError(const std::vector<Number>& got, const std::vector<double>& expected) {
  double worst = 0, scale = 1e-3;
  for (double e : expected) scale = scale < e ? e : scale < -e ? -e : scale;
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference = got[i] < expected[i] ? expected[i] - got[i] : got[i] - expected[i];
    if (!(difference <= worst)) worst = difference;
  }
  return worst / scale;
}

}  // namespace strata::testing

#endif  // STRATA_TESTS_WORKER_MODELS_REFERENCE_H_
