#include "proto/job/schema/schema_readers.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/core/mutation.h"
#include "proto/job/schema/schema_meaning.h"
#include "proto/job/schema/schema_parts.h"
#include "proto/job/schema/schema_renaming.h"

namespace strata {
namespace {

// A field or a label that is the same, but for names.
template <typename Part>
void AddSame(const Part& saved, const Part& now, std::string beside, PartEntries& entries) {
  const bool other_column = saved.column() != now.column();
  if (other_column) {
    absl::StrAppend(&beside, " (column ", saved.column(), " as ", now.column(), ")");
  }
  SchemaEntry& entry = entries.Same(saved.name(), now.name(), beside);
  if (other_column) entry.change = SchemaChange::kRenamed;
}

// Whether LinesChange says the same of both. REQUIRES: both have lines.
bool HaveSameLines(const SchemaField& a, const SchemaField& b) {
  return a.vocabulary() == b.vocabulary() && a.vocabulary_values() == b.vocabulary_values() &&
         a.out_of_vocabulary() == b.out_of_vocabulary();
}

class FieldMapper {
 public:
  FieldMapper(const Schema& saved, const Schema& now,
              const std::map<std::string, std::string>& rename, const VocabularyContents& files,
              const std::set<absl::string_view>& loaded_tables, SchemaMapping& out)
      : saved_(saved),
        now_(now),
        files_(files),
        tables_(now.tables(), rename),
        fields_(now.fields(), rename),
        columns_(now, rename),
        loaded_tables_(loaded_tables),
        entries_(SchemaPart::kField, &out) {
    for (const absl::string_view table : loaded_tables_) {
      staying_tables_.emplace(tables_.Now(std::string(table)), table);
    }
    for (const SchemaField& field : saved.fields()) {
      if (!loaded_tables_.contains(field.table())) continue;
      with_rows_[RowSpace(field, tables_.Now(field.table()))].push_back(field.name());
      NoteSavedLines(field);
    }
  }

  void Map() {
    Places places(saved_.fields(), fields_);
    std::vector<int> order;    // in the checkpoint, of fields that are in both
    std::vector<int> unknown;  // to the checkpoint by name
    std::vector<int> at(static_cast<size_t>(now_.fields_size()));
    for (int i = 0; i < now_.fields_size(); ++i) {
      at[static_cast<size_t>(i)] = places.Find(now_.fields(i).name());
      NoteLines(at[static_cast<size_t>(i)], now_.fields(i));
    }
    for (int i = 0; i < now_.fields_size(); ++i) {
      if (at[static_cast<size_t>(i)] < 0) {
        unknown.push_back(i);
        continue;
      }
      order.push_back(at[static_cast<size_t>(i)]);
      AddField(order.back(), now_.fields(i));
    }
    AddUnknownFields(unknown, places);
    entries_.Dropped(saved_.fields(), places, [](const SchemaField& f) { return f.name(); });
    entries_.Turned(saved_.fields(), fields_, order);
  }

 private:
  // How `now` differs from a field of the checkpoint; `with_rows`: in keys of rows, too.
  std::string Change(const SchemaField& saved, const SchemaField& now, bool with_rows) const {
    return MeaningChange(saved, now,
                         with_rows ? std::optional(tables_.Now(saved.table())) : std::nullopt,
                         columns_, files_);
  }

  void AddField(int at, const SchemaField& now) {
    const SchemaField& saved = saved_.fields(at);
    const bool has_rows = HasRows(saved);
    const std::string changed = Change(saved, now, has_rows);
    if (changed.empty() && has_rows) {
      return AddSame(saved, now, MoreValues(saved, now), entries_);
    }
    if (changed.empty()) {
      if (!AddLinesOfAnother(now)) AddRowsAnew(saved, now);
      return;
    }
    SchemaEntry& entry = entries_.Say(SchemaChange::kChangedMeaning, now.name(), changed);
    if (has_rows && Change(saved, now, false).empty()) entry.table = saved.table();
    SchemaField other = saved;
    other.set_column(now.column());
    if (!HashesColumn(saved) && Change(other, now, has_rows).empty()) {
      entry.column = absl::StrCat(saved.column(), ": ", now.column());
    }
  }

