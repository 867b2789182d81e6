#include "proto/job/schema/schema_mapping.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/job/schema/schema_attention.h"
#include "proto/job/schema/schema_labels.h"
#include "proto/job/schema/schema_meaning.h"
#include "proto/job/schema/schema_parts.h"
#include "proto/job/schema/schema_readers.h"
#include "proto/job/schema/schema_renaming.h"
#include "proto/job/schema/schema_shapes.h"

namespace strata {
namespace {

// Whether a tensor has weights for the numbers of an example, and for nothing else of it.
bool GoesByNumbersAlone(absl::string_view tensor) {
  return absl::StartsWith(tensor, "numeric_") || tensor == "bottom_0_weight";
}

template <typename Part>
std::string NameAndShape(const Part& part) {
  return absl::StrCat(part.name(), " ", ShapeText(part));
}

// Floats that fields have among an example's. The schema outlives it.
class Widths {
 public:
  explicit Widths(const Schema& schema) {
    for (const SchemaTable& table : schema.tables()) {
      if (!table.segments().empty()) tables_.emplace(table.name(), table.segments(0).dim());
    }
  }
  // 0 of a number.
  uint32_t Of(const SchemaField& field) const {
    const auto table = tables_.find(field.table());
    return table == tables_.end() ? 0 : table->second;
  }

 private:
  std::map<absl::string_view, uint32_t> tables_;
};

// Tables and tensors: what has weights.
class WeightMapper {
 public:
  WeightMapper(const Schema& saved, const Schema& now,
               const std::map<std::string, std::string>& rename, SchemaMapping& out)
      : saved_(saved),
        now_(now),
        tables_(now.tables(), rename),
        fields_(now.fields(), rename),
        labels_(saved, now, Renaming(now.labels(), rename)),
        tensors_(saved, now, rename),
        saved_items_(saved),
        items_(now),
        table_entries_(SchemaPart::kTable, &out),
        tensor_entries_(SchemaPart::kTensor, &out),
        out_(out) {
    out.labels = labels_.places();
  }

  void MapTables() {
    Places places(saved_.tables(), tables_);
    std::vector<int> order;  // in the checkpoint, of tables that are in both
    for (int i = 0; i < now_.tables_size(); ++i) {
      const SchemaTable& now = now_.tables(i);
      const int at = places.Find(now.name());
      if (at < 0) {
        table_entries_.Add(SchemaChange::kNew, now.name(), NameAndShape(now));
        continue;
      }
      order.push_back(at);
      MapTable(at, i);
    }
    table_entries_.Dropped(saved_.tables(), places, NameAndShape<SchemaTable>);
    table_entries_.Turned(saved_.tables(), tables_, order);
  }

  void MapTensors() {
    // Dlrm's layers see products of fields, the others' the fields themselves.
    const bool products_differ = (saved_.model() == "dlrm") != (now_.model() == "dlrm");
    const bool fields_differ = FieldsDiffer(false) || products_differ;
    const bool numbers_differ = FieldsDiffer(true);
    Places places(saved_.tensors(), tensors_);
    for (int i = 0; i < now_.tensors_size(); ++i) {
      const SchemaTensor& now = now_.tensors(i);
      const int at = places.Find(now.name());
      if (at < 0) {
        tensor_entries_.Add(SchemaChange::kNew, now.name(), NameAndShape(now));
        continue;
      }
      MapTensor(at, i, GoesByNumbersAlone(now.name()) ? numbers_differ : fields_differ);
    }
    tensor_entries_.Dropped(saved_.tensors(), places, NameAndShape<SchemaTensor>);
  }

  // The outputs of labels that begin anew where the labels have changed: "output_weight". Weights
  // of numbers and of interactions are none: what becomes of these is told with them alone.
  std::string NewOutputs() const {
    if (labels_.same()) return "";
    std::vector<bool> loaded(static_cast<size_t>(now_.tensors_size()));
    for (const auto& [from, to] : out_.tensors) loaded[static_cast<size_t>(to)] = true;
    std::vector<absl::string_view> outputs;
    for (int i = 0; i < now_.tensors_size(); ++i) {
      const std::string& name = now_.tensors(i).name();
      if (loaded[static_cast<size_t>(i)] || GoesByNumbersAlone(name)) continue;
      if (name != "interaction_weight" && GoesByLabels(name)) outputs.push_back(name);
    }
    return absl::StrJoin(outputs, ", ");
  }

