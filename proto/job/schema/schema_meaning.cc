#include "proto/job/schema/schema_meaning.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/job/checks/shown.h"
#include "proto/strata/job.pb.h"

namespace strata {
namespace {

constexpr size_t kMostNames = 20;  // of fields, in a line

void AddNumber(absl::string_view name, bool given, double number, std::string& text) {
  if (given) absl::StrAppend(&text, " ", name, " ", ShownNumber(number));
}

std::string TransformText(const TransformConfig& t) {
  if (t.type().empty()) return "none";
  std::string text = t.type();
  if (t.bounds_size() > 0) {
    const auto number = [](std::string* out, double bound) { *out += ShownNumber(bound); };
    absl::StrAppend(&text, " [", absl::StrJoin(t.bounds(), ", ", number), "]");
  }
  AddNumber("mean", t.has_mean(), t.mean(), text);
  AddNumber("deviation", t.has_deviation(), t.deviation(), text);
  AddNumber("min", t.has_min(), t.min(), text);
  AddNumber("max", t.has_max(), t.max(), text);
  return text;
}

// Each number as it is: what a text tells is what it means, not whether it is the same.
bool SameTransform(const TransformConfig& a, const TransformConfig& b) {
  return a.type() == b.type() &&
         std::equal(a.bounds().begin(), a.bounds().end(), b.bounds().begin(), b.bounds().end()) &&
         a.has_mean() == b.has_mean() && a.mean() == b.mean() &&
         a.has_deviation() == b.has_deviation() && a.deviation() == b.deviation() &&
         a.has_min() == b.has_min() && a.min() == b.min() && a.has_max() == b.has_max() &&
         a.max() == b.max();
}

// "hashSeed was 0, is 9; pooling was sum, is mean".
class Differences {
 public:
  template <typename T>
  void Add(absl::string_view what, const T& saved, const T& now) {
    if (Equal(saved, now)) return;
    absl::StrAppend(&text_, text_.empty() ? "" : "; ", what, " was ", Shown(saved), ", is ",
                    Shown(now));
  }
  void Add(absl::string_view change) {
    if (!change.empty()) absl::StrAppend(&text_, text_.empty() ? "" : "; ", change);
  }
  const std::string& text() const { return text_; }

 private:
  static std::string Shown(const std::string& text) {
    return text.empty() ? "none" : ShownText(text);
  }
  static std::string Shown(float number) { return ShownNumber(number); }
  static std::string Shown(const std::optional<float>& number) {
    return number ? ShownNumber(*number) : "none";
  }
  static std::string Shown(const TransformConfig& transform) { return TransformText(transform); }
  template <typename T>
  static std::string Shown(const T& value) {
    return absl::StrCat(value);
  }
  static bool Equal(const TransformConfig& a, const TransformConfig& b) {
    return SameTransform(a, b);
  }
  template <typename T>
  static bool Equal(const T& a, const T& b) {
    return a == b;
  }

