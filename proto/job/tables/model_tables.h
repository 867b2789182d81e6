// The tables that a model's parameters live in: a pure function of the job and of the data's shape,
// the same in scheduler, servers and workers.
#ifndef STRATA_PROTO_JOB_TABLES_MODEL_TABLES_H_
#define STRATA_PROTO_JOB_TABLES_MODEL_TABLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/table_spec.h"
#include "proto/job/fields/sequences.h"
#include "proto/job/fields/task_spec.h"
#include "proto/job/model/model_types.h"
#include "proto/strata/job.pb.h"

namespace strata {

// With T tasks (labels), table 0 (hashed: "features", or the first of spec.tables) has segments:
// lr: weight(T); fm, wide_deep and deepfm: embedding(D), weight(T); the others: embedding(D).
// Tables 2, 3, ... are the others of spec.tables, in order, with segments of the same names. Mmoe
// and din take tables of any widths, the others embeddings of one width, D, of all fields. Table 1
// ("dense") has rows of kDenseRowDim floats and the tensors below, numbered in this order. A layer
// is name_weight(inputs, outputs) row-major by input, then name_bias(outputs).
//   lr, fm, wide_deep, deepfm: bias(T); numeric > 0: numeric_weight(numeric, T);
//   fm with numeric > 0: numeric_embedding(numeric, D);
//   wide_deep, deepfm: layer_i for each i of hidden, then output, of width T; the first layer's
//     inputs are the F = fields * D + numeric of the example: embeddings in field order, then
//     numbers;
//   fm, deepfm with T > 1, last: interaction_weight(D, T): each task's weights of the elements of
//     the second order, less one;
//   dcn_v2: for each l of the cross layers: cross_l (F, F), or with a rank r: cross_l_v(F, r),
//     then cross_l_u(r, F) and cross_l_bias; layer_i for each i of hidden; output (F + last of
//     hidden, T), the cross network's part first;
//   dlrm with numeric > 0: bottom_i for each i of bottom_hidden, from numeric inputs, then
//     bottom_output, of width D; then layer_i for each i of hidden, then output, of width T; inputs
//     are the bottom's D outputs (numeric > 0), then the interaction_pairs();
//   shared_bottom: layer_i for each i of hidden, over the F inputs; then by task t: tower_t_i for
//     each i of tower_hidden, then tower_t_output, of width 1;
//   mmoe: by expert e: expert_e_i for each i of expert_hidden, over the F inputs: each field's
//     vector, as wide as its table's, in field order, then numbers; by task t: gate_t, over the
//     same, as wide as there are experts; then the towers, as shared_bottom's;
//   din: by sequence, named by its field: attention_NAME_i for each i of attention_hidden, over
//     four vectors of the table's width, then attention_NAME_output, of width 1; layer_i for each i
//     of hidden, over the F inputs as mmoe's, where a sequence has one vector; output, of width T.
// An output has no number: models of other depths have it under the same name, and no hidden layer.
struct ModelTables {
  ModelType type = ModelType::kLr;
  uint32_t fields = 0;
  uint32_t numeric = 0;
  uint32_t embedding_dim = 0;              // 0 for lr, mmoe and din
  std::vector<uint32_t> hidden;            // wide_deep, deepfm, dcn_v2, dlrm
  std::vector<uint32_t> bottom_hidden;     // dlrm with numeric > 0
  std::vector<bool> max_pooled;            // by field; empty: all fields are pooled by their sum
  uint32_t cross_layers = 0;               // dcn_v2
  uint32_t cross_rank = 0;                 // dcn_v2; 0: full matrices
  std::vector<uint32_t> tower_hidden;      // shared_bottom, mmoe
  uint32_t experts = 0;                    // mmoe
  std::vector<uint32_t> expert_hidden;     // mmoe
  std::vector<uint32_t> attention_hidden;  // din
  std::vector<SequenceShape> sequences;    // din, in the order of their fields
  std::vector<uint32_t> field_dims;        // mmoe, din: by field, floats of its embeddings
  std::vector<TaskSpec> tasks = {{}};      // at least one
  bool labelled = false;                   // by spec.labels
  bool weighted = false;                   // lines have weights
  std::vector<TableSpec> tables;           // by number; [1] dense, the others hashed
  // By field of the data: the number of its table. Empty: all are of table 0.
  std::vector<uint32_t> field_tables;
  // tables[1].tensors lies in position order; tensor_order[k] = index there of tensor number k.
  std::vector<uint32_t> tensor_order;
  std::vector<std::string> tensor_names;  // by tensor number

  static constexpr uint32_t kDenseRowDim = 256;

  static constexpr uint32_t kDenseTable = 1;

  // Floats of a pulled row, of whichever hashed table. Mmoe, din: of table 0; others may differ.
  uint32_t row_dim() const { return tables[0].dim(); }
  // Whether hashed tables may differ in width.
  bool any_width() const { return InfoOf(type).any_width; }
  // Whether there are hashed tables beside table 0.
  bool several() const { return tables.size() > 2; }
  uint32_t task_count() const { return static_cast<uint32_t>(tasks.size()); }
  // One label, which every line has, of weight 1, and no weights of lines: what the job has that
  // does not speak of labels.
  bool plain() const { return !labelled && !weighted; }
  // F above: floats of an example's embeddings and numbers.
  uint64_t example_width() const {
    uint64_t width = uint64_t{fields} * embedding_dim + numeric;
    for (const uint32_t dim : field_dims) width += dim;
    return width;
  }
  // Dlrm: vectors of an example whose dot products are taken: the bottom's output where there are
  // numbers, and one per field. Pairs of them.
  uint32_t interaction_vectors() const { return fields + (numeric > 0 ? 1 : 0); }
  uint64_t interaction_pairs() const {
    const uint64_t n = interaction_vectors();
    return n == 0 ? 0 : n * (n - 1) / 2;
  }
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

#endif  // STRATA_PROTO_JOB_TABLES_MODEL_TABLES_H_
