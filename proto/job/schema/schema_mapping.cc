#include "proto/job/schema/schema_mapping.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/core/mutation.h"
#include "proto/job/schema/schema_meaning.h"
#include "proto/job/schema/schema_renaming.h"
#include "proto/job/schema/schema_shapes.h"

namespace strata {
namespace {

// Whether a tensor has weights for the numbers of an example, and for nothing else of it.
bool GoesByNumbersAlone(absl::string_view tensor) {
  return absl::StartsWith(tensor, "numeric_") || tensor == "bottom_0_weight";
}

// The checkpoint's parts of one kind by what they are called now.
class Places {
 public:
  template <typename List, typename Names>
  Places(const List& saved, const Names& renaming) : found_(static_cast<size_t>(saved.size())) {
    for (int i = 0; i < saved.size(); ++i) {
      std::string now(renaming.Now(saved[i].name()));
      if (!now.empty()) at_.emplace(std::move(now), i);
    }
  }
  // The place of `name`, which counts as found; or -1.
  int Find(const std::string& name) {
    const auto at = at_.find(name);
    if (at == at_.end()) return -1;
    Found(at->second);
    return at->second;
  }
  void Found(int place) { found_[static_cast<size_t>(place)] = true; }
  bool found(int place) const { return found_[static_cast<size_t>(place)]; }

 private:
  std::map<std::string, int> at_;
  std::vector<bool> found_;
};

class Mapper {
 public:
  Mapper(const Schema& saved, const Schema& now, const std::map<std::string, std::string>& rename,
         const VocabularyContents& files)
      : saved_(saved),
        now_(now),
        files_(files),
        tables_(now.tables(), rename),
        fields_(now.fields(), rename),
        labels_(now.labels(), rename),
        tensors_(saved, now, rename),
        columns_(now, rename) {}

  SchemaMapping Map() {
    if (saved_.model() == kImportedModel) {
      Add(SchemaChange::kNew, SchemaPart::kModel, now_.model(), now_.model());
    } else if (saved_.model() != now_.model()) {
      Add(SchemaChange::kChangedMeaning, SchemaPart::kModel, "",
          absl::StrCat("spec.model.type was ", saved_.model(), ", is ", now_.model()));
    }
    MapTables();
    MapTensors();
    MapFields();
    MapLabels();
    return std::move(out_);
  }

 private:
  void Add(SchemaChange change, SchemaPart part, const std::string& name, std::string text) {
    out_.entries.push_back({change, part, name, std::move(text)});
  }
  // `beside`: what else there is to tell.
  void Same(SchemaPart part, const std::string& saved, const std::string& now,
            const std::string& beside = "") {
    if (saved == now) return Add(SchemaChange::kLoaded, part, now, absl::StrCat(now, beside));
    Add(SchemaChange::kRenamed, part, now, absl::StrCat(saved, " as ", now, beside));
  }
  std::string Of(SchemaPart part, const std::string& name, absl::string_view what) const {
    return absl::StrCat(PartName(part), " ", name, ": ", what);
  }

  // But for what was found, whatever it is called: a rename may give its name to another part.
  template <typename List, typename Text>
  void AddDropped(SchemaPart part, const List& saved, const Places& places, const Text& text) {
    for (int i = 0; i < saved.size(); ++i) {
      if (!places.found(i)) Add(SchemaChange::kDropped, part, saved[i].name(), text(saved[i]));
    }
  }

  // Fields with rows come before the numbers.
  bool FieldsDiffer(bool numbers_alone) const {
    const auto first = [numbers_alone](const auto& fields) {
      return std::find_if(fields.begin(), fields.end(), [numbers_alone](const SchemaField& f) {
        return !numbers_alone || f.table().empty();
      });
    };
    return !std::equal(first(saved_.fields()), saved_.fields().end(), first(now_.fields()),
                       now_.fields().end(), [this](const SchemaField& a, const SchemaField& b) {
                         return fields_.Now(a.name()) == b.name() &&
                                WidthIn(saved_, a) == WidthIn(now_, b);
                       });
  }
  // Floats that a field has among an example's: 0 of a number.
  static uint32_t WidthIn(const Schema& schema, const SchemaField& field) {
    for (const SchemaTable& table : schema.tables()) {
      if (table.name() == field.table()) return table.segments(0).dim();
    }
    return 0;
  }

