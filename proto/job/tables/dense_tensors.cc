#include "proto/job/tables/dense_tensors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/core/partition.h"
#include "proto/core/position.h"

namespace strata {
namespace {

// Salt of the hash that spreads tensors over partitions; recorded positions depend on it.
constexpr uint64_t kTensorSalt = 0x74656e736f727300ull;
// 16 TiB of weights in one tensor: beyond any machine, and far below the positions of a partition.
constexpr uint64_t kMaxTensorElements = 1ull << 42;

// Collects tensors in number order.
class TensorList {
 public:
  void Add(std::string name, uint64_t elements, InitializerSpec initializer = {}) {
    TensorSpec t;
    t.name = std::move(name);
    t.elements = elements;
    t.initializer = initializer;
    tensors_.push_back(std::move(t));
  }

  // name_weight (inputs, outputs) of a layer; `field` is what an error names.
  absl::Status AddWeight(const std::string& name, const std::string& field, uint64_t inputs,
                         uint64_t outputs) {
    if (outputs == 0 || inputs == 0 || outputs > kMaxTensorElements / inputs) {
      return absl::InvalidArgumentError(absl::StrCat(
          field, ": a layer of ", inputs, " inputs and ", outputs,
          " outputs; it must have at least 1 and at most ", kMaxTensorElements, " weights"));
    }
    const auto scale = static_cast<float>(std::sqrt(1.0 / static_cast<double>(inputs)));
    Add(name, inputs * outputs, {InitializerType::kUniform, scale});
    return absl::OkStatus();
  }

  absl::Status AddLayer(const std::string& name, const std::string& field, uint64_t inputs,
                        uint64_t outputs) {
    absl::Status s = AddWeight(absl::StrCat(name, "_weight"), field, inputs, outputs);
    if (s.ok()) Add(absl::StrCat(name, "_bias"), outputs);
    return s;
  }

  // A cross layer of `width`: name_weight, or, of low rank, name_v (width, rank) and name_u (rank,
  // width), which stand for it together.
  absl::Status AddCross(const std::string& name, uint64_t width, uint32_t rank) {
    constexpr char kField[] = "spec.model.crossRank";
    if (rank == 0) return AddLayer(name, kField, width, width);
    absl::Status s = AddWeight(absl::StrCat(name, "_v"), kField, width, rank);
    if (s.ok()) s = AddWeight(absl::StrCat(name, "_u"), kField, rank, width);
    if (s.ok()) Add(absl::StrCat(name, "_bias"), width);
    return s;
  }

  // Layers name_i of a perceptron from `inputs` through `widths`.
  absl::Status AddLayers(absl::string_view name, absl::string_view field, uint64_t inputs,
                         const std::vector<uint32_t>& widths) {
    for (size_t i = 0; i < widths.size(); ++i) {
      absl::Status s =
          AddLayer(absl::StrCat(name, "_", i), absl::StrCat(field, "[", i, "]"), inputs, widths[i]);
      if (!s.ok()) return s;
      inputs = widths[i];
    }
    return absl::OkStatus();
  }

  // Layers name_i through `hidden`, and `output`, which has a name of its own: a model with another
  // number of layers does not take it for one of them.
  absl::Status AddPerceptron(absl::string_view name, const std::string& output,
                             absl::string_view field, uint64_t inputs,
                             const std::vector<uint32_t>& hidden, uint64_t outputs) {
    if (absl::Status s = AddLayers(name, field, inputs, hidden); !s.ok()) return s;
    return AddLayer(output, std::string(field), hidden.empty() ? inputs : hidden.back(), outputs);
  }

  // Gives each tensor its rows: the partition by a hash of its number, behind the tensors of
  // smaller numbers that fell into the same partition. Fills the table, the order and the names.
  absl::Status Place(Partitioning partitioning, ModelTables& out) {
    std::map<uint32_t, uint64_t> used;  // rows, by partition
    for (size_t number = 0; number < tensors_.size(); ++number) {
      TensorSpec& t = tensors_[number];
      const PartitionId partition = partitioning.Of(Position(Mix64(kTensorSalt + number)));
      const uint64_t first = partitioning.First(partition).value;
      const uint64_t last = partitioning.Last(partition).value;
      uint64_t& offset = used[partition.value];
      const uint64_t rows = t.Rows(ModelTables::kDenseRowDim);
      if (rows - 1 > last - first - offset) {
        return absl::InvalidArgumentError(absl::StrCat(
            "tensor ", t.name, " of ", t.elements, " weights does not fit partition ",
            partition.value, "; use fewer spec.storage.partitions or a smaller spec.model.hidden"));
      }
      t.first = Position(first + offset);
      offset += rows;
      out.tensor_names.push_back(t.name);
    }
    std::vector<uint32_t> by_position(tensors_.size());
    std::iota(by_position.begin(), by_position.end(), 0u);
    std::sort(by_position.begin(), by_position.end(),
              [this](uint32_t a, uint32_t b) { return tensors_[a].first < tensors_[b].first; });
    out.tensor_order.resize(tensors_.size());
    for (uint32_t i = 0; i < by_position.size(); ++i) {
      out.tensor_order[by_position[i]] = i;
      out.tables[1].tensors.push_back(std::move(tensors_[by_position[i]]));
    }
    return absl::OkStatus();
  }