 private:
  // Fields with rows come before the numbers.
  bool FieldsDiffer(bool numbers_alone) const {
    const auto first = [numbers_alone](const auto& fields) {
      return std::find_if(fields.begin(), fields.end(), [numbers_alone](const SchemaField& f) {
        return !numbers_alone || f.table().empty();
      });
    };
    const Widths saved(saved_), now(now_);
    return !std::equal(first(saved_.fields()), saved_.fields().end(), first(now_.fields()),
                       now_.fields().end(), [&](const SchemaField& a, const SchemaField& b) {
                         return fields_.Now(a.name()) == b.name() && saved.Of(a) == now.Of(b);
                       });
  }

  // Loaded, but that columns of labels lie elsewhere.
  template <typename Part>
  static void AddByLabels(const Part& saved, const Part& now, PartEntries& entries) {
    const std::string was = NameAndShape(saved), is = NameAndShape(now);
    const std::string as = was == is                    ? ""
                           : saved.name() == now.name() ? absl::StrCat(" as ", ShapeText(now))
                                                        : absl::StrCat(" as ", is);
    entries.Add(SchemaChange::kByLabels, now.name(), absl::StrCat(was, as));
  }
  template <typename Part>
  static void AddOtherShape(const Part& saved, const Part& now, PartEntries& entries) {
    entries.Add(SchemaChange::kOtherShape, now.name(),
                absl::StrCat(now.name(), " was ", ShapeText(saved), ", is ", ShapeText(now)));
  }

  void MapTable(int at, int place) {
    const SchemaTable &saved = saved_.tables(at), &now = now_.tables(place);
    const bool columns = !labels_.same() && GoesByLabels(saved) && GoesByLabels(now);
    // Rows that are of labels alone have nothing where no label stays.
    const bool nothing = columns && now.segments_size() == 1 && !labels_.any();
    const bool fits = columns && !nothing ? labels_.SameShapes(saved, now) : SameShape(saved, now);
    if (!fits) return AddOtherShape(saved, now, table_entries_);
    const std::string fields =
        saved.name() == now.name() ? "" : FieldsHashing(saved_, saved.name());
    if (!fields.empty()) {
      table_entries_
          .Add(SchemaChange::kChangedMeaning, now.name(),
               absl::StrCat("table ", saved.name(), " as ", now.name(), ": the keys of ", fields,
                            " hash the name ", saved.name(), ", so that ", now.name(),
                            " would not find their rows"))
          .table = saved.name();
      return;
    }
    if (nothing) {
      table_entries_.Add(SchemaChange::kOtherFields, now.name(),
                         absl::StrCat(now.name(), " has rows whose weights go by the labels"));
      return;
    }
    out_.tables.emplace_back(at, place);
    if (columns) {
      out_.label_tables.insert(place);
      AddByLabels(saved, now, table_entries_);
    } else {
      table_entries_.Same(saved.name(), now.name());
    }
    table_entries_.Optimizer(now.name(), OptimizerChange(saved, now));
    if (saved.scored() == now.scored()) return;
    table_entries_.Say(now.scored() ? SchemaChange::kNewScore : SchemaChange::kOldScore, now.name(),
                       now.scored()
                           ? "rows had no score, and have one now (spec.lifeCycle.removal.score)"
                           : "rows had a score, and have none now (spec.lifeCycle.removal.score)");
  }

