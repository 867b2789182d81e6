#include "proto/job/model_tables.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/core/position.h"
#include "proto/job/field_plan.h"
#include "proto/job/field_tables.h"
#include "proto/job/hashed_tables.h"
#include "proto/job/label_spec.h"
#include "proto/job/make_optimizer.h"

namespace strata {
namespace {

// Salt of the hash that spreads tensors over partitions; recorded positions depend on it.
constexpr uint64_t kTensorSalt = 0x74656e736f727300ull;
// 16 TiB of weights in one tensor: beyond any machine, and far below the positions of a partition.
constexpr uint64_t kMaxTensorElements = 1ull << 42;
constexpr uint32_t kMaxFields = 1u << 20;
// Of dlrm's interaction: half a million pairs an example.
constexpr uint32_t kMaxVectors = 1024;

absl::StatusOr<ModelType> ParseType(const std::string& type) {
  if (type == "lr") return ModelType::kLr;
  if (type == "fm") return ModelType::kFm;
  if (type == "wide_deep") return ModelType::kWideDeep;
  if (type == "deepfm") return ModelType::kDeepFm;
  if (type == "dcn_v2") return ModelType::kDcnV2;
  if (type == "dlrm") return ModelType::kDlrm;
  if (type == "shared_bottom") return ModelType::kSharedBottom;
  return absl::InvalidArgumentError(
      absl::StrCat("spec.model.type is '", type,
                   "'; it must be lr, fm, wide_deep, deepfm, dcn_v2, dlrm or shared_bottom"));
}

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

TableSpec DenseTable(const OptimizerSpec& optimizer) {
  TableSpec table;
  table.id = TableId(1);
  table.name = "dense";
  table.kind = TableKind::kDense;
  table.segments.push_back({"dense", ModelTables::kDenseRowDim, {}, optimizer});
  return table;
}

absl::Status CheckShape(const JobSpec& spec, ModelType type, uint32_t fields, uint32_t numeric) {
  if (fields > kMaxFields || numeric > kMaxFields) {
    return absl::InvalidArgumentError(absl::StrCat("the data have ", fields, " fields and ",
                                                   numeric, " numbers an example; at most ",
                                                   kMaxFields, " of each are supported"));
  }
  if (type == ModelType::kLr) return absl::OkStatus();
  const uint32_t dim = spec.tables().empty() ? spec.model().embedding_dim() : spec.tables(0).dim();
  if (dim == 0 || dim > 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec.model.embeddingDim is ", dim, "; it must be 1 to 4096"));
  }
  if (type != ModelType::kFm && fields == 0 && numeric == 0) {
    return absl::InvalidArgumentError(absl::StrCat("spec.model.type ", spec.model().type(),
                                                   " needs data with at least one field"));
  }
  if ((type == ModelType::kDcnV2 || type == ModelType::kSharedBottom) &&
      spec.model().hidden().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec.model.hidden: ", spec.model().type(), " needs at least one layer"));
  }
  if (type == ModelType::kDlrm && numeric == 0 && fields < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec.model.type dlrm needs data with numbers or with at least two fields; "
                     "these have ",
                     fields, " and no numbers"));
  }
  if (type == ModelType::kDlrm && fields + (numeric > 0 ? 1 : 0) > kMaxVectors) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec.model.type dlrm takes every pair of fields; these data have ", fields,
                     ", and at most ", kMaxVectors - 1, " are supported"));
  }
  return absl::OkStatus();
}

// Takes from the job what shapes the model.
ModelTables ShapeOf(const JobSpec& spec, ModelType type, uint32_t fields, uint32_t numeric,
                    uint32_t dim) {
  const ModelSpec& model = spec.model();
  ModelTables out;
  out.tasks = TasksOf(spec);
  out.labelled = !spec.labels().empty();
  out.weighted = !spec.sample_weight().empty();
  out.type = type;
  out.fields = fields;
  out.numeric = numeric;
  out.max_pooled = PlanFields(spec, fields).MaxPooled();
  if (type != ModelType::kLr) out.embedding_dim = dim;
  if (type != ModelType::kLr && type != ModelType::kFm) {
    out.hidden.assign(model.hidden().begin(), model.hidden().end());
  }
  if (type == ModelType::kDlrm && numeric > 0) {
    out.bottom_hidden.assign(model.bottom_hidden().begin(), model.bottom_hidden().end());
  }
  if (type == ModelType::kDcnV2) {
    out.cross_layers = model.cross_layers();
    out.cross_rank = model.cross_rank();
  }
  if (type == ModelType::kSharedBottom) {
    out.tower_hidden.assign(model.tower_hidden().begin(), model.tower_hidden().end());
  }
  return out;
}

constexpr char kHidden[] = "spec.model.hidden";

absl::Status AddDcnV2(const ModelTables& m, TensorList& tensors) {
  const uint64_t width = m.example_width();
  for (uint32_t l = 0; l < m.cross_layers; ++l) {
    const std::string name = absl::StrCat("cross_", l);
    uint64_t inputs = width;
    if (m.cross_rank > 0) {
      inputs = m.cross_rank;
      absl::Status s =
          tensors.AddWeight(absl::StrCat(name, "_v"), "spec.model.crossRank", width, inputs);
      if (!s.ok()) return s;
    }
    absl::Status s = tensors.AddLayer(name, "spec.model.crossRank", inputs, width);
    if (!s.ok()) return s;
  }
  if (absl::Status s = tensors.AddLayers("layer", kHidden, width, m.hidden); !s.ok()) return s;
  return tensors.AddLayer("output", kHidden, width + m.hidden.back(), m.task_count());
}

