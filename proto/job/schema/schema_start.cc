#include "proto/job/schema/schema_start.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/job/checks/shown.h"
#include "proto/job/schema/schema_renaming.h"

namespace strata {
namespace {

constexpr size_t kMostLines = 20;  // of a refusal

absl::Status Refusal(std::vector<std::string> lines) {
  if (lines.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(FirstLines(std::move(lines)));
}

bool Allowed(const std::string& option) { return option == "allow"; }

constexpr char kNew[] = "allow it with spec.model.initFrom.newTensors: allow";
constexpr char kDropped[] = "allow it with spec.model.initFrom.droppedTensors: allow";

using Renames = std::map<std::string, std::string>;

// What init.rename may leave behind so that a field of the job begins anew.
class Behind {
 public:
  Behind(const SchemaMapping& mapping, const Schema& saved, const Schema& now,
         const Renames& rename) {
    const Renaming fields(now.fields(), rename);
    std::set<absl::string_view> loaded;
    for (const auto& [from, to] : mapping.tables) loaded.insert(saved.tables(from).name());
    for (const SchemaField& f : saved.fields()) {
      // A field that has the same keys in a table that stays is found again.
      const std::string table =
          loaded.contains(f.table()) ? absl::StrCat(", ", f.table(), ": \"\"") : "";
      renames_.emplace(fields.Now(f.name()), absl::StrCat("{", f.name(), ": \"\"", table, "}"));
    }
  }
  // As a rename has it: "{tags: \"\", features: \"\"}".
  const std::string& Of(const std::string& field) const { return renames_.at(field); }

 private:
  Renames renames_;  // by what the field is called in the job
};

// The same of what means something else.
std::string MeaningRemedy(const SchemaEntry& e, const Behind& behind, bool may_begin) {
  const std::string column = e.column.empty()
                                 ? ""
                                 : absl::StrCat(
                                       "if that column is only called otherwise now, say so with "
                                       "spec.model.initFrom.rename: {",
                                       e.column, "}; else ");
  if (e.part == SchemaPart::kTable) {
    return absl::StrCat("call the job's table ", e.table,
                        " too, or leave its rows behind with spec.model.initFrom.rename: {",
                        e.table, ": \"\"}");
  }
  if (!e.rows_of.empty()) {
    return absl::StrCat(
        "give it a hashSeed of its own or another table, or leave that table behind with "
        "spec.model.initFrom.rename: {",
        e.table, ": \"\"}");
  }
  // Rows of another model, or of another task, are a beginning.
  if (e.part != SchemaPart::kField) return may_begin ? "" : absl::StrCat(column, kNew);
  if (!column.empty()) return absl::StrCat(column, "give the field another name, or that column");
  if (e.table.empty()) {
    return absl::StrCat(
        "set what the checkpoint has, or let the field begin anew with "
        "spec.model.initFrom.rename: ",
        behind.Of(e.name));
  }
  return absl::StrCat(
      "set what the checkpoint has, or leave its table behind with spec.model.initFrom.rename: {",
      e.table, ": \"\"}");
}

// What allows an entry that is not loaded as it is; empty: it is allowed.
std::string Remedy(const SchemaEntry& e, const Behind& behind, const InitFromSpec& init) {
  const bool may_begin = Allowed(init.new_tensors()), may_go = Allowed(init.dropped_tensors());
  switch (e.change) {
    case SchemaChange::kLoaded:
    case SchemaChange::kRenamed:
    case SchemaChange::kOldScore:
    case SchemaChange::kOtherSettings:
    case SchemaChange::kNewRows:     // what allows that is asked of the table,
    case SchemaChange::kNewOutputs:  // or of the tensors,
    case SchemaChange::kByLabels:    // or of the labels
    case SchemaChange::kOtherOrder:  // rows, and what goes by labels, go by names
      return "";
    case SchemaChange::kNewScore:
      return "leave that rule out, or begin without the checkpoint: rows that begin at score 0 are "
             "removed before they have been seen";
    case SchemaChange::kNew:
    case SchemaChange::kMovedRows:
      return may_begin ? "" : kNew;
    case SchemaChange::kDropped:
      return may_go ? "" : kDropped;
    case SchemaChange::kOtherFields:
    case SchemaChange::kOtherShape:
      if (may_begin && may_go) return "";
      return "let it begin anew with spec.model.initFrom.newTensors: allow and droppedTensors: "
             "allow";
    case SchemaChange::kOtherOptimizer:
      if (init.optimizer_state() == "reset") return "";
      return "set that optimizer, or spec.model.initFrom.optimizerState: reset";
    case SchemaChange::kChangedMeaning:
      return MeaningRemedy(e, behind, may_begin);
  }
  return "";
}

// INVALID_ARGUMENT: a rename gives a part the name that another one of its kind has then. Adds the
// names that it saw to `names`.
template <typename List, typename Names>
absl::Status CheckNames(SchemaPart part, const List& saved, const Names& renaming,
                        std::set<std::string>& names) {
  std::map<std::string, std::string> called;  // now -> in the checkpoint
  for (const auto& s : saved) {
    names.insert(s.name());
    const std::string& now = renaming.Now(s.name());
    if (now.empty()) continue;
    const auto [other, fresh] = called.emplace(now, s.name());
    if (fresh || (other->second == now && now == s.name())) continue;
    const std::string& old = other->second == now ? now : s.name();
    return absl::InvalidArgumentError(
        ShownText(absl::StrCat("spec.model.initFrom.rename: the checkpoint's ", PartName(part),
                               "s ", other->second, " and ", s.name(), " would both be called ",
                               now, "; leave one behind, as with ", old, ": \"\"")));
  }
  return absl::OkStatus();
}

absl::Status CheckRenames(const SchemaMapping& mapping, const Schema& saved, const Schema& now,
                          const Renames& rename) {
  const Renaming tables(now.tables(), rename), fields(now.fields(), rename),
      labels(now.labels(), rename);
  const TensorRenaming tensors(saved, now, rename);
  const ColumnRenaming columns(now, rename), saved_columns(saved, rename);
  std::set<std::string> names;
  absl::Status s = CheckNames(SchemaPart::kTable, saved.tables(), tables, names);
  if (s.ok()) s = CheckNames(SchemaPart::kTensor, saved.tensors(), tensors, names);
  if (s.ok()) s = CheckNames(SchemaPart::kField, saved.fields(), fields, names);
  if (s.ok()) s = CheckNames(SchemaPart::kLabel, saved.labels(), labels, names);
  if (!s.ok()) return s;
  for (const auto& [old_name, new_name] : rename) {
    const bool weight = !old_name.empty() && old_name == mapping.saved_weight;
    if (names.count(old_name) == 0 && !saved_columns.Has(old_name) && !weight) {
      return absl::InvalidArgumentError(absl::StrCat(
          "spec.model.initFrom.rename: the checkpoint has no table, tensor, field, label or column "
          "'",
          ShownText(old_name), "'; `strata checkpoint show` lists them"));
    }
    if (new_name.empty() || tables.Has(new_name) || tensors.Has(new_name) || fields.Has(new_name) ||
        labels.Has(new_name) || columns.Has(new_name) || new_name == mapping.weight) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "spec.model.initFrom.rename: '", ShownText(old_name), "' becomes '", ShownText(new_name),
        "', and the job has no table, tensor, field, label or column of that name; `strata "
        "explain --schema JOB` lists them, and \"\" leaves '",
        ShownText(old_name), "' behind"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckResume(const SchemaMapping& mapping) {
  return Refusal(ResumeDifferences(mapping));
}

std::vector<std::string> ResumeDifferences(const SchemaMapping& mapping) {
  std::vector<std::string> lines;
  for (const SchemaEntry& e : mapping.entries) {
    if (e.change != SchemaChange::kLoaded) lines.push_back(EntryText(e));
  }
  return lines;
}

std::string FirstLines(std::vector<std::string> lines) {
  if (lines.size() > kMostLines) {
    const size_t more = lines.size() - kMostLines;
    lines.resize(kMostLines);
    lines.push_back(absl::StrCat("... and ", more, " more difference", more == 1 ? "" : "s"));
  }
  return absl::StrJoin(lines, "\n");
}

absl::Status CheckInitFrom(const SchemaMapping& mapping, const Schema& saved, const Schema& now,
                           const InitFromSpec& init) {
  const Renames rename = RenamesOf(init);
  if (absl::Status s = CheckRenames(mapping, saved, now, rename); !s.ok()) return s;
  const Behind behind(mapping, saved, now, rename);
  std::vector<std::string> lines;
  for (const SchemaEntry& e : mapping.entries) {
    const std::string remedy = Remedy(e, behind, init);
    if (!remedy.empty()) lines.push_back(absl::StrCat(EntryText(e), "; ", ShownText(remedy)));
  }
  return Refusal(std::move(lines));
}

absl::Status CheckSaved(const Schema& saved, const Schema& made) {
  if (saved.model().empty()) {
    return absl::DataLossError("the manifest does not say what its model is made of (schema)");
  }
  const auto contradicts = [](absl::string_view what) {
    return absl::DataLossError(
        absl::StrCat("the manifest's schema is not that of its own job: ", what));
  };
  SchemaMapping mapping = MapSchemas(saved, made);
  if (saved.model() == kImportedModel) {
    // What was not imported is not there.
    std::erase_if(mapping.entries,
                  [](const SchemaEntry& e) { return e.change == SchemaChange::kNew; });
  }
  if (absl::Status s = CheckResume(mapping); !s.ok()) return contradicts(s.message());
  for (const auto& [from, to] : mapping.tables) {
    const SchemaTable &is = saved.tables(from), &should = made.tables(to);
    if (is.table() == should.table()) continue;
    return contradicts(absl::StrCat("table ", ShownText(is.name()), " has number ", is.table(),
                                    ", not ", should.table()));
  }
  for (const auto& [from, to] : mapping.tensors) {
    const SchemaTensor &is = saved.tensors(from), &should = made.tensors(to);
    if (is.first_row() == should.first_row() && is.rows() == should.rows()) continue;
    return contradicts(absl::StrCat("tensor ", ShownText(is.name()), " has ", is.rows(),
                                    " rows from ", is.first_row(), ", not ", should.rows(),
                                    " from ", should.first_row()));
  }
  return absl::OkStatus();
}

RestorePlan MakeRestorePlan(const SchemaMapping& mapping, const Schema& saved, const Schema& now,
                            const InitFromSpec& init) {
  RestorePlan plan;
  const bool reset = init.optimizer_state() == "reset";
  RestoreColumns columns;
  columns.set_saved(static_cast<uint32_t>(saved.labels_size()));
  for (const int place : mapping.labels) columns.add_from(static_cast<uint32_t>(place + 1));
  for (const auto& [from, to] : mapping.tables) {
    RestoreTable* table = plan.add_tables();
    table->set_from(saved.tables(from).table());
    table->set_to(now.tables(to).table());
    table->set_reset_state(reset);
    table->set_keep_score(reset && saved.tables(from).scored() && now.tables(to).scored());
    if (mapping.label_tables.contains(to)) *table->mutable_columns() = columns;
  }
  for (const auto& [from, to] : mapping.tensors) {
    RestoreTensor* tensor = plan.add_tensors();
    tensor->set_from_row(saved.tensors(from).first_row());
    tensor->set_to_row(now.tensors(to).first_row());
    tensor->set_rows(saved.tensors(from).rows());
    tensor->set_reset_state(reset);
    if (mapping.label_tensors.contains(to)) *tensor->mutable_columns() = columns;
  }
  return plan;
}

std::map<std::string, std::string> RenamesOf(const InitFromSpec& init) {
  return {init.rename().begin(), init.rename().end()};
}

}  // namespace strata