  bool OneUnnamed() const {
    return OneUnnamedLabel(saved_.labels(), now_.labels()) &&
           !labels_.Says(saved_.labels(0).name());
  }
  // Whether the label with that number is another one.
  bool LabelDiffers(int number) const {
    if (number >= saved_.labels_size() || number >= now_.labels_size()) return true;
    return labels_.Now(saved_.labels(number).name()) != now_.labels(number).name();
  }
  // Several labels, as many as before, with outputs at each other's places.
  bool LabelsCross() const {
    const int labels = now_.labels_size();
    if (labels < 2 || saved_.labels_size() != labels) return false;
    for (int t = 0; t < labels; ++t) {
      if (LabelDiffers(t)) return true;
    }
    return false;
  }
  // Whether what has the labels' outputs side by side is loaded, where labels have changed.
  bool OutputsBeginAnew() const {
    if (saved_.labels_size() == now_.labels_size() && !LabelsCross()) return false;
    std::vector<bool> loaded(static_cast<size_t>(now_.tensors_size()));
    for (const auto& [from, to] : out_.tensors) loaded[static_cast<size_t>(to)] = true;
    for (int i = 0; i < now_.tensors_size(); ++i) {
      if (!loaded[static_cast<size_t>(i)] && GoesByLabels(now_, now_.tensors(i).name()))
        return true;
    }
    return false;
  }

  void MapTables() {
    const auto text = [](const SchemaTable& t) {
      return absl::StrCat(t.name(), " ", ShapeText(t));
    };
    Places places(saved_.tables(), tables_);
    for (int i = 0; i < now_.tables_size(); ++i) {
      const SchemaTable& now = now_.tables(i);
      const int at = places.Find(now.name());
      if (at < 0) {
        Add(SchemaChange::kNew, SchemaPart::kTable, now.name(), text(now));
        continue;
      }
      const SchemaTable& saved = saved_.tables(at);
      if (!SameShape(saved, now)) {
        Add(SchemaChange::kOtherShape, SchemaPart::kTable, now.name(),
            absl::StrCat(now.name(), " was ", ShapeText(saved), ", is ", ShapeText(now)));
        continue;
      }
      const std::string fields =
          saved.name() == now.name() ? "" : FieldsHashing(saved_, saved.name());
      if (!fields.empty()) {
        Add(SchemaChange::kChangedMeaning, SchemaPart::kTable, now.name(),
            absl::StrCat("table ", saved.name(), " as ", now.name(), ": the keys of ", fields,
                         " hash the name ", saved.name(), ", so that ", now.name(),
                         " would not find their rows"));
        out_.entries.back().table = saved.name();
        continue;
      }
      const bool by_labels = now.segments(now.segments_size() - 1).name() == "weight";
      if (by_labels && LabelsCross()) {
        Add(SchemaChange::kOtherFields, SchemaPart::kTable, now.name(),
            absl::StrCat(now.name(), " has rows whose weights go by the labels in their order"));
        continue;
      }
      out_.tables.emplace_back(at, i);
      loaded_tables_.insert(saved.name());
      Same(SchemaPart::kTable, saved.name(), now.name());
      AddOptimizer(SchemaPart::kTable, now.name(), OptimizerChange(saved, now));
      if (saved.scored() == now.scored()) continue;
      Add(now.scored() ? SchemaChange::kNewScore : SchemaChange::kOldScore, SchemaPart::kTable,
          now.name(),
          Of(SchemaPart::kTable, now.name(),
             now.scored() ? "rows had no score, and have one now (spec.lifeCycle.removal.score)"
                          : "rows had a score, and have none now (spec.lifeCycle.removal.score)"));
    }
    AddDropped(SchemaPart::kTable, saved_.tables(), places, text);
  }