absl::Status AddDlrm(const ModelTables& m, TensorList& tensors) {
  uint64_t inputs = m.interaction_pairs();
  if (m.numeric > 0) {
    std::vector<uint32_t> bottom = m.bottom_hidden;
    bottom.push_back(m.embedding_dim);
    absl::Status s = tensors.AddLayers("bottom", "spec.model.bottomHidden", m.numeric, bottom);
    if (!s.ok()) return s;
    inputs += m.embedding_dim;
  }
  std::vector<uint32_t> top = m.hidden;
  top.push_back(m.task_count());
  return tensors.AddLayers("layer", kHidden, inputs, top);
}

absl::Status AddSharedBottom(const ModelTables& m, TensorList& tensors) {
  if (absl::Status s = tensors.AddLayers("layer", kHidden, m.example_width(), m.hidden); !s.ok()) {
    return s;
  }
  std::vector<uint32_t> tower = m.tower_hidden;
  tower.push_back(1);
  for (uint32_t t = 0; t < m.task_count(); ++t) {
    absl::Status s = tensors.AddLayers(absl::StrCat("tower_", t), "spec.model.towerHidden",
                                       m.hidden.back(), tower);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

// Weights of the second order's elements by task, less one: they begin as ones.
void AddInteractionWeight(const ModelTables& m, TensorList& tensors) {
  if (m.task_count() == 1) return;
  tensors.Add("interaction_weight", uint64_t{m.embedding_dim} * m.task_count());
}

// The tensors of table 1, in number order.
absl::Status AddTensors(const ModelTables& m, float init_scale, TensorList& tensors) {
  if (m.type == ModelType::kDcnV2) return AddDcnV2(m, tensors);
  if (m.type == ModelType::kDlrm) return AddDlrm(m, tensors);
  if (m.type == ModelType::kSharedBottom) return AddSharedBottom(m, tensors);
  tensors.Add("bias", m.task_count());
  if (m.numeric > 0) tensors.Add("numeric_weight", uint64_t{m.numeric} * m.task_count());
  if (m.type == ModelType::kFm && m.numeric > 0) {
    tensors.Add("numeric_embedding", uint64_t{m.numeric} * m.embedding_dim,
                {InitializerType::kNormal, init_scale});
  }
  if (m.type == ModelType::kFm) AddInteractionWeight(m, tensors);
  if (m.type != ModelType::kDeepFm && m.type != ModelType::kWideDeep) return absl::OkStatus();
  std::vector<uint32_t> widths = m.hidden;
  widths.push_back(m.task_count());
  absl::Status s = tensors.AddLayers("layer", kHidden, m.example_width(), widths);
  if (s.ok() && m.type == ModelType::kDeepFm) AddInteractionWeight(m, tensors);
  return s;
}

// Numbers the hashed tables, with the dense one between them.
std::vector<TableSpec> InOrder(std::vector<TableSpec> hashed, TableSpec dense) {
  std::vector<TableSpec> tables;
  tables.push_back(std::move(hashed[0]));
  tables.push_back(std::move(dense));
  for (size_t i = 1; i < hashed.size(); ++i) tables.push_back(std::move(hashed[i]));
  return tables;
}

}  // namespace

absl::StatusOr<ModelTables> MakeModelTables(const JobSpec& spec, uint32_t fields,
                                            uint32_t numeric) {
  const absl::StatusOr<ModelType> type = ParseType(spec.model().type());
  if (!type.ok()) return type.status();
  if (absl::Status s = CheckShape(spec, *type, fields, numeric); !s.ok()) return s;
  if (!Partitioning::IsValid(spec.storage().partitions())) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec.storage.partitions is ", spec.storage().partitions(),
                     "; it must be a power of two, 1 to ", Partitioning::kMaxPartitions));
  }
  auto hashed = MakeHashedTables(spec);
  if (!hashed.ok()) return hashed.status();
  const auto dense = MakeOptimizer("spec.optimizer.dense", spec.optimizer().dense());
  if (!dense.ok()) return dense.status();
  const auto field_tables = FieldTables(spec, fields);
  if (!field_tables.ok()) return field_tables.status();
  const absl::StatusOr<uint32_t> dim =
      *type == ModelType::kLr ? uint32_t{0} : EmbeddingDim(spec, *field_tables);
  if (!dim.ok()) return dim.status();

  ModelTables out = ShapeOf(spec, *type, fields, numeric, *dim);
  out.tables = InOrder(*std::move(hashed), DenseTable(HoldsCentre(spec) ? SumsAlone() : *dense));
  if (out.several()) {
    for (const uint32_t index : *field_tables) out.field_tables.push_back(TableNumber(index));
  }
  TensorList tensors;
  if (absl::Status s = AddTensors(out, spec.model().init_scale(), tensors); !s.ok()) return s;
  if (absl::Status s = tensors.Place(Partitioning(spec.storage().partitions()), out); !s.ok()) {
    return s;
  }
  return out;
}

}  // namespace strata