  std::string text_;
};

// Whether its keys are lines of a vocabulary.
bool HasLines(const SchemaField& field) { return field.out_of_vocabulary() > 0; }

std::string FileText(const SchemaField& field) {
  if (!HasLines(field)) return "";
  return absl::StrCat("a file, with outOfVocabulary ", field.out_of_vocabulary());
}

void AddVocabulary(const SchemaField& saved, const SchemaField& now,
                   const VocabularyContents& files, Differences& d) {
  if (HasLines(saved) != HasLines(now)) {  // of one of them values are hashed
    d.Add("vocabulary", FileText(saved), FileText(now));
    return;
  }
  d.Add(VocabularyChange(saved, now, files));
  d.Add("vocabulary.outOfVocabulary", saved.out_of_vocabulary(), now.out_of_vocabulary());
}

// Of a number its text is nothing but that number.
bool SameDefault(const SchemaField& a, const SchemaField& b) {
  double x = 0, y = 0;
  return a.kind() == "numeric" && b.kind() == a.kind() && absl::SimpleAtod(a.default_value(), &x) &&
         absl::SimpleAtod(b.default_value(), &y) && x == y;
}

// Without a value a category is that of the empty text, whether or not this is its default; values
// of other kinds are none then, and one with an empty default.
std::string DefaultText(const SchemaField& field) {
  const bool none = field.kind() == "categorical" && field.default_value().empty();
  if (!field.has_default_value() || none) return "";
  return absl::StrCat("'", field.default_value(), "'");
}

}  // namespace

bool HashesColumn(const SchemaField& field) {
  return !field.table().empty() && field.keys() != "table" && field.keys() != "value";
}

std::string MeaningChange(const SchemaField& saved, const SchemaField& now,
                          const std::optional<std::string>& table, const ColumnRenaming& columns,
                          const VocabularyContents& files) {
  Differences d;
  d.Add("kind", saved.kind(), now.kind());
  if (table) {
    d.Add("keys by", saved.keys(), now.keys());
    d.Add("table", *table, now.table());
    d.Add("hashSeed", saved.hash_seed(), now.hash_seed());
  }
  const bool hashed = table && (HashesColumn(saved) || HashesColumn(now));
  if (hashed || !columns.Same(saved.column(), now.column())) {
    d.Add("column", saved.column(), now.column());
  }
  d.Add("pooling", saved.pooling(), now.pooling());
  d.Add("transform", saved.transform(), now.transform());
  if (table) AddVocabulary(saved, now, files, d);
  d.Add("maxLength", saved.max_length(), now.max_length());
  d.Add("truncate", saved.truncate(), now.truncate());
  d.Add("separator", saved.separator(), now.separator());
  d.Add("weightSeparator", saved.weight_separator(), now.weight_separator());
  if (!SameDefault(saved, now)) d.Add("defaultValue", DefaultText(saved), DefaultText(now));
  return d.text();
}

std::string FieldsText(const std::vector<absl::string_view>& names) {
  const char* of = names.size() == 1 ? "field " : "fields ";
  const size_t named = std::min(names.size(), kMostNames), more = names.size() - named;
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(named);
  return absl::StrCat(of, absl::StrJoin(names.begin(), end, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

std::string FieldsHashing(const Schema& schema, absl::string_view table) {
  std::vector<absl::string_view> names;
  for (const SchemaField& f : schema.fields()) {
    if (f.table() == table && f.keys() == "table") names.push_back(f.name());
  }
  return names.empty() ? "" : FieldsText(names);
}

std::string RowSpace(const SchemaField& field, absl::string_view table) {
  if (table.empty()) return "";
  std::string of = field.column();
  // Under another name a table has no rows of keys that hash its name.
  if (field.keys() == "table") of = field.table();
  if (field.keys() == "value") of.clear();
  // Lines of any two vocabularies are the same keys, and buckets of a number are no values.
  const char* values = HasLines(field)                           ? "lines"
                       : field.transform().type() == "bucketise" ? "buckets"
                                                                 : "hashes";
  return absl::StrCat(table, "\n", field.keys(), "\n", of, "\n", field.hash_seed(), "\n", values);
}

std::string KeySpace(const SchemaField& field, absl::string_view table, absl::string_view column) {
  if (table.empty() || field.keys() == "value") return "";
  return absl::StrCat(RowSpace(field, table), "\n", field.keys() == "table" ? column : "");
}

std::string LineSpace(const SchemaField& field, absl::string_view table) {
  return HasLines(field) ? RowSpace(field, table) : "";
}

std::string LinesChange(const SchemaField& saved, const SchemaField& now,
                        const VocabularyContents& files) {
  Differences d;
  if (saved.vocabulary().empty() && !now.vocabulary().empty()) {
    d.Add("the checkpoint does not say which values those lines are");
  }
  AddVocabulary(saved, now, files, d);
  return d.text();
}

std::string MeaningChange(const SchemaLabel& saved, const SchemaLabel& now,
                          const ColumnRenaming& columns) {
  Differences d;
  // Of formats other than csv a label has no column.
  const bool read = !saved.column().empty() && !now.column().empty();
  if (read && !columns.Same(saved.column(), now.column())) {
    d.Add("column", saved.column(), now.column());
  }
  d.Add("kind", saved.kind(), now.kind());
  d.Add("loss", saved.loss(), now.loss());
  d.Add("weight", saved.weight(), now.weight());
  d.Add("delta", saved.delta(), now.delta());
  const auto mean = [](const SchemaLabel& l) {
    return l.has_mean() ? std::optional(l.mean()) : std::nullopt;
  };
  d.Add("mean", mean(saved), mean(now));
  return d.text();
}

bool OneUnnamedLabel(const google::protobuf::RepeatedPtrField<SchemaLabel>& a,
                     const google::protobuf::RepeatedPtrField<SchemaLabel>& b) {
  return a.size() == 1 && b.size() == 1 &&
         (a[0].name() == kUnnamedLabel || b[0].name() == kUnnamedLabel);
}

}  // namespace strata