  void MapTensors() {
    // Dlrm's layers see products of fields, the others' the fields themselves.
    const bool products_differ = (saved_.model() == "dlrm") != (now_.model() == "dlrm");
    const bool fields_differ = FieldsDiffer(false) || products_differ;
    const bool numbers_differ = FieldsDiffer(true);
    const auto text = [](const SchemaTensor& t) {
      return absl::StrCat(t.name(), " ", ShapeText(t));
    };
    Places places(saved_.tensors(), tensors_);
    for (int i = 0; i < now_.tensors_size(); ++i) {
      const SchemaTensor& now = now_.tensors(i);
      const int at = places.Find(now.name());
      if (at < 0) {
        Add(SchemaChange::kNew, SchemaPart::kTensor, now.name(), text(now));
        continue;
      }
      const SchemaTensor& saved = saved_.tensors(at);
      if (!SameShape(saved, now)) {
        Add(SchemaChange::kOtherShape, SchemaPart::kTensor, now.name(),
            absl::StrCat(now.name(), " was ", ShapeText(saved), ", is ", ShapeText(now)));
        continue;
      }
      const bool differ = GoesByNumbersAlone(now.name()) ? numbers_differ : fields_differ;
      if (differ && (now.by_fields() || saved.by_fields())) {
        Add(SchemaChange::kOtherFields, SchemaPart::kTensor, now.name(),
            absl::StrCat(text(now), " goes by the fields in their order"));
        continue;
      }
      if (LabelsCross() && GoesByLabels(now_, now.name())) {
        Add(SchemaChange::kOtherFields, SchemaPart::kTensor, now.name(),
            absl::StrCat(text(now), " goes by the labels in their order"));
        continue;
      }
      out_.tensors.emplace_back(at, i);
      Same(SchemaPart::kTensor, saved.name(), now.name());
      AddOptimizer(SchemaPart::kTensor, now.name(), OptimizerChange(saved, now));
    }
    AddDropped(SchemaPart::kTensor, saved_.tensors(), places, text);
  }

  void AddOptimizer(SchemaPart part, const std::string& name, const std::string& change) {
    if (change.empty()) return;
    Add(SchemaChange::kOtherOptimizer, part, name, Of(part, name, change));
  }

  void MapFields() {
    const auto text = [](const SchemaField& f) { return f.name(); };
    Places places(saved_.fields(), fields_);
    std::vector<int> order;    // in the checkpoint, of fields that are in both
    std::vector<int> unknown;  // to the checkpoint by name
    for (int i = 0; i < now_.fields_size(); ++i) {
      const int at = places.Find(now_.fields(i).name());
      if (at < 0) {
        unknown.push_back(i);
        continue;
      }
      order.push_back(at);
      AddField(at, now_.fields(i));
    }
    AddUnknownFields(unknown, places);
    AddDropped(SchemaPart::kField, saved_.fields(), places, text);
    AddTurned(SchemaChange::kOtherFields, SchemaPart::kField, saved_.fields(), fields_, order);
  }

  // `order`: places in the checkpoint of what is in both, as it comes now.
  template <typename List>
  void AddTurned(SchemaChange change, SchemaPart part, const List& saved, const Renaming& renaming,
                 const std::vector<int>& order) {
    const auto turned = std::is_sorted_until(order.begin(), order.end());
    if (turned == order.end()) return;
    const auto name = [&](int i) { return saved[i].name(); };
    Add(change, part, renaming.Now(name(*turned)),
        absl::StrCat(PartName(part), " ", name(*turned), " came before ", name(*(turned - 1)),
                     ", and comes after it now"));
  }

  void AddField(int at, const SchemaField& now) {
    const SchemaField& saved = saved_.fields(at);
    const bool has_rows = saved.table().empty() || loaded_tables_.contains(saved.table());
    const auto change = [&](const SchemaField& was, bool with_rows) {
      return MeaningChange(was, now,
                           with_rows ? std::optional(tables_.Now(saved.table())) : std::nullopt,
                           columns_, files_);
    };
    const std::string changed = change(saved, has_rows);
    if (changed.empty() && !has_rows) {
      return Add(SchemaChange::kNewRows, SchemaPart::kField, now.name(), now.name());
    }
    if (changed.empty()) {
      return SameReader(SchemaPart::kField, saved, now, MoreValues(saved, now));
    }
    Add(SchemaChange::kChangedMeaning, SchemaPart::kField, now.name(),
        Of(SchemaPart::kField, now.name(), changed));
    SchemaEntry& entry = out_.entries.back();
    if (has_rows && change(saved, false).empty()) entry.table = saved.table();
    SchemaField other = saved;
    other.set_column(now.column());
    if (!HashesColumn(saved) && change(other, has_rows).empty()) {
      entry.column = absl::StrCat(saved.column(), ": ", now.column());
    }
  }

