#include "proto/job/schema_start.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace strata {
namespace {

// Lines of a refusal; a job of thousands of fields may have thousands of differences.
constexpr size_t kMostLines = 20;

absl::Status Refusal(std::vector<std::string> lines) {
  if (lines.empty()) return absl::OkStatus();
  if (lines.size() > kMostLines) {
    const size_t more = lines.size() - kMostLines;
    lines.resize(kMostLines);
    lines.push_back(absl::StrCat("... and ", more, " more differences"));
  }
  return absl::FailedPreconditionError(absl::StrJoin(lines, "\n"));
}

bool Allowed(const std::string& option) { return option == "allow"; }

// What allows an entry that is not loaded as it is; empty: it is allowed.
std::string Remedy(const SchemaEntry& e, const InitFromSpec& init) {
  const bool may_begin = Allowed(init.new_tensors()), may_go = Allowed(init.dropped_tensors());
  constexpr char kNew[] = "allow it with spec.model.initFrom.newTensors: allow";
  constexpr char kDropped[] = "allow it with spec.model.initFrom.droppedTensors: allow";
  switch (e.change) {
    case SchemaChange::kLoaded:
    case SchemaChange::kRenamed:
    case SchemaChange::kOtherScore:  // one that is new begins at 0
      return "";
    case SchemaChange::kNew:
      return may_begin ? "" : kNew;
    case SchemaChange::kDropped:
      return may_go ? "" : kDropped;
    case SchemaChange::kOtherFields:
      // Rows go by names; of a model without weights that go by the order it changes nothing.
      if (e.part == SchemaPart::kField) return "";
      [[fallthrough]];
    case SchemaChange::kOtherShape:
      if (may_begin && may_go) return "";
      return "let it begin anew with spec.model.initFrom.newTensors: allow and droppedTensors: "
             "allow";
    case SchemaChange::kOtherOptimizer:
      if (init.optimizer_state() == "reset") return "";
      return "set that optimizer, or spec.model.initFrom.optimizerState: reset";
    case SchemaChange::kChangedMeaning:
      // Rows of another model, or of another task, are a beginning.
      if (e.part == SchemaPart::kModel || e.part == SchemaPart::kLabel)
        return may_begin ? "" : kNew;
      return "set what the checkpoint has; nothing allows it";
  }
  return "";
}

}  // namespace

absl::Status CheckResume(const SchemaMapping& mapping) {
  std::vector<std::string> lines;
  for (const SchemaEntry& e : mapping.entries) {
    if (e.change != SchemaChange::kLoaded) lines.push_back(EntryText(e));
  }
  return Refusal(std::move(lines));
}

absl::Status CheckInitFrom(const SchemaMapping& mapping, const Schema& saved,
                           const InitFromSpec& init) {
  for (const auto& [old_name, new_name] : RenamesOf(init)) {
    const auto named = [name = old_name](const auto& x) { return x.name() == name; };
    if (std::any_of(saved.tables().begin(), saved.tables().end(), named) ||
        std::any_of(saved.tensors().begin(), saved.tensors().end(), named) ||
        std::any_of(saved.fields().begin(), saved.fields().end(), named) ||
        std::any_of(saved.labels().begin(), saved.labels().end(), named)) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "spec.model.initFrom.rename: the checkpoint has no table, tensor, field or label '",
        old_name, "'; `strata checkpoint show` lists them"));
  }
  std::vector<std::string> lines;
  for (const SchemaEntry& e : mapping.entries) {
    const std::string remedy = Remedy(e, init);
    if (!remedy.empty()) lines.push_back(absl::StrCat(EntryText(e), "; ", remedy));
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
  const SchemaMapping mapping = MapSchemas(saved, made);
  if (absl::Status s = CheckResume(mapping); !s.ok()) return contradicts(s.message());
  for (const auto& [from, to] : mapping.tables) {
    const SchemaTable &is = saved.tables(from), &should = made.tables(to);
    if (is.table() == should.table()) continue;
    return contradicts(
        absl::StrCat("table ", is.name(), " has number ", is.table(), ", not ", should.table()));
  }
  for (const auto& [from, to] : mapping.tensors) {
    const SchemaTensor &is = saved.tensors(from), &should = made.tensors(to);
    if (is.first_row() == should.first_row() && is.rows() == should.rows()) continue;
    return contradicts(absl::StrCat("tensor ", is.name(), " has ", is.rows(), " rows from ",
                                    is.first_row(), ", not ", should.rows(), " from ",
                                    should.first_row()));
  }
  return absl::OkStatus();
}

RestorePlan MakeRestorePlan(const SchemaMapping& mapping, const Schema& saved, const Schema& now,
                            const InitFromSpec& init) {
  RestorePlan plan;
  const bool reset = init.optimizer_state() == "reset";
  for (const auto& [from, to] : mapping.tables) {
    RestoreTable* table = plan.add_tables();
    table->set_from(saved.tables(from).table());
    table->set_to(now.tables(to).table());
    table->set_reset_state(reset);
  }
  for (const auto& [from, to] : mapping.tensors) {
    RestoreTensor* tensor = plan.add_tensors();
    tensor->set_from_row(saved.tensors(from).first_row());
    tensor->set_to_row(now.tensors(to).first_row());
    tensor->set_rows(now.tensors(to).rows());
    tensor->set_reset_state(reset);
  }
  return plan;
}

std::map<std::string, std::string> RenamesOf(const InitFromSpec& init) {
  return {init.rename().begin(), init.rename().end()};
}

}  // namespace strata
