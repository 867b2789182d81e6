#include "proto/job/schema/schema_entries.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/job/checks/shown.h"

namespace strata {
namespace {

constexpr SchemaChange kChanges[] = {
    SchemaChange::kLoaded,        SchemaChange::kRenamed,    SchemaChange::kNew,
    SchemaChange::kDropped,       SchemaChange::kOtherShape, SchemaChange::kNewRows,
    SchemaChange::kMovedRows,     SchemaChange::kNewOutputs, SchemaChange::kByLabels,
    SchemaChange::kOtherFields,   SchemaChange::kOtherOrder, SchemaChange::kOtherOptimizer,
    SchemaChange::kNewScore,      SchemaChange::kOldScore,   SchemaChange::kOtherSettings,
    SchemaChange::kChangedMeaning};
constexpr size_t kMostNames = 100;  // of a change in MappingText

}  // namespace

const char* ChangeName(SchemaChange change) {
  switch (change) {
    case SchemaChange::kLoaded:
      return "loaded";
    case SchemaChange::kRenamed:
      return "renamed";
    case SchemaChange::kNew:
      return "new";
    case SchemaChange::kDropped:
      return "dropped";
    case SchemaChange::kOtherShape:
      return "other shape";
    case SchemaChange::kNewRows:
      return "rows anew";
    case SchemaChange::kMovedRows:
      return "moved";
    case SchemaChange::kNewOutputs:
      return "outputs anew";
    case SchemaChange::kByLabels:
      return "by labels";
    case SchemaChange::kOtherFields:
      return "other fields";
    case SchemaChange::kOtherOrder:
      return "other order";
    case SchemaChange::kOtherOptimizer:
      return "other optimizer";
    case SchemaChange::kNewScore:
      return "new score";
    case SchemaChange::kOldScore:
      return "no score now";
    case SchemaChange::kOtherSettings:
      return "other settings";
    case SchemaChange::kChangedMeaning:
      return "changed";
  }
  return "";
}

const char* PartName(SchemaPart part) {
  switch (part) {
    case SchemaPart::kModel:
      return "spec.model.type";
    case SchemaPart::kTable:
      return "table";
    case SchemaPart::kTensor:
      return "tensor";
    case SchemaPart::kField:
      return "field";
    case SchemaPart::kLabel:
      return "label";
    case SchemaPart::kSampleWeight:
      return "spec.sampleWeight";
  }
  return "";
}

std::string EntryText(const SchemaEntry& entry, const SchemaSides& sides) {
  const auto with_part = [&entry](absl::string_view rest) {
    return ShownText(absl::StrCat(PartName(entry.part), " ", entry.text, rest));
  };
  switch (entry.change) {
    case SchemaChange::kNew:
      return with_part(absl::StrCat(": ", sides.saved, " has none"));
    case SchemaChange::kDropped:
      return with_part(absl::StrCat(": ", sides.now, " has none"));
    case SchemaChange::kNewRows:
      return with_part(": its rows begin anew with their table");
    case SchemaChange::kNewOutputs:
      return with_part(": these outputs begin anew");
    case SchemaChange::kByLabels:
      return with_part(": its columns follow the labels");
    case SchemaChange::kOtherFields:
    case SchemaChange::kOtherShape:
    case SchemaChange::kRenamed:
    case SchemaChange::kMovedRows:
      return with_part("");
    case SchemaChange::kLoaded:
    case SchemaChange::kOtherOrder:
    case SchemaChange::kOtherOptimizer:
    case SchemaChange::kNewScore:
    case SchemaChange::kOldScore:
    case SchemaChange::kOtherSettings:
    case SchemaChange::kChangedMeaning:
      break;
  }
  return ShownText(entry.text);
}

std::string MappingText(const SchemaMapping& mapping) {
  std::vector<std::string> groups;
  for (const SchemaChange change : kChanges) {
    std::vector<std::string> names;
    for (const SchemaEntry& e : mapping.entries) {
      if (e.change != change) continue;
      const bool bare = change < SchemaChange::kOtherFields;
      names.push_back(bare ? ShownText(absl::StrCat(PartName(e.part), " ", e.text)) : EntryText(e));
    }
    if (names.size() > kMostNames) {
      const size_t more = names.size() - kMostNames;
      names.resize(kMostNames);
      names.push_back(absl::StrCat("and ", more, " more"));
    }
    if (!names.empty())
      groups.push_back(absl::StrCat(ChangeName(change), ": ", absl::StrJoin(names, ", ")));
  }
  return absl::StrJoin(groups, "; ");
}

}  // namespace strata