 private:
  std::vector<TensorSpec> tensors_;
};

constexpr char kHidden[] = "spec.model.hidden";

absl::Status AddDcnV2(const ModelTables& m, TensorList& tensors) {
  const uint64_t width = m.example_width();
  for (uint32_t l = 0; l < m.cross_layers; ++l) {
    if (absl::Status s = tensors.AddCross(absl::StrCat("cross_", l), width, m.cross_rank);
        !s.ok()) {
      return s;
    }
  }
  if (absl::Status s = tensors.AddLayers("layer", kHidden, width, m.hidden); !s.ok()) return s;
  return tensors.AddLayer("output", kHidden, width + m.hidden.back(), m.task_count());
}

// The layers of spec.model.hidden, and the one that gives a sum for each task.
absl::Status AddHiddenAndOutput(const ModelTables& m, uint64_t inputs, TensorList& tensors) {
  return tensors.AddPerceptron("layer", "output", kHidden, inputs, m.hidden, m.task_count());
}

absl::Status AddDlrm(const ModelTables& m, TensorList& tensors) {
  uint64_t inputs = m.interaction_pairs();
  if (m.numeric > 0) {
    absl::Status s = tensors.AddPerceptron("bottom", "bottom_output", "spec.model.bottomHidden",
                                           m.numeric, m.bottom_hidden, m.embedding_dim);
    if (!s.ok()) return s;
    inputs += m.embedding_dim;
  }
  return AddHiddenAndOutput(m, inputs, tensors);
}

// Of each task, over `inputs`.
absl::Status AddTowers(const ModelTables& m, uint64_t inputs, TensorList& tensors) {
  for (uint32_t t = 0; t < m.task_count(); ++t) {
    const std::string name = absl::StrCat("tower_", t);
    absl::Status s = tensors.AddPerceptron(name, absl::StrCat(name, "_output"),
                                           "spec.model.towerHidden", inputs, m.tower_hidden, 1);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status AddSharedBottom(const ModelTables& m, TensorList& tensors) {
  if (absl::Status s = tensors.AddLayers("layer", kHidden, m.example_width(), m.hidden); !s.ok()) {
    return s;
  }
  return AddTowers(m, m.hidden.back(), tensors);
}

absl::Status AddMmoe(const ModelTables& m, TensorList& tensors) {
  for (uint32_t e = 0; e < m.experts; ++e) {
    absl::Status s = tensors.AddLayers(absl::StrCat("expert_", e), "spec.model.expertHidden",
                                       m.example_width(), m.expert_hidden);
    if (!s.ok()) return s;
  }
  for (uint32_t t = 0; t < m.task_count(); ++t) {
    absl::Status s = tensors.AddLayer(absl::StrCat("gate_", t), "spec.model.experts",
                                      m.example_width(), m.experts);
    if (!s.ok()) return s;
  }
  return AddTowers(m, m.expert_hidden.back(), tensors);
}

absl::Status AddDin(const ModelTables& m, TensorList& tensors) {
  for (const SequenceShape& s : m.sequences) {
    const std::string name = absl::StrCat("attention_", s.name);
    absl::Status status =
        tensors.AddPerceptron(name, absl::StrCat(name, "_output"), "spec.model.attentionHidden",
                              uint64_t{4} * m.field_dims[s.field], m.attention_hidden, 1);
    if (!status.ok()) return status;
  }
  return AddHiddenAndOutput(m, m.example_width(), tensors);
}

// Weights of the second order's elements by task, less one: they begin as ones.
void AddInteractionWeight(const ModelTables& m, TensorList& tensors) {
  if (m.task_count() == 1) return;
  tensors.Add("interaction_weight", uint64_t{m.embedding_dim} * m.task_count());
}

// The tensors of table 1, in number order.
absl::Status ListTensors(const ModelTables& m, float init_scale, TensorList& tensors) {
  if (m.type == ModelType::kDcnV2) return AddDcnV2(m, tensors);
  if (m.type == ModelType::kDlrm) return AddDlrm(m, tensors);
  if (m.type == ModelType::kSharedBottom) return AddSharedBottom(m, tensors);
  if (m.type == ModelType::kMmoe) return AddMmoe(m, tensors);
  if (m.type == ModelType::kDin) return AddDin(m, tensors);
  tensors.Add("bias", m.task_count());
  if (m.numeric > 0) tensors.Add("numeric_weight", uint64_t{m.numeric} * m.task_count());
  if (m.type == ModelType::kFm && m.numeric > 0) {
    tensors.Add("numeric_embedding", uint64_t{m.numeric} * m.embedding_dim,
                {InitializerType::kNormal, init_scale});
  }
  if (m.type == ModelType::kFm) AddInteractionWeight(m, tensors);
  if (m.type != ModelType::kDeepFm && m.type != ModelType::kWideDeep) return absl::OkStatus();
  absl::Status s = AddHiddenAndOutput(m, m.example_width(), tensors);
  if (s.ok() && m.type == ModelType::kDeepFm) AddInteractionWeight(m, tensors);
  return s;
}

}  // namespace

absl::Status AddTensors(const JobSpec& spec, ModelTables* tables) {
  TensorList tensors;
  absl::Status s = ListTensors(*tables, spec.model().init_scale(), tensors);
  return s.ok() ? tensors.Place(Partitioning(spec.storage().partitions()), *tables) : s;
}

}  // namespace strata
