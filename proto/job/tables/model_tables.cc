#include "proto/job/tables/model_tables.h"

#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/core/partition.h"
#include "proto/job/fields/field_plan.h"
#include "proto/job/fields/label_spec.h"
#include "proto/job/tables/dense_tensors.h"
#include "proto/job/tables/field_tables.h"
#include "proto/job/tables/hashed_tables.h"
#include "proto/job/tables/make_optimizer.h"

namespace strata {
namespace {

constexpr uint32_t kMaxFields = 1u << 20;
// Of mmoe and din: beyond it no block of examples has room in a worker.
constexpr uint64_t kMaxExampleFloats = 1u << 24;
// Of dlrm's interaction: half a million pairs an example.
constexpr uint32_t kMaxVectors = 1024;

absl::StatusOr<ModelType> ParseType(const std::string& type) {
  if (const ModelTypeInfo* const info = FindModelType(type)) return info->type;
  return absl::InvalidArgumentError(absl::StrCat(
      "spec.model.type is '", type,
      "'; it must be lr, fm, wide_deep, deepfm, dcn_v2, dlrm, shared_bottom, mmoe or din"));
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
  if (type == ModelType::kSharedBottom || type == ModelType::kMmoe) {
    out.tower_hidden.assign(model.tower_hidden().begin(), model.tower_hidden().end());
  }
  if (type == ModelType::kMmoe) {
    out.hidden.clear();
    out.experts = model.experts();
    out.expert_hidden.assign(model.expert_hidden().begin(), model.expert_hidden().end());
  }
  if (type == ModelType::kDin) {
    out.attention_hidden.assign(model.attention_hidden().begin(), model.attention_hidden().end());
  }
  return out;
}

// Of models that take tables of any widths: those of the fields, and the sequences.
absl::Status AddWidths(const JobSpec& spec, const std::vector<uint32_t>& field_tables,
                       ModelTables* out) {
  for (uint32_t f = 0; f < out->fields; ++f) {
    out->field_dims.push_back(field_tables.empty()
                                  ? out->tables[0].dim()
                                  : out->tables[TableNumber(field_tables[f])].dim());
  }
  auto sequences = SequencesOf(spec, out->fields);
  if (!sequences.ok()) return sequences.status();
  out->sequences = *std::move(sequences);
  uint64_t floats = out->example_width();
  for (const SequenceShape& s : out->sequences) {
    floats += uint64_t{s.max_length} * out->field_dims[s.field];
  }
  if (floats <= kMaxExampleFloats) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("spec.fields: an example has ", floats,
                   " floats of fields and sequences (maxLength times "
                   "dim); at most ",
                   kMaxExampleFloats, " are supported: shorten sequences or narrow tables"));
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
      InfoOf(*type).embedding ? EmbeddingDim(spec, *field_tables) : uint32_t{0};
  if (!dim.ok()) return dim.status();

  ModelTables out = ShapeOf(spec, *type, fields, numeric, *dim);
  out.tables = InOrder(*std::move(hashed), DenseTable(HoldsCentre(spec) ? SumsAlone() : *dense));
  if (out.several()) {
    for (const uint32_t index : *field_tables) out.field_tables.push_back(TableNumber(index));
  }
  if (out.any_width()) {
    if (absl::Status s = AddWidths(spec, *field_tables, &out); !s.ok()) return s;
  }
  if (absl::Status s = AddTensors(spec, &out); !s.ok()) return s;
  return out;
}

}  // namespace strata
