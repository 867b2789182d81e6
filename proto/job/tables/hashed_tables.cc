#include "proto/job/tables/hashed_tables.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/core/ids.h"
#include "proto/job/model/model_types.h"
#include "proto/job/tables/field_tables.h"
#include "proto/job/tables/life_cycle_spec.h"
#include "proto/job/tables/make_optimizer.h"

namespace strata {
namespace {

struct TableOptimizers {
  OptimizerSpec sparse;
  OptimizerSpec linear;
};

TableSpec HashedTable(const JobSpec& spec, uint32_t number, const std::string& name, uint32_t dim,
                      float init_scale, const TableOptimizers& optimizers) {
  TableSpec table;
  table.id = TableId(number);
  table.name = name;
  table.kind = TableKind::kHashed;
  if (InfoOf(spec.model().type()).embedding) {
    table.segments.push_back(
        {"embedding", dim, {InitializerType::kNormal, init_scale}, optimizers.sparse});
  }
  if (InfoOf(spec.model().type()).weight) {
    const auto tasks = static_cast<uint32_t>(std::max(1, spec.labels_size()));
    table.segments.push_back({"weight", tasks, {}, optimizers.linear});
  }
  return table;
}

absl::StatusOr<TableOptimizers> OptimizersAt(const JobSpec& spec, const std::string& sparse_field,
                                             const OptimizerConfig& sparse,
                                             const std::string& linear_field,
                                             const OptimizerConfig* linear) {
  auto embedding = MakeOptimizer(sparse_field, sparse);
  if (!embedding.ok()) return embedding.status();
  auto weight = linear == nullptr ? embedding : MakeOptimizer(linear_field, *linear);
  if (!weight.ok()) return weight.status();
  if (HoldsCentre(spec)) return TableOptimizers{SumsAlone(), SumsAlone()};
  return TableOptimizers{*embedding, *weight};
}

absl::StatusOr<TableSpec> TableAt(const JobSpec& spec, int index) {
  const TableConfig& t = spec.tables(index);
  const std::string at = absl::StrCat("spec.tables[", index, "]");
  if (InfoOf(spec.model().type()).embedding && (t.dim() == 0 || t.dim() > 4096)) {
    return absl::InvalidArgumentError(
        absl::StrCat(at, ".dim is ", t.dim(), "; it must be 1 to 4096"));
  }
  const uint32_t share = t.has_dram_share() ? t.dram_share() : 1;
  if (share == 0 || share > kMaxDramShare) {
    return absl::InvalidArgumentError(
        absl::StrCat(at, ".dramShare is ", share, "; it must be 1 to ", kMaxDramShare));
  }
  const auto optimizers = OptimizersAt(spec, at + ".optimizer", t.optimizer(), at + ".linear",
                                       t.has_linear() ? &t.linear() : nullptr);
  if (!optimizers.ok()) return optimizers.status();
  TableSpec table = HashedTable(spec, TableNumber(static_cast<uint32_t>(index)), t.name(), t.dim(),
                                t.init_scale(), *optimizers);
  table.dram_share = share;
  auto life_cycle = spec::MakeLifeCycleRules(t.life_cycle(), spec.storage().partitions());
  if (!life_cycle.ok()) return life_cycle.status();
  table.life_cycle = *life_cycle;
  return table;
}

absl::StatusOr<TableSpec> FeatureTable(const JobSpec& spec) {
  const OptimizersSpec& given = spec.optimizer();
  const auto optimizers =
      OptimizersAt(spec, "spec.optimizer.sparse", given.sparse(), "spec.optimizer.linear",
                   given.has_linear() ? &given.linear() : nullptr);
  if (!optimizers.ok()) return optimizers.status();
  TableSpec table = HashedTable(spec, 0, "features", spec.model().embedding_dim(),
                                spec.model().init_scale(), *optimizers);
  auto life_cycle = spec::MakeLifeCycleRules(spec.life_cycle(), spec.storage().partitions());
  if (!life_cycle.ok()) return life_cycle.status();
  table.life_cycle = *life_cycle;
  return table;
}

// "item (dim 16: fields 0, 3), user (dim 8: field 1)"
std::string WidthsText(const JobSpec& spec, const std::vector<uint32_t>& field_tables) {
  constexpr size_t kMostNamed = 8;  // fields of a table
  const auto fields = NamesOfFields(spec);
  std::string text;
  for (uint32_t t = 0; t < static_cast<uint32_t>(spec.tables_size()); ++t) {
    std::vector<std::string> names;
    for (uint32_t f = 0; f < field_tables.size(); ++f) {
      if (field_tables[f] == t) names.push_back(fields ? (*fields)[f] : absl::StrCat(f));
    }
    const bool more = names.size() > kMostNamed;
    if (more) names.resize(kMostNamed);
    absl::StrAppend(&text, t == 0 ? "" : ", ", spec.tables(t).name(), " (dim ",
                    spec.tables(t).dim(), ": fields ", absl::StrJoin(names, ", "),
                    more ? "..." : "", ")");
  }
  return text;
}

}  // namespace

bool HoldsCentre(const JobSpec& spec) { return spec.training().mode() == "easgd"; }

OptimizerSpec SumsAlone() {
  OptimizerSpec add;
  add.type = OptimizerType::kAdd;
  return add;
}

absl::StatusOr<std::vector<TableSpec>> MakeHashedTables(const JobSpec& spec) {
  std::vector<TableSpec> tables;
  for (int i = 0; i < std::max(1, spec.tables_size()); ++i) {
    auto table = spec.tables().empty() ? FeatureTable(spec) : TableAt(spec, i);
    if (!table.ok()) return table.status();
    tables.push_back(*std::move(table));
  }
  return tables;
}

absl::StatusOr<uint32_t> EmbeddingDim(const JobSpec& spec,
                                      const std::vector<uint32_t>& field_tables) {
  if (InfoOf(spec.model().type()).any_width) return uint32_t{0};
  if (spec.tables().empty()) return spec.model().embedding_dim();
  for (const TableConfig& t : spec.tables()) {
    if (t.dim() == spec.tables(0).dim()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("spec.model.type ", spec.model().type(),
                     " takes embeddings of one width, and the tables of its fields have several: ",
                     WidthsText(spec, field_tables), "; give them one dim"));
  }
  return spec.tables(0).dim();
}

}  // namespace strata