  // A field or a label that is the same, but for names.
  template <typename Part>
  void SameReader(SchemaPart part, const Part& saved, const Part& now,
                  const std::string& beside = "") {
    Same(part, saved.name(), now.name(), beside);
    if (saved.column() == now.column()) return;
    SchemaEntry& entry = out_.entries.back();
    entry.change = SchemaChange::kRenamed;
    absl::StrAppend(&entry.text, " (column ", saved.column(), " as ", now.column(), ")");
  }

  // A table's rows are loaded, whatever its fields are called: one that has the keys of a field of
  // the checkpoint has that field's rows.
  void AddUnknownFields(const std::vector<int>& unknown, Places& places) {
    std::map<std::string, int> others;
    for (int i = 0; i < saved_.fields_size() && !unknown.empty(); ++i) {
      const SchemaField& saved = saved_.fields(i);
      if (places.found(i)) continue;
      others.emplace(KeySpace(saved, tables_.Now(saved.table()), columns_.Now(saved.column())), i);
    }
    others.erase("");
    for (const int i : unknown) {
      const SchemaField& now = now_.fields(i);
      const auto same = others.find(KeySpace(now, now.table(), now.column()));
      if (same == others.end() || STRATA_MUTATION("schema.rows_by_name_alone")) {
        Add(SchemaChange::kNew, SchemaPart::kField, now.name(), now.name());
        continue;
      }
      places.Found(same->second);
      AddField(same->second, now);
    }
  }

  void MapLabels() {
    const auto text = [](const SchemaLabel& l) { return l.name(); };
    const bool anew = OutputsBeginAnew();
    Places places(saved_.labels(), labels_);
    std::vector<int> order;
    if (OneUnnamed()) places.Found(0);
    for (const SchemaLabel& now : now_.labels()) {
      const int at = OneUnnamed() ? 0 : places.Find(now.name());
      if (at < 0) {
        Add(SchemaChange::kNew, SchemaPart::kLabel, now.name(), now.name());
        continue;
      }
      order.push_back(at);
      AddLabel(saved_.labels(at), now, anew);
    }
    AddDropped(SchemaPart::kLabel, saved_.labels(), places, text);
    // Towers follow their labels; of what has the labels' outputs side by side its table or tensor
    // says it.
    AddTurned(SchemaChange::kOtherFields, SchemaPart::kLabel, saved_.labels(), labels_, order);
  }

  void AddLabel(const SchemaLabel& saved, const SchemaLabel& now, bool outputs_anew) {
    const std::string changed = MeaningChange(saved, now, columns_);
    if (!changed.empty()) {
      Add(SchemaChange::kChangedMeaning, SchemaPart::kLabel, now.name(),
          Of(SchemaPart::kLabel, now.name(), changed));
      SchemaLabel other = saved;
      other.set_column(now.column());
      if (MeaningChange(other, now, columns_).empty()) {
        out_.entries.back().column = absl::StrCat(saved.column(), ": ", now.column());
      }
      return;
    }
    if (outputs_anew) {
      return Add(SchemaChange::kNewOutputs, SchemaPart::kLabel, now.name(), now.name());
    }
    SchemaLabel called = saved;
    if (OneUnnamed()) called.set_name(now.name());
    if (saved.column().empty() || now.column().empty()) called.set_column(now.column());
    SameReader(SchemaPart::kLabel, called, now);
  }

  const Schema& saved_;
  const Schema& now_;
  const VocabularyContents& files_;
  const Renaming tables_, fields_, labels_;
  const TensorRenaming tensors_;
  const ColumnRenaming columns_;
  std::set<absl::string_view> loaded_tables_;  // by their names in the checkpoint
  SchemaMapping out_;
};

}  // namespace

SchemaMapping MapSchemas(const Schema& saved, const Schema& now,
                         const std::map<std::string, std::string>& rename,
                         const VocabularyContents& files) {
  return Mapper(saved, now, rename, files).Map();
}

void MapSampleWeight(const std::string& saved, const std::string& now, SchemaMapping& mapping) {
  if (saved == now) return;
  const auto name = [](const std::string& column) { return column.empty() ? "none" : column; };
  mapping.entries.push_back(
      {SchemaChange::kChangedMeaning, SchemaPart::kSampleWeight, now,
       absl::StrCat("spec.sampleWeight was ", name(saved), ", is ", name(now))});
}

}  // namespace strata
