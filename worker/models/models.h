// The models that a job can name.
#ifndef STRATA_WORKER_MODELS_MODELS_H_
#define STRATA_WORKER_MODELS_MODELS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "proto/job/tables/model_tables.h"
#include "worker/step/model.h"

namespace strata {

// Derivatives are by the sum over examples and labels of the losses (ops/nn/loss/losses.h), each
// with its label's weight; where lines have weights, times these in units of 2^-24, so that the sum
// of the units is what divides them. With x the value of a feature or a numeric input, w its weight
// and v its embedding; fields are Batch.fields, and a field's embedding e_f is the sum of v x over
// its features, or the greatest of each element (pooling; without Batch.fields every feature is a
// field of its own, by ordinal):
//   lr         logit = bias + sum w x
//   fm         + 1/2 sum_d ((sum e_f)_d^2 - sum e_fd^2), v x of numeric inputs among the e
//              (Rendle, ICDM 2010)
//   wide_deep  lr's + perceptron(inputs), inputs = [e_f in field order, numeric inputs]
//              (Cheng et al., DLRS 2016, equation 3; its wide part is every feature's weight,
//              without crossed features of its own: give those as columns)
//   deepfm     fm's, the second order over fields only, + perceptron(inputs)
//              (Guo et al., IJCAI 2017)
//   dcn_v2     w . [cross network(inputs), hidden layers(inputs)] + bias: the parallel structure
//              (Wang et al., WWW 2021, section 3; ops/nn/cross.h)
//   dlrm       top([bottom(numeric inputs), dot products of every two of bottom's output and the
//              e_f]), bottom and top perceptrons, a ReLU after bottom's last layer (Naumov et al.,
//              arXiv 1906.00091); without numeric inputs: top(dot products of every two of the e_f)
//   shared_bottom  by label: tower(hidden layers(inputs)) (Caruana, Machine Learning 28, 1997)
//   mmoe       by label: tower(sum_e g_e expert_e(inputs)), g = softmax(gate(inputs)), a ReLU after
//              the experts' last layer (Ma et al., KDD 2018, equations 5 to 7; their gates have no
//              bias)
//   din        perceptron(inputs), where the e_f of a sequence with values v_p is sum_p a_p v_p,
//              a_p = perceptron([v_p, t, v_p - t, v_p t]), t the e_f of the one categorical field
//              of the same table (Zhou et al., KDD 2018, section 4.3: the a_p are not normalised;
//              they take the difference and the product for the outer product, as the authors'
//              program does; hidden layers have ReLU rather than Dice); without a sequence
//              perceptron(inputs)
// A label with a stated mean is learned as the distance from it: what its loss predicts of the
// logit + an offset (worker/step/task_losses.h).
// With several labels each has its own bias, w and output of the last layer. What the second order
// of fm and deepfm adds to a label's logit is 1/2 sum_d (1 + h_d) ((sum e_f)_d^2 - sum e_fd^2),
// with h of its own, which begins as zeros. Hidden layers have ReLU. Fields that an example lacks
// are zeros in perceptrons, cross networks and dots; features of fields beyond the job's take part
// in weights and fm's second order only. Dcn_v2, dlrm and shared_bottom have no linear term, so
// their rows are embeddings alone. INVALID_ARGUMENT when the tables are not those that
// MakeModelTables gives.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(const ModelTables& tables);

}  // namespace strata

#endif  // STRATA_WORKER_MODELS_MODELS_H_
