// What a comparison of two schemas tells, entry by entry, and how people are told. Pure.
// Tested by tests/proto/job/schema/schema_differences_test.cc
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_ENTRIES_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_ENTRIES_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace strata {

// The model of a schema that `strata import` wrote: it has rows of tables, and nothing else.
inline constexpr char kImportedModel[] = "import";

enum class SchemaChange : uint8_t {
  kLoaded,      // the same in both
  kRenamed,     // loaded under another name
  kNew,         // the job has it, the checkpoint does not
  kDropped,     // the checkpoint has it, the job does not
  kOtherShape,  // in both, of other shapes: as if it were dropped and new
  kNewRows,     // a field in both, and its table is dropped or of another shape
  kMovedRows,   // likewise, and its rows are in a table that is loaded, where others had theirs
  kNewOutputs,  // a label in both, and some of what has its outputs is not loaded
  kByLabels,    // loaded, its columns by the names of the labels, which have changed
  // Its weights go by fields or labels, and those are others or lie in another order: likewise.
  kOtherFields,
  kOtherOrder,      // in both, behind another one that it came before
  kOtherOptimizer,  // loaded, but another optimizer wrote its state
  kNewScore,        // loaded; rows had no score and have one now
  kOldScore,        // loaded; rows had a score and have none now
  kOtherSettings,   // loaded, and trained otherwise: with other rates, life cycles, codecs
  kChangedMeaning,  // in both, and what is saved does not mean what the job takes it for
};

enum class SchemaPart : uint8_t { kModel, kTable, kTensor, kField, kLabel, kSampleWeight };

struct SchemaEntry {
  SchemaChange change = SchemaChange::kLoaded;
  SchemaPart part = SchemaPart::kTable;
  std::string name;  // in the job; of what is dropped: in the checkpoint
  // What EntryText and MappingText tell of it, with names as they are: "field C1: hashSeed was 0,
  // is 9".
  std::string text;
  // Of a field whose keys alone have changed, and of a table: the table in the checkpoint, without
  // whose rows it would be the same.
  std::string table = "";
  // Of a field or label that reads another column and is the same else: "old: new", as a rename has
  // it.
  std::string column = "";
  // Of a field without a name in the checkpoint: that field there whose rows it would have.
  std::string rows_of = "";
};

struct SchemaMapping {
  // The model; then tables, tensors, fields and labels, each in the order of the job, then what of
  // them is dropped. Tables, fields and labels that lie in another order are one entry more of
  // each.
  std::vector<SchemaEntry> entries;
  // Places in `saved` and in `now` of tables and tensors whose rows are loaded.
  std::vector<std::pair<int, int>> tables;
  std::vector<std::pair<int, int>> tensors;
  // Those of them, by their places in `now`, that have a column for each label, where the labels
  // have changed; and by label of `now` its place in `saved`, or -1.
  std::set<int> label_tables, label_tensors;
  std::vector<int> labels;
  // Columns of spec.sampleWeight that MapSampleWeight compared, or empty.
  std::string saved_weight, weight;
};

// What texts call the two that are compared.
struct SchemaSides {
  absl::string_view saved = "the checkpoint", now = "the job";
};

// "loaded: tables features; tensors bias, layer_0_bias; new: ...": one line.
std::string MappingText(const SchemaMapping& mapping);

// "loaded", "other shape" ...
const char* ChangeName(SchemaChange change);
// "table", "tensor" ...
const char* PartName(SchemaPart part);
// What an entry says, with the part that it is of: "tensor layer_0_weight was (9, 8), is (9, 6)".
// One line, whatever names hold.
std::string EntryText(const SchemaEntry& entry, const SchemaSides& sides = {});

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_ENTRIES_H_
