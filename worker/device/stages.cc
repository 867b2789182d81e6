#include "worker/device/stages.h"

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

}  // namespace

bool HasStages(ModelType type) {
  switch (type) {
    case ModelType::kLr:
    case ModelType::kFm:
    case ModelType::kWideDeep:
    case ModelType::kDeepFm:
    case ModelType::kDcnV2:
    case ModelType::kDlrm:
    case ModelType::kSharedBottom:
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
    default:
      break;
  }
  return s;
}

}  // namespace strata::device