  // `differ`: fields, or numbers, are others than those that its weights stand for.
  void MapTensor(int at, int place, bool differ) {
    const SchemaTensor &saved = saved_.tensors(at), &now = now_.tensors(place);
    const bool was_columns = !labels_.same() && GoesByLabels(saved.name());
    const bool is_columns = !labels_.same() && GoesByLabels(now.name());
    const bool columns = was_columns && is_columns && labels_.any();
    const bool fits = columns ? labels_.SameShapes(saved, now) : SameShape(saved, now);
    if (!fits) return AddOtherShape(saved, now, tensor_entries_);
    // The outputs of dcn_v2 weigh its fields as well, those of other models a hidden layer alone.
    const bool other_inputs = saved.name() == now.name() && saved.by_fields() != now.by_fields();
    if (other_inputs || (differ && (now.by_fields() || saved.by_fields()))) {
      tensor_entries_.Add(SchemaChange::kOtherFields, now.name(),
                          absl::StrCat(NameAndShape(now), " goes by the fields in their order"));
      return;
    }
    const std::string was_item = saved_items_.Of(saved.name()), item = items_.Of(now.name());
    if (!was_item.empty() && fields_.Now(was_item) != item) {
      tensor_entries_.Add(
          SchemaChange::kOtherFields, now.name(),
          absl::StrCat(NameAndShape(now), " weighed values by field ", was_item,
                       item.empty() ? "" : absl::StrCat(", and weighs them by ", item)));
      return;
    }
    if (!columns && (was_columns || is_columns)) {
      tensor_entries_.Add(SchemaChange::kOtherFields, now.name(),
                          absl::StrCat(NameAndShape(now), " goes by the labels"));
      return;
    }
    out_.tensors.emplace_back(at, place);
    if (columns) {
      out_.label_tensors.insert(place);
      AddByLabels(saved, now, tensor_entries_);
    } else {
      tensor_entries_.Same(saved.name(), now.name());
    }
    tensor_entries_.Optimizer(now.name(), OptimizerChange(saved, now));
  }

  const Schema& saved_;
  const Schema& now_;
  const Renaming tables_, fields_;
  const LabelPlaces labels_;
  const TensorRenaming tensors_;
  const Items saved_items_, items_;
  PartEntries table_entries_, tensor_entries_;
  SchemaMapping& out_;
};

void MapModel(const Schema& saved, const Schema& now, SchemaMapping& out) {
  PartEntries model(SchemaPart::kModel, &out);
  if (saved.model() == kImportedModel) {
    model.Add(SchemaChange::kNew, now.model(), now.model());
  } else if (saved.model() != now.model()) {
    model.Add(SchemaChange::kChangedMeaning, "",
              absl::StrCat("spec.model.type was ", saved.model(), ", is ", now.model()));
  }
}

}  // namespace

SchemaMapping MapSchemas(const Schema& saved, const Schema& now,
                         const std::map<std::string, std::string>& rename,
                         const VocabularyContents& files) {
  SchemaMapping out;
  MapModel(saved, now, out);
  WeightMapper weights(saved, now, rename, out);
  weights.MapTables();
  weights.MapTensors();
  std::set<absl::string_view> loaded;
  for (const auto& [from, to] : out.tables) loaded.insert(saved.tables(from).name());
  MapFields(saved, now, rename, files, loaded, out);
  MapLabels(saved, now, rename, weights.NewOutputs(), out);
  return out;
}

SchemaMapping MapByParts(const Schema& saved, const SchemaByParts& now) {
  const std::map<std::string, std::string> rename;
  SchemaMapping out;
  MapModel(saved, now.tables, out);
  WeightMapper(saved, now.tables, rename, out).MapTables();
  if (now.tensors) WeightMapper(saved, *now.tensors, rename, out).MapTensors();
  std::set<absl::string_view> loaded;
  for (const SchemaTable& table : saved.tables()) loaded.insert(table.name());
  MapFields(saved, now.own, rename, {}, loaded, out);
  MapLabels(saved, now.own, rename, /*new_outputs=*/"", out);
  SchemaMapping entries;
  entries.entries = std::move(out.entries);
  return entries;
}

void MapSampleWeight(const std::string& saved, const std::string& now,
                     const std::map<std::string, std::string>& rename, SchemaMapping& mapping) {
  mapping.saved_weight = saved;
  mapping.weight = now;
  if (saved == now) return;
  PartEntries entries(SchemaPart::kSampleWeight, &mapping);
  const auto renamed = rename.find(saved);
  if (!saved.empty() && !now.empty() && renamed != rename.end() && renamed->second == now) {
    entries.Same(saved, now);
    return;
  }
  const auto name = [](const std::string& column) { return column.empty() ? "none" : column; };
  SchemaEntry& entry =
      entries.Add(SchemaChange::kChangedMeaning, now,
                  absl::StrCat("spec.sampleWeight was ", name(saved), ", is ", name(now)));
  if (!saved.empty() && !now.empty()) entry.column = absl::StrCat(saved, ": ", now);
}

}  // namespace strata