  // Of a field whose own rows are not loaded. Those of its table now may be.
  void AddRowsAnew(const SchemaField& saved, const SchemaField& now) {
    const auto table = staying_tables_.find(now.table());
    if (table == staying_tables_.end()) {
      entries_.Add(SchemaChange::kNewRows, now.name(), now.name());
      return;
    }
    const std::string others = FieldsWithRows(now);
    const std::string to = table->first == table->second
                               ? now.table()
                               : absl::StrCat(now.table(), ", which was ", table->second);
    entries_.Add(SchemaChange::kMovedRows, now.name(),
                 absl::StrCat(now.name(), " from table ", saved.table(), " to ", to, ": ",
                              others.empty() ? "its rows begin anew"
                                             : absl::StrCat("equal values have the rows of ",
                                                            others, ", others begin anew")));
  }

  // The checkpoint's fields whose rows are those of equal values of the job's field: "fields item,
  // clicks", or empty.
  std::string FieldsWithRows(const SchemaField& now) const {
    const auto fields = with_rows_.find(RowSpace(now, now.table()));
    return fields == with_rows_.end() ? "" : FieldsText(fields->second);
  }

  // Without a field of the checkpoint. Numbers of features are keys of whichever field; that fields
  // of one table have one row for equal values is what the job's table says.
  void AddNew(const SchemaField& now) {
    const std::string others = now.keys() == "table" ? FieldsWithRows(now) : "";
    entries_.Add(SchemaChange::kNew, now.name(),
                 others.empty()
                     ? now.name()
                     : absl::StrCat(now.name(), " (equal values have the rows of ", others, ")"));
  }

  // A table's rows are loaded, whatever its fields are called: one that has the keys of a field of
  // the checkpoint has that field's rows.
  void AddUnknownFields(const std::vector<int>& unknown, Places& places) {
    std::map<std::string, std::vector<int>> others;
    for (int i = 0; i < saved_.fields_size() && !unknown.empty(); ++i) {
      const SchemaField& saved = saved_.fields(i);
      if (places.found(i) || !HasRows(saved)) continue;
      others[KeySpace(saved, tables_.Now(saved.table()), columns_.Now(saved.column()))].push_back(
          i);
    }
    others.erase("");
    for (const int i : unknown) {
      const SchemaField& now = now_.fields(i);
      const auto same = others.find(KeySpace(now, now.table(), now.column()));
      if (same == others.end() || STRATA_MUTATION("schema.rows_by_name_alone")) {
        if (!AddLinesOfAnother(now)) AddNew(now);
        continue;
      }
      AddRowsOfAnother(same->second, now, places);
    }
  }

  // `others`: places of the checkpoint's fields whose rows it has, which are loaded; not empty.
  void AddRowsOfAnother(const std::vector<int>& others, const SchemaField& now, Places& places) {
    const auto same = std::find_if(others.begin(), others.end(), [&](int at) {
      return Change(saved_.fields(at), now, /*with_rows=*/true).empty();
    });
    const int place = same == others.end() ? others.front() : *same;
    places.Found(place);
    if (same != others.end()) return AddField(place, now);
    const SchemaField& saved = saved_.fields(place);
    SchemaEntry& entry =
        entries_.Say(SchemaChange::kChangedMeaning, now.name(),
                     absl::StrCat("it would have the rows of the checkpoint's field ", saved.name(),
                                  ", and ", Change(saved, now, /*with_rows=*/true)));
    entry.table = saved.table();
    entry.rows_of = saved.name();
  }

  // Whether rows of the checkpoint's field are loaded; of a number there are none to load.
  bool HasRows(const SchemaField& saved) const {
    return saved.table().empty() || loaded_tables_.contains(saved.table());
  }

  // Where a field of the job has the lines that it had, it is compared by itself. All fields of a
  // job that have these keys have one file (field_spec.h).
  void NoteLines(int at, const SchemaField& now) {
    if (at < 0 || !HasRows(saved_.fields(at))) return;
    std::string space = LineSpace(now, now.table());
    const SchemaField& saved = saved_.fields(at);
    if (LineSpace(saved, tables_.Now(saved.table())) == space) compared_.insert(std::move(space));
  }

  // Fields of one job that share lines have one vocabulary: there is hardly a second one to look
  // at. REQUIRES: the rows of the checkpoint's field are loaded.
  void NoteSavedLines(const SchemaField& saved) {
    std::string space = LineSpace(saved, tables_.Now(saved.table()));
    if (space.empty()) return;
    std::vector<const SchemaField*>& others = with_lines_[std::move(space)];
    const bool known = std::any_of(others.begin(), others.end(), [&](const SchemaField* other) {
      return HaveSameLines(*other, saved);
    });
    if (!known) others.push_back(&saved);
  }

