#include "proto/job/tables/tables_spec.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "proto/job/checks/spec_checks.h"
#include "proto/job/model/model_spec.h"
#include "proto/job/model/model_types.h"
#include "proto/job/tables/field_tables.h"
#include "proto/job/tables/hashed_tables.h"
#include "proto/job/tables/life_cycle_spec.h"
#include "proto/job/tables/optimizer_spec.h"

namespace strata::spec {
namespace {

// Each costs every shard an empty table.
constexpr int kMaxTables = 1024;

absl::Status CheckName(const std::string& field, const std::string& name) {
  if (name.empty()) return Bad(field, "is missing; name the table");
  if (name.size() > 63) {
    return Bad(field, absl::StrCat("has ", name.size(), " characters; at most 63 are allowed"));
  }
  if (name == "dense") {
    return Bad(field, "'dense' is the table of the dense tensors; take another name");
  }
  const bool legal = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_';
  });
  if (legal && name[0] != '-') return absl::OkStatus();
  return Bad(field, absl::StrCat("'", name,
                                 "' may hold letters, digits, '-' and '_' only, and not begin "
                                 "with '-'"));
}

absl::Status ResolveShape(const std::string& at, const JobSpec& job, TableConfig& t) {
  if (job.model().type() == "lr") {
    if (!t.has_dim() && !t.has_init_scale()) return absl::OkStatus();
    if (t.dim() == job.model().embedding_dim() && t.init_scale() == job.model().init_scale()) {
      return absl::OkStatus();
    }
    return Bad(at + (t.has_dim() ? ".dim" : ".initScale"),
               "is for embeddings, and spec.model.type is lr, which has none; remove it");
  }
  if (!t.has_dim()) t.set_dim(job.model().embedding_dim());
  STRATA_RETURN_IF_BAD(CheckRange(at + ".dim", t.dim(), 1, 4096));
  if (!t.has_init_scale()) t.set_init_scale(job.model().init_scale());
  return CheckReal(at + ".initScale", t.init_scale(), 0.0f, Low::kNotAllowed, 100.0f);
}

absl::Status ResolveLife(const std::string& at, const JobSpec& job, TableConfig& t) {
  if (!t.has_life_cycle()) {
    if (job.has_life_cycle()) *t.mutable_life_cycle() = job.life_cycle();
    return absl::OkStatus();
  }
  const absl::Status s = ResolveLifeCycle(job.training(), job.storage(), *t.mutable_life_cycle());
  if (s.ok()) return s;
  const std::string text(s.message());
  return absl::Status(
      s.code(), absl::StrReplaceAll(text, {{"spec.lifeCycle", absl::StrCat(at, ".lifeCycle")}}));
}

absl::Status ResolveTable(const std::string& at, const JobSpec& job, TableConfig& t) {
  STRATA_RETURN_IF_BAD(ResolveShape(at, job, t));
  STRATA_RETURN_IF_BAD(ResolveTableOptimizers(at, job.model(), job.optimizer(), t));
  STRATA_RETURN_IF_BAD(ResolveLife(at, job, t));
  if (t.has_dram_share()) {
    STRATA_RETURN_IF_BAD(CheckRange(at + ".dramShare", t.dram_share(), 1, kMaxDramShare));
  }
  if (t.pull_codec().empty()) t.set_pull_codec(job.training().pull_codec());
  return CheckChoice(at + ".pullCodec", t.pull_codec(), {"float32", "bf16", "int8"});
}

}  // namespace

absl::Status CheckTableNames(const JobSpec& job) {
  if (job.tables_size() > kMaxTables) {
    return Bad("spec.tables", absl::StrCat("has ", job.tables_size(), " tables; at most ",
                                           kMaxTables, " are supported"));
  }
  std::set<std::string> names;
  for (int i = 0; i < job.tables_size(); ++i) {
    const std::string at = absl::StrCat("spec.tables[", i, "].name");
    const std::string& name = job.tables(i).name();
    STRATA_RETURN_IF_BAD(CheckName(at, name));
    if (names.insert(name).second) continue;
    return Bad(at, absl::StrCat("'", name, "' names an earlier table too"));
  }
  return absl::OkStatus();
}

namespace {

// What tables say of their own hides the model's.
absl::Status CheckEmbeddingDim(const JobSpec& job) {
  const uint32_t dim = job.model().embedding_dim();
  if (job.tables().empty() || job.model().type() == "lr" || dim == kDefaultEmbeddingDim) {
    return absl::OkStatus();
  }
  for (const TableConfig& t : job.tables()) {
    if (t.dim() == dim) return absl::OkStatus();
  }
  return Bad("spec.model.embeddingDim",
             absl::StrCat(dim,
                          " is the width of no table, as each of spec.tables says its own "
                          "dim; remove it"));
}

}  // namespace

absl::Status ResolveTables(JobSpec& job) {
  for (int i = 0; i < job.tables_size(); ++i) {
    const std::string at = absl::StrCat("spec.tables[", i, "]");
    STRATA_RETURN_IF_BAD(ResolveTable(at, job, *job.mutable_tables(i)));
  }
  STRATA_RETURN_IF_BAD(CheckEmbeddingDim(job));
  const auto fields = NamesOfFields(job);
  if (!fields.has_value()) return absl::OkStatus();
  const auto tables = FieldTables(job, static_cast<uint32_t>(fields->size()));
  if (!tables.ok() || !InfoOf(job.model().type()).embedding) return tables.status();
  return EmbeddingDim(job, *tables).status();
}

}  // namespace strata::spec
