#include "proto/job/fields/field_spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/job/checks/spec_checks.h"
#include "proto/job/fields/data_fields.h"
#include "proto/job/fields/format_fields.h"
#include "proto/job/model/model_types.h"

namespace strata::spec {
namespace {

constexpr uint32_t kLongestSequence = 4096;
constexpr char kOneTable[] = "features";

// The tables in which fields may have their rows. `job` outlives it, and its tables stay.
class TableNames {
 public:
  explicit TableNames(const JobSpec& job) {
    for (const TableConfig& table : job.tables()) names_.push_back(table.name());
    if (names_.empty()) names_.push_back(kOneTable);
    known_.insert(names_.begin(), names_.end());
  }
  bool Has(absl::string_view name) const { return known_.contains(name); }
  std::string Text() const { return absl::StrJoin(names_, ", "); }

 private:
  std::vector<absl::string_view> names_;  // in the job's order
  std::set<absl::string_view> known_;
};

// One field and where messages say that it stands.
struct Place {
  FieldConfig& field;
  std::string at;  // "spec.fields[2]"

  std::string of(absl::string_view option) const { return absl::StrCat(at, ".", option); }
  std::string named() const { return absl::StrCat("field '", field.name(), "'"); }
};

absl::Status CheckName(const Place& p, std::map<std::string, std::string>& seen) {
  const std::string& name = p.field.name();
  if (name.empty()) return Bad(p.of("name"), "is missing; name the field");
  if (name.size() > 63) {
    return Bad(p.of("name"), absl::StrCat("'", name, "' has ", name.size(),
                                          " characters; at most 63 are allowed"));
  }
  for (const char c : name) {
    if (absl::ascii_isalnum(c) || c == '_' || c == '-') continue;
    return Bad(p.of("name"),
               absl::StrCat("'", name, "' may hold letters, digits, '_' and '-' only"));
  }
  const auto [it, fresh] = seen.emplace(name, p.at);
  if (fresh) return absl::OkStatus();
  return Bad(p.of("name"),
             absl::StrCat("'", name, "' is the name of ", it->second, " too; give it another"));
}

// Options that only some kinds of field have.
absl::Status CheckKindOf(const Place& p, absl::string_view option, bool given,
                         std::initializer_list<absl::string_view> kinds) {
  if (!given) return absl::OkStatus();
  for (const absl::string_view kind : kinds) {
    if (p.field.kind() == kind) return absl::OkStatus();
  }
  return Bad(p.of(option), absl::StrCat("is for kind ", absl::StrJoin(kinds, " and "), ", and ",
                                        p.named(), " is ", p.field.kind(), "; remove it"));
}

absl::Status CheckOptions(const Place& p) {
  const FieldConfig& f = p.field;
  STRATA_RETURN_IF_BAD(
      CheckKindOf(p, "separator", !f.separator().empty(), {"multiValued", "sequence"}));
  STRATA_RETURN_IF_BAD(CheckKindOf(p, "pooling", !f.pooling().empty(), {"multiValued"}));
  STRATA_RETURN_IF_BAD(
      CheckKindOf(p, "weightSeparator", !f.weight_separator().empty(), {"multiValued"}));
  STRATA_RETURN_IF_BAD(CheckKindOf(p, "maxLength", f.has_max_length(), {"sequence"}));
  STRATA_RETURN_IF_BAD(CheckKindOf(p, "truncate", !f.truncate().empty(), {"sequence"}));
  STRATA_RETURN_IF_BAD(CheckKindOf(p, "transform", f.has_transform(), {"numeric"}));
  return CheckKindOf(p, "vocabulary", f.has_vocabulary(),
                     {"categorical", "multiValued", "sequence"});
}

absl::Status CheckReal(const std::string& field, double value) {
  if (std::isfinite(value)) return absl::OkStatus();
  return Bad(field, absl::StrCat(value, " is not a finite number; write one as 0.5 or 1e-3"));
}

// Options that only some transforms have.
absl::Status CheckTransformOptions(const Place& p) {
  const TransformConfig& t = p.field.transform();
  const struct {
    const char* option;
    bool given;
    const char* type;
  } options[] = {{"bounds", !t.bounds().empty(), "bucketise"},
                 {"mean", t.has_mean(), "standardise"},
                 {"deviation", t.has_deviation(), "standardise"},
                 {"min", t.has_min(), "clip"},
                 {"max", t.has_max(), "clip"}};
  for (const auto& [option, given, type] : options) {
    if (!given || t.type() == type) continue;
    return Bad(p.of(absl::StrCat("transform.", option)),
               absl::StrCat("is for type ", type, ", and the transform of ", p.named(), " is ",
                            t.type(), "; remove it"));
  }
  return absl::OkStatus();
}

absl::Status CheckBounds(const Place& p) {
  const auto& bounds = p.field.transform().bounds();
  const std::string at = p.of("transform.bounds");
  if (bounds.empty()) return Bad(at, "is missing; give the bounds of the buckets, ascending");
  for (int i = 0; i < bounds.size(); ++i) {
    STRATA_RETURN_IF_BAD(CheckReal(absl::StrCat(at, "[", i, "]"), bounds[i]));
    if (i == 0 || bounds[i - 1] < bounds[i]) continue;
    return Bad(absl::StrCat(at, "[", i, "]"),
               absl::StrCat(bounds[i], " is not above the bound before it, ", bounds[i - 1],
                            "; give them strictly ascending"));
  }
  return absl::OkStatus();
}

absl::Status CheckTransform(const Place& p) {
  if (!p.field.has_transform()) return absl::OkStatus();
  const TransformConfig& t = p.field.transform();
  const std::string at = p.of("transform.");
  STRATA_RETURN_IF_BAD(
      CheckChoice(at + "type", t.type(), {"log", "bucketise", "standardise", "clip"}));
  STRATA_RETURN_IF_BAD(CheckTransformOptions(p));
  if (t.type() == "bucketise") return CheckBounds(p);
  if (t.type() == "standardise") {
    if (!t.has_mean()) return Bad(at + "mean", "is missing; give the mean of the values");
    if (!t.has_deviation()) {
      return Bad(at + "deviation", "is missing; give the standard deviation of the values");
    }
    STRATA_RETURN_IF_BAD(CheckReal(at + "mean", t.mean()));
    STRATA_RETURN_IF_BAD(CheckReal(at + "deviation", t.deviation()));
    if (t.deviation() > 0) return absl::OkStatus();
    return Bad(at + "deviation", absl::StrCat(t.deviation(), " must be above 0"));
  }
  if (t.type() != "clip") return absl::OkStatus();
  if (!t.has_min() && !t.has_max()) return Bad(at + "min", "is missing, and so is max; give one");
  if (t.has_min()) STRATA_RETURN_IF_BAD(CheckReal(at + "min", t.min()));
  if (t.has_max()) STRATA_RETURN_IF_BAD(CheckReal(at + "max", t.max()));
  if (t.has_min() && t.has_max() && t.min() > t.max()) {
    return Bad(at + "min", absl::StrCat(t.min(), " is above max, ", t.max()));
  }
  return absl::OkStatus();
}

// As lines are read (worker/data/formats/number_text.h): the whole text is a finite decimal number,
// and what the transform makes of it is a finite float.
absl::Status CheckDefault(const FieldConfig& f, absl::string_view at) {
  if (!f.has_default_value() || f.kind() != "numeric") return absl::OkStatus();
  const auto bad = [&](absl::string_view what) {
    return Bad(absl::StrCat(at, ".defaultValue"),
               absl::StrCat("'", f.default_value(), "' ", what, ", and field '", f.name(),
                            "' is numeric; write a number as 0.5 or -3"));
  };
  absl::string_view text = f.default_value();
  if (absl::ConsumePrefix(&text, "+") && absl::StartsWith(text, "-")) return bad("is not a number");
  double value = 0;
  const char* end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, value);
  if (read.ec == std::errc::invalid_argument || read.ptr != end) return bad("is not a number");
  const bool too_far = read.ec == std::errc::result_out_of_range;
  if (too_far || !std::isfinite(value)) return bad("is no finite number");
  const TransformConfig& t = f.transform();
  if (t.type() == "bucketise" || t.type() == "log") return absl::OkStatus();
  if (t.type() == "standardise") value = (value - t.mean()) / t.deviation();
  if (t.type() == "clip" && t.has_min()) value = std::max(value, t.min());
  if (t.type() == "clip" && t.has_max()) value = std::min(value, t.max());
  if (f.has_transform() && std::isfinite(static_cast<float>(value))) return absl::OkStatus();
  if (std::fabs(value) <= std::numeric_limits<float>::max()) return absl::OkStatus();
  return bad(f.has_transform() ? "is out of float32's range behind the transform"
                               : "is out of float32's range");
}

// Of a line's text separators make several values, or a weight.
absl::Status CheckOneValue(const Place& p) {
  const FieldConfig& f = p.field;
  for (const auto& [option, separator] : {std::pair{"separator", f.separator()},
                                          std::pair{"weightSeparator", f.weight_separator()}}) {
    if (separator.empty() || !absl::StrContains(f.default_value(), separator)) continue;
    return Bad(p.of("defaultValue"),
               absl::StrCat("'", f.default_value(), "' holds '", separator, "', the ", option,
                            " of ", p.named(),
                            ", and a default is one value, of weight 1; give one value, or "
                            "another ",
                            option));
  }
  return absl::OkStatus();
}

// Whether it has rows.
bool HasKeys(const FieldConfig& f) {
  return f.kind() != "numeric" || f.transform().type() == "bucketise";
}

absl::Status ResolveTable(const JobSpec& job, const TableNames& tables, const Place& p) {
  FieldConfig& f = p.field;
  if (!HasKeys(f)) {
    if (!f.table().empty()) {
      return Bad(p.of("table"), absl::StrCat(p.named(),
                                             " is a number, and has no rows; remove it, or "
                                             "bucketise the field"));
    }
    if (f.has_hash_seed()) {
      return Bad(p.of("hashSeed"),
                 absl::StrCat(p.named(), " is a number, and nothing of it is hashed; remove it"));
    }
    return absl::OkStatus();
  }
  if (f.table().empty()) {
    if (!job.tables().empty()) {
      return Bad(p.of("table"), absl::StrCat("is missing; name a table of spec.tables for ",
                                             p.named(), ": ", tables.Text()));
    }
    f.set_table(kOneTable);
  }
  if (tables.Has(f.table())) return absl::OkStatus();
  return Bad(p.of("table"), absl::StrCat("'", f.table(), "' of ", p.named(),
                                         " is no table of the job; there are: ", tables.Text()));
}

absl::Status CheckSeparator(const std::string& at, const std::string& text) {
  if (text.size() == 1 && text != "\n" && text != "\r" && text != "\"" && text[0] != '\0') {
    return absl::OkStatus();
  }
  return Bad(at, absl::StrCat("'", text, "' must be one character, or \"\\t\""));
}

absl::Status ResolveSeparators(const JobSpec& job, const Place& p) {
  FieldConfig& f = p.field;
  if (f.kind() != "multiValued" && f.kind() != "sequence") return absl::OkStatus();
  if (f.separator().empty()) f.set_separator("|");
  if (f.separator() == "\\t") f.set_separator("\t");
  if (f.weight_separator() == "\\t") f.set_weight_separator("\t");
  const std::string& delimiter = job.data().columns().delimiter();
  for (const auto& [option, text] : {std::pair{"separator", f.separator()},
                                     std::pair{"weightSeparator", f.weight_separator()}}) {
    if (text.empty()) continue;
    STRATA_RETURN_IF_BAD(CheckSeparator(p.of(option), text));
    if (text != delimiter) continue;
    return Bad(p.of(option),
               absl::StrCat("'", text, "' is the delimiter of columns too; take another"));
  }
  if (f.weight_separator() == f.separator()) {
    return Bad(p.of("weightSeparator"),
               absl::StrCat("'", f.separator(), "' is the separator of values too; take another"));
  }
  return absl::OkStatus();
}

absl::Status ResolveMultiValued(const Place& p) {
  FieldConfig& f = p.field;
  if (f.pooling().empty()) f.set_pooling("sum");
  STRATA_RETURN_IF_BAD(CheckChoice(p.of("pooling"), f.pooling(), {"sum", "mean", "max"}));
  if (f.pooling() == "max" && !f.weight_separator().empty()) {
    return Bad(p.of("weightSeparator"), absl::StrCat("weights mean nothing to max pooling, which ",
                                                     p.named(), " has; remove it, or take sum"));
  }
  return absl::OkStatus();
}

absl::Status ResolveSequence(const JobSpec& job, const Place& p) {
  FieldConfig& f = p.field;
  if (!f.has_max_length()) {
    return Bad(p.of("maxLength"), absl::StrCat("is missing; say how many values of sequence '",
                                               f.name(), "' are kept, 1 to ", kLongestSequence));
  }
  STRATA_RETURN_IF_BAD(CheckRange(p.of("maxLength"), f.max_length(), 1, kLongestSequence));
  if (f.truncate().empty()) f.set_truncate("oldest");
  STRATA_RETURN_IF_BAD(CheckChoice(p.of("truncate"), f.truncate(), {"oldest", "newest", "never"}));
  if (InfoOf(job.model().type()).sequences) return absl::OkStatus();
  return Bad(p.of("kind"),
             absl::StrCat(p.named(), " is a sequence, and model type ", job.model().type(),
                          " reads none; take kind multiValued, which is pooled"));
}

absl::Status ResolveVocabulary(const Place& p) {
  if (!p.field.has_vocabulary()) return absl::OkStatus();
  VocabularyConfig& v = *p.field.mutable_vocabulary();
  const std::string at = p.of("vocabulary.");
  if (v.file().empty()) {
    return Bad(at + "file",
               absl::StrCat("is missing; name the file with the values of ", p.named()));
  }
  STRATA_RETURN_IF_BAD(CheckPath(at + "file", v.file()));
  if (!v.has_out_of_vocabulary()) v.set_out_of_vocabulary(1);
  return CheckRange(at + "outOfVocabulary", v.out_of_vocabulary(), 1, 1u << 30);
}

absl::Status ResolveField(const JobSpec& job, const TableNames& tables, const Place& p) {
  STRATA_RETURN_IF_BAD(CheckChoice(p.of("kind"), p.field.kind(),
                                   {"categorical", "multiValued", "sequence", "numeric"}));
  if (p.field.column().empty()) p.field.set_column(p.field.name());
  STRATA_RETURN_IF_BAD(CheckOptions(p));
  STRATA_RETURN_IF_BAD(CheckTransform(p));
  STRATA_RETURN_IF_BAD(ResolveTable(job, tables, p));
  STRATA_RETURN_IF_BAD(ResolveSeparators(job, p));
  STRATA_RETURN_IF_BAD(CheckOneValue(p));
  if (p.field.kind() == "multiValued") STRATA_RETURN_IF_BAD(ResolveMultiValued(p));
  if (p.field.kind() == "sequence") STRATA_RETURN_IF_BAD(ResolveSequence(job, p));
  return ResolveVocabulary(p);
}

// Line numbers of two files would be the same keys, as would buckets of two numbers of them. Fields
// share rows by table, without spec.tables by column.
absl::Status CheckVocabularies(JobSpec& job) {
  const bool by_table = KeysHashTable(job);
  std::map<std::pair<std::string, uint64_t>, const FieldConfig*> first;
  for (int i = 0; i < job.fields_size(); ++i) {
    const FieldConfig& f = job.fields(i);
    if (!f.has_vocabulary()) continue;
    const uint64_t seed = f.has_hash_seed() ? f.hash_seed() : job.model().hash_seed();
    const std::string& shared = by_table ? f.table() : f.column();
    const auto [it, fresh] = first.try_emplace({shared, seed}, &f);
    if (fresh) continue;
    const VocabularyConfig &was = it->second->vocabulary(), &is = f.vocabulary();
    const bool other_file = was.file() != is.file();
    if (!other_file && was.out_of_vocabulary() == is.out_of_vocabulary()) continue;
    return Bad(
        absl::StrCat("spec.fields[", i, "].vocabulary.", other_file ? "file" : "outOfVocabulary"),
        absl::StrCat("field '", f.name(), "' and field '", it->second->name(), "' share ",
                     by_table ? "table " : "the rows of column ", shared,
                     " and have other vocabularies; give one of them a hashSeed of its own",
                     by_table ? ", or another table" : ""));
  }
  return absl::OkStatus();
}

// A column of csv that the file cannot have.
absl::Status CheckCsvColumns(JobSpec& job) {
  if (job.labels().empty() && job.data().columns().label().empty()) {
    return Bad("spec.labels",
               "is missing; csv needs the label's column, as in {name: click, column: clicked}");
  }
  for (int i = 0; i < job.fields_size(); ++i) {
    const FieldConfig& f = job.fields(i);
    const std::string at = absl::StrCat("spec.fields[", i, "].column");
    uint32_t position = 0;
    if (!job.data().columns().header() && !absl::SimpleAtoi(f.column(), &position)) {
      return Bad(at, absl::StrCat("'", f.column(),
                                  "' is not a position; without a header columns are numbered from "
                                  "0"));
    }
  }
  return absl::OkStatus();
}

// Where messages say that field number `i` stands.
std::string PlaceOf(int i) { return absl::StrCat("spec.fields[", i, "]"); }

}  // namespace

absl::Status CheckDefaults(const JobSpec& job) {
  for (int i = 0; i < job.fields_size(); ++i) {
    STRATA_RETURN_IF_BAD(CheckDefault(job.fields(i), PlaceOf(i)));
  }
  return absl::OkStatus();
}

absl::Status ResolveFields(JobSpec& job) {
  if (job.fields().empty()) return absl::OkStatus();
  STRATA_RETURN_IF_BAD(CheckRange("spec.fields (fields)", job.fields_size(), 1, kMostFields));
  const TableNames tables(job);
  std::map<std::string, std::string> seen;
  for (int i = 0; i < job.fields_size(); ++i) {
    const Place place{*job.mutable_fields(i), PlaceOf(i)};
    STRATA_RETURN_IF_BAD(CheckName(place, seen));
    STRATA_RETURN_IF_BAD(ResolveField(job, tables, place));
  }
  STRATA_RETURN_IF_BAD(CheckVocabularies(job));
  return job.data().format() == "csv" ? CheckCsvColumns(job) : CheckFormatFields(job);
}

}  // namespace strata::spec
