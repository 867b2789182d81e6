// The models that a job can name.
#ifndef STRATA_WORKER_MODELS_MODELS_H_
#define STRATA_WORKER_MODELS_MODELS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "proto/core/model_tables.h"
#include "worker/model.h"

namespace strata {

// Derivatives are by the sum over examples of the logarithmic loss. With x the value of a feature
// or a numeric input, w its weight and v its embedding:
//   lr      logit = bias + sum w x
//   fm      + 1/2 sum_d ((sum v_d x)^2 - sum (v_d x)^2), numeric inputs among them
//           (Rendle, ICDM 2010)
//   deepfm  as fm, the second order over categorical features only, + perceptron([v x in field
//           order, numeric inputs]) (Guo et al., IJCAI 2017). Features beyond `fields` of an
//           example take part in everything but the perceptron; missing ones are zeros there.
// INVALID_ARGUMENT when the tables are not those that MakeModelTables gives.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(const ModelTables& tables);

}  // namespace strata

#endif  // STRATA_WORKER_MODELS_MODELS_H_