  // Lines of a vocabulary are keys of their table, whatever column they are read from: those of any
  // field of the checkpoint are rows of this one. False: there is none whose lines are other
  // values.
  bool AddLinesOfAnother(const SchemaField& now) {
    const std::string space = LineSpace(now, now.table());
    if (space.empty() || compared_.contains(space)) return false;
    if (STRATA_MUTATION("schema.lines_by_column")) return false;
    const auto same = with_lines_.find(space);
    if (same == with_lines_.end()) return false;
    for (const SchemaField* saved : same->second) {
      const std::string change = LinesChange(*saved, now, files_);
      if (change.empty()) continue;
      SchemaEntry& entry = entries_.Say(
          SchemaChange::kChangedMeaning, now.name(),
          absl::StrCat("its values would have, line by line, the rows of the checkpoint's field ",
                       saved->name(), ", and ", change));
      entry.table = saved->table();
      entry.rows_of = saved->name();
      return true;
    }
    return false;
  }

  const Schema& saved_;
  const Schema& now_;
  const VocabularyContents& files_;
  const Renaming tables_, fields_;
  const ColumnRenaming columns_;
  const std::set<absl::string_view> loaded_tables_;          // by their names in the checkpoint
  std::map<std::string, absl::string_view> staying_tables_;  // the same by their names in the job
  // The checkpoint's fields whose rows are loaded, by RowSpace.
  std::map<std::string, std::vector<absl::string_view>> with_rows_;
  // The first of those of each vocabulary, by LineSpace.
  std::map<std::string, std::vector<const SchemaField*>> with_lines_;
  std::set<std::string> compared_;  // LineSpaces of fields that have a name there
  PartEntries entries_;
};

// `unnamed`: it is one label, whatever it is called (OneUnnamedLabel).
void AddLabel(const SchemaLabel& saved, const SchemaLabel& now, const ColumnRenaming& columns,
              const std::string& new_outputs, bool unnamed, PartEntries& entries) {
  const std::string changed = MeaningChange(saved, now, columns);
  if (changed.empty() && !new_outputs.empty()) {
    entries.Add(SchemaChange::kNewOutputs, now.name(),
                absl::StrCat(now.name(), " (", new_outputs, ")"));
    return;
  }
  if (changed.empty()) {
    SchemaLabel called = saved;
    if (unnamed) called.set_name(now.name());
    if (saved.column().empty() || now.column().empty()) called.set_column(now.column());
    return AddSame(called, now, "", entries);
  }
  SchemaEntry& entry = entries.Say(SchemaChange::kChangedMeaning, now.name(), changed);
  SchemaLabel other = saved;
  other.set_column(now.column());
  if (MeaningChange(other, now, columns).empty()) {
    entry.column = absl::StrCat(saved.column(), ": ", now.column());
  }
}

}  // namespace

void MapFields(const Schema& saved, const Schema& now,
               const std::map<std::string, std::string>& rename, const VocabularyContents& files,
               const std::set<absl::string_view>& loaded_tables, SchemaMapping& out) {
  FieldMapper(saved, now, rename, files, loaded_tables, out).Map();
}

void MapLabels(const Schema& saved, const Schema& now,
               const std::map<std::string, std::string>& rename, const std::string& new_outputs,
               SchemaMapping& out) {
  const Renaming labels(now.labels(), rename);
  const ColumnRenaming columns(now, rename);
  PartEntries entries(SchemaPart::kLabel, &out);
  Places places(saved.labels(), labels);
  std::vector<int> order;
  // What the one label of both has is loaded, whatever it is called (HaveOneLabel).
  const bool one =
      saved.labels_size() == 1 && now.labels_size() == 1 && !labels.Says(saved.labels(0).name());
  const bool unnamed = one && OneUnnamedLabel(saved.labels(), now.labels());
  if (one) places.Found(0);
  for (const SchemaLabel& label : now.labels()) {
    const int at = one ? 0 : places.Find(label.name());
    if (at < 0) {
      entries.Add(SchemaChange::kNew, label.name(), label.name());
      continue;
    }
    order.push_back(at);
    AddLabel(saved.labels(at), label, columns, new_outputs, unnamed, entries);
  }
  entries.Dropped(saved.labels(), places, [](const SchemaLabel& l) { return l.name(); });
  // Whatever they have follows them.
  entries.Turned(saved.labels(), labels, order);
}

}  // namespace strata
