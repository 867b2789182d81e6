// Every model with every loss over every pooling.
#ifndef STRATA_TESTS_WORKER_MODELS_PRODUCTS_H_
#define STRATA_TESTS_WORKER_MODELS_PRODUCTS_H_

#include <vector>

#include "tests/worker/models/problem.h"

namespace strata::testing {

// Small problems, each of one label: logloss, squared and huber (of real numbers and of counts) and
// poisson; of fields with several values: their sum, mean, maximum, and sums with weights.
std::vector<Shape> LossesAndPoolings();

}  // namespace strata::testing

#endif  // STRATA_TESTS_WORKER_MODELS_PRODUCTS_H_
