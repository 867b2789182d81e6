#include "worker/device/layers/stages.h"

#include <algorithm>
#include <utility>

#include "worker/step/key_runs.h"
#include "worker/step/task_losses.h"

namespace strata::device {
namespace {

// `outputs` of 0 leaves the last hidden layer last.
std::vector<uint32_t> Widths(uint64_t inputs, const std::vector<uint32_t>& hidden,
                             uint32_t outputs) {
  std::vector<uint32_t> widths = {static_cast<uint32_t>(inputs)};
  widths.insert(widths.end(), hidden.begin(), hidden.end());
  if (outputs > 0) widths.push_back(outputs);
  return widths;
}

void AddMatrix(const ModelTables& t, Stages& s) {
  s.matrix = true;
  s.matrix_width = static_cast<uint32_t>(t.example_width());
}

void AddDlrm(const ModelTables& t, Stages& s) {
  s.matrix = s.dots = true;
  s.vectors = t.interaction_vectors();
  s.matrix_width = s.vectors * s.dim;
  size_t tensor = 0;
  if (s.numeric > 0) {
    s.embeddings_at = s.dim;
    s.bottom = PerceptronStage{Widths(s.numeric, t.bottom_hidden, s.dim), 0, true};
    tensor = 2 * s.bottom->layers();
  }
  s.top = PerceptronStage{Widths(s.bottom_width() + t.interaction_pairs(), t.hidden, s.tasks()),
                          tensor, false};
}

void AddSharedBottom(const ModelTables& t, Stages& s) {
  AddMatrix(t, s);
  s.top = PerceptronStage{Widths(s.matrix_width, t.hidden, 0), 0, true};
  size_t tensor = 2 * s.top->layers();
  for (uint32_t task = 0; task < s.tasks(); ++task) {
    s.towers.push_back({Widths(t.hidden.back(), t.tower_hidden, 1), tensor, false});
    tensor += 2 * s.towers.back().layers();
  }
}

// The columns of ops/cuda/nn/field_vectors.h, as worker/models/field_input.h has them.
void AddVectors(const ModelTables& t, Stages& s) {
  VectorStage& v = s.field_vectors.emplace();
  for (const TableSpec& table : t.tables) v.table_dims.push_back(table.dim());
  s.row_dim = v.most_dim();
  s.matrix = true;
  s.max_fields.clear();
  uint32_t column = 0;
  for (uint32_t f = 0; f < t.fields; ++f) {
    ops::gpu::FieldColumns& field = v.fields.emplace_back();
    field.table = t.field_tables.empty() ? 0 : t.field_tables[f];
    field.column = column;
    field.max = !t.max_pooled.empty() && t.max_pooled[f] ? 1 : 0;
    v.max |= field.max != 0;
    column += t.field_dims[f];
  }
  v.numbers_at = column;
  column += t.numeric;
  for (uint32_t n = 0; n < t.sequences.size(); ++n) {
    const SequenceShape& sequence = t.sequences[n];
    ops::gpu::FieldColumns& field = v.fields[sequence.field];
    AttentionStage& attention = s.attentions.emplace_back();
    attention.most = sequence.max_length;
    attention.dim = t.field_dims[sequence.field];
    attention.values = column;
    attention.target = v.fields[sequence.target].column;
    attention.sum = field.column;
    field.column = column;
    field.sequence = n;
    column += attention.most * attention.dim;
  }
  s.matrix_width = column;
}

void AddMmoe(const ModelTables& t, Stages& s) {
  AddVectors(t, s);
  MixtureStage& m = s.mixture.emplace();
  size_t tensor = 0;
  const auto add = [&tensor](std::vector<PerceptronStage>& to, PerceptronStage stage) {
    stage.first_tensor = tensor;
    tensor += 2 * stage.layers();
    to.push_back(std::move(stage));
  };
  const uint64_t inputs = t.example_width();
  for (uint32_t e = 0; e < t.experts; ++e) {
    add(m.experts, {Widths(inputs, t.expert_hidden, 0), 0, true});
  }
  for (uint32_t task = 0; task < s.tasks(); ++task) {
    add(m.gates, {Widths(inputs, {}, t.experts), 0, false});
  }
  for (uint32_t task = 0; task < s.tasks(); ++task) {
    add(m.towers, {Widths(t.expert_hidden.back(), t.tower_hidden, 1), 0, false});
  }
}

void AddDin(const ModelTables& t, Stages& s) {
  AddVectors(t, s);
  size_t tensor = 0;
  for (AttentionStage& attention : s.attentions) {
    attention.layers = {Widths(uint64_t{4} * attention.dim, t.attention_hidden, 1), tensor, false,
                        attention.most};
    tensor += 2 * attention.layers.layers();
  }
  s.top = PerceptronStage{Widths(t.example_width(), t.hidden, s.tasks()), tensor, false};
}

}  // namespace

uint32_t VectorStage::most_dim() const {
  uint32_t most = 0;
  for (uint32_t t = 0; t < tables(); ++t) {
    if (t != ModelTables::kDenseTable) most = std::max(most, table_dims[t]);
  }
  return most;
}

size_t Stages::FloatsOfRows(const RoutedKeys& routed) const {
  return field_vectors ? FloatsOf(routed.runs, field_vectors->table_dims)
                       : routed.keys.size() * row_dim;
}

bool HasStages(ModelType type) {
  switch (type) {
    case ModelType::kLr:
    case ModelType::kFm:
    case ModelType::kWideDeep:
    case ModelType::kDeepFm:
    case ModelType::kDcnV2:
    case ModelType::kDlrm:
    case ModelType::kSharedBottom:
    case ModelType::kMmoe:
    case ModelType::kDin:
      return true;
    default:
      return false;
  }
}

Stages StagesOf(const ModelTables& t) {
  Stages s;
  s.row_dim = t.row_dim();
  s.dim = t.embedding_dim;
  s.fields = t.fields;
  s.numeric = t.numeric;
  s.losses = LossesOf(t);
  s.weighted = t.weighted;
  s.max_fields.assign(t.max_pooled.begin(), t.max_pooled.end());
  s.interaction_tensor = t.tensor_count() - 1;
  switch (t.type) {
    case ModelType::kLr:
      s.first_order = true;
      break;
    case ModelType::kFm:
      s.first_order = s.second_order = true;
      s.numeric_second_order = s.numeric > 0;
      break;
    case ModelType::kWideDeep:
    case ModelType::kDeepFm:
      s.first_order = true;
      s.second_order = t.type == ModelType::kDeepFm;
      AddMatrix(t, s);
      s.top = PerceptronStage{Widths(s.matrix_width, t.hidden, s.tasks()),
                              static_cast<size_t>(s.numeric > 0 ? 2 : 1), false};
      break;
    case ModelType::kDcnV2:
      AddMatrix(t, s);
      s.cross = CrossStage{s.matrix_width, t.cross_layers, t.cross_rank};
      s.top = PerceptronStage{Widths(s.matrix_width, t.hidden, 0), s.cross->tensors(), true};
      s.output_tensor = t.tensor_count() - 2;
      break;
    case ModelType::kDlrm:
      AddDlrm(t, s);
      break;
    case ModelType::kSharedBottom:
      AddSharedBottom(t, s);
      break;
    case ModelType::kMmoe:
      AddMmoe(t, s);
      break;
    case ModelType::kDin:
      AddDin(t, s);
      break;
    default:
      break;
  }
  return s;
}

}  // namespace strata::device
