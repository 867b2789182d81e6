// The tables that a model's parameters live in: a pure function of the job and of the data's shape,
// the same in scheduler, servers and workers.
#ifndef STRATA_PROTO_CORE_MODEL_TABLES_H_
#define STRATA_PROTO_CORE_MODEL_TABLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/table_spec.h"
#include "proto/strata/job.pb.h"

namespace strata {

enum class ModelType : uint8_t { kLr = 0, kFm = 1, kDeepFm = 2 };

// Table 0 ("features", hashed) has segments: lr: weight(1); fm and deepfm: embedding(D), weight(1).
// Table 1 ("dense") has rows of kDenseRowDim floats and these tensors, numbered in this order:
//   bias(1); numeric > 0: numeric_weight(numeric);
//   fm with numeric > 0: numeric_embedding(numeric, D);
//   deepfm: for each layer i of hidden.., then the output of width 1:
//     layer_i_weight(inputs, outputs) row-major by input, layer_i_bias(outputs);
//     the first layer's inputs are fields * D + numeric: embeddings in field order, then numeric.
struct ModelTables {
  ModelType type = ModelType::kLr;
  uint32_t fields = 0;
  uint32_t numeric = 0;
  uint32_t embedding_dim = 0;     // 0 for lr
  std::vector<uint32_t> hidden;   // deepfm
  std::vector<TableSpec> tables;  // [0] features, [1] dense
  // tables[1].tensors lies in position order; tensor_order[k] = index there of tensor number k.
  std::vector<uint32_t> tensor_order;
  std::vector<std::string> tensor_names;  // by tensor number

  static constexpr uint32_t kDenseRowDim = 256;

  uint32_t row_dim() const { return tables[0].dim(); }
  size_t tensor_count() const { return tensor_order.size(); }
  const TensorSpec& tensor(size_t number) const { return tables[1].tensors[tensor_order[number]]; }
};

// `spec` has its defaults resolved (job_spec.h). INVALID_ARGUMENT names the field. Tensors are
// spread over partitions by a hash of their number; weights of layers start uniform in
// +-sqrt(1 / inputs) (LeCun et al., Efficient BackProp, 1998, to a constant; what PyTorch does: on
// Frappe the AUC of the wider +-sqrt(6 / inputs) is .0004 lower and its logloss .05 higher), biases
// at zero.
absl::StatusOr<ModelTables> MakeModelTables(const JobSpec& spec, uint32_t fields, uint32_t numeric);

}  // namespace strata

#endif  // STRATA_PROTO_CORE_MODEL_TABLES_H_
