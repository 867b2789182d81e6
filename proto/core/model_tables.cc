#include "proto/core/model_tables.h"

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

namespace strata {
namespace {

// Salt of the hash that spreads tensors over partitions; recorded positions depend on it.
constexpr uint64_t kTensorSalt = 0x74656e736f727300ull;
// 16 TiB of weights in one tensor: beyond any machine, and far below the positions of a partition.
constexpr uint64_t kMaxTensorElements = 1ull << 42;
constexpr uint32_t kMaxFields = 1u << 20;

absl::StatusOr<OptimizerSpec> MakeOptimizer(absl::string_view field, const OptimizerConfig& in) {
  OptimizerSpec out;
  if (in.type() == "sgd") {
    out.type = OptimizerType::kSgd;
  } else if (in.type() == "adagrad") {
    out.type = OptimizerType::kAdagrad;
  } else if (in.type() == "adam") {
    out.type = OptimizerType::kAdam;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ".type is '", in.type(), "'; it must be sgd, adagrad or adam"));
  }
  out.learning_rate = in.learning_rate();
  out.epsilon = in.epsilon();
  out.initial_accumulator = in.initial_accumulator();
  out.beta1 = in.beta1();
  out.beta2 = in.beta2();
  return out;
}

absl::StatusOr<ModelType> ParseType(const std::string& type) {
  if (type == "lr") return ModelType::kLr;
  if (type == "fm") return ModelType::kFm;
  if (type == "deepfm") return ModelType::kDeepFm;
  return absl::InvalidArgumentError(
      absl::StrCat("spec.model.type is '", type, "'; it must be lr, fm or deepfm"));
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

  // Layers of the perceptron: hidden.., then the output of width 1.
  absl::Status AddLayers(uint64_t inputs, const std::vector<uint32_t>& hidden) {
    for (size_t i = 0; i <= hidden.size(); ++i) {
      const uint64_t width = i == hidden.size() ? 1 : hidden[i];
      if (width == 0 || inputs == 0 || width > kMaxTensorElements / inputs) {
        return absl::InvalidArgumentError(absl::StrCat(
            "spec.model.hidden[", i, "]: a layer of ", inputs, " inputs and ", width,
            " outputs; it must have at least 1 and at most ", kMaxTensorElements, " weights"));
      }
      const auto scale = static_cast<float>(std::sqrt(1.0 / static_cast<double>(inputs)));
      Add(absl::StrCat("layer_", i, "_weight"), inputs * width, {InitializerType::kUniform, scale});
      Add(absl::StrCat("layer_", i, "_bias"), width);
      inputs = width;
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

TableSpec FeatureTable(const ModelTables& m, float init_scale, const OptimizerSpec& optimizer) {
  TableSpec table;
  table.id = TableId(0);
  table.name = "features";
  table.kind = TableKind::kHashed;
  if (m.type != ModelType::kLr) {
    table.segments.push_back(
        {"embedding", m.embedding_dim, {InitializerType::kNormal, init_scale}, optimizer});
  }
  table.segments.push_back({"weight", 1, {}, optimizer});
  return table;
}

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
  const uint32_t dim = spec.model().embedding_dim();
  if (dim == 0 || dim > 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec.model.embeddingDim is ", dim, "; it must be 1 to 4096"));
  }
  if (type == ModelType::kDeepFm && fields == 0 && numeric == 0) {
    return absl::InvalidArgumentError("spec.model.type deepfm needs data with at least one field");
  }
  return absl::OkStatus();
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
  const auto sparse = MakeOptimizer("spec.optimizer.sparse", spec.optimizer().sparse());
  if (!sparse.ok()) return sparse.status();
  const auto dense = MakeOptimizer("spec.optimizer.dense", spec.optimizer().dense());
  if (!dense.ok()) return dense.status();

  ModelTables out;
  out.type = *type;
  out.fields = fields;
  out.numeric = numeric;
  if (*type != ModelType::kLr) out.embedding_dim = spec.model().embedding_dim();
  if (*type == ModelType::kDeepFm) {
    out.hidden.assign(spec.model().hidden().begin(), spec.model().hidden().end());
  }
  const float init_scale = spec.model().init_scale();
  out.tables = {FeatureTable(out, init_scale, *sparse), DenseTable(*dense)};

  TensorList tensors;
  tensors.Add("bias", 1);
  if (numeric > 0) tensors.Add("numeric_weight", numeric);
  if (*type == ModelType::kFm && numeric > 0) {
    tensors.Add("numeric_embedding", static_cast<uint64_t>(numeric) * out.embedding_dim,
                {InitializerType::kNormal, init_scale});
  }
  if (*type == ModelType::kDeepFm) {
    const uint64_t inputs = static_cast<uint64_t>(fields) * out.embedding_dim + numeric;
    if (absl::Status s = tensors.AddLayers(inputs, out.hidden); !s.ok()) return s;
  }
  if (absl::Status s = tensors.Place(Partitioning(spec.storage().partitions()), out); !s.ok()) {
    return s;
  }
  return out;
}

}  // namespace strata
