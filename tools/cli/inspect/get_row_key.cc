#include "tools/cli/inspect/get_row_key.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/job/checks/shown.h"
#include "proto/job/fields/field_plan.h"
#include "proto/strata/control.pb.h"
#include "worker/data/files/text_files.h"
#include "worker/data/formats/criteo_parser.h"
#include "worker/data/formats/feature_hash.h"
#include "worker/data/formats/field_reader.h"
#include "worker/data/formats/vocabulary.h"
#include "worker/data/index/vocabularies.h"
#include "worker/data/reading/field_names.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

constexpr uint32_t kCriteoCategories = 26;

// Names first, then columns, which several fields may read; a number of a field last, and only
// where no name or column is a number: without a header "1" is a column.
absl::StatusOr<uint32_t> FieldNumber(const JobSpec& spec, const std::vector<std::string>& names,
                                     uint32_t libffm_fields, absl::string_view field) {
  const DataSpec& data = spec.data();
  const bool exact = data.format() == "csv" || data.format() == "libffm";
  const auto is = [&](absl::string_view text) {
    return exact ? text == field : absl::EqualsIgnoreCase(text, field);
  };
  const FieldsPlan plan = PlanFields(spec, libffm_fields);
  const std::vector<const FieldPlan*> fields = plan.ByNumber();
  std::vector<uint32_t> readers;
  bool numbered = data.format() != "libffm";  // there a number is a column
  uint32_t number = 0;
  for (uint32_t i = 0; i < names.size(); ++i) {
    if (is(names[i])) return i;
    if (is(fields[i]->column)) readers.push_back(i);
    numbered &= !absl::SimpleAtoi(fields[i]->column, &number);
    numbered &= !absl::SimpleAtoi(names[i], &number);
  }
  if (readers.size() == 1) return readers[0];
  if (readers.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--field ", field, " is a column that several fields read; name one: ",
        absl::StrJoin(readers, ", ", [&](std::string* out, uint32_t i) { *out += names[i]; })));
  }
  if (numbered && absl::SimpleAtoi(field, &number) && number < names.size()) return number;
  if (!exact && !field.empty() && absl::ascii_toupper(field[0]) == 'I' &&
      data.integer_features() != "bucket" && absl::SimpleAtoi(field.substr(1), &number)) {
    return absl::InvalidArgumentError(absl::StrCat("--field ", field,
                                                   " is a number of the example, and has no row "
                                                   "(spec.data.integerFeatures is dense)"));
  }
  if (names.empty()) {
    return absl::InvalidArgumentError("the job's data have no categorical field");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--field ", field, " is no field of the job's data; there are ",
      numbered ? absl::StrCat("0 to ", names.size() - 1, ": ") : "", absl::StrJoin(names, ", ")));
}

// The field alone.
absl::StatusOr<CategoryKey> FindField(const JobSpec& spec, absl::string_view field,
                                      uint32_t libffm_fields) {
  const DataSpec& data = spec.data();
  if (data.format() == "libfm" || data.format() == "libsvm") {
    return absl::InvalidArgumentError(
        absl::StrCat("the job's data are ", data.format(),
                     ", whose features are numbers of their own: name one by --key"));
  }
  const std::vector<std::string> names = FieldNames(spec, libffm_fields);
  auto number = FieldNumber(spec, names, libffm_fields, field);
  if (!number.ok()) return number.status();
  return CategoryKey{.field = *number, .name = names[*number]};
}

// The reader of a field of csv; `contents`: what its vocabulary has.
absl::StatusOr<std::shared_ptr<const FieldReader>> ReaderOf(const JobSpec& spec, uint32_t field,
                                                            const Schema* saved,
                                                            absl::string_view who,
                                                            VocabularyContents* contents) {
  const FieldsPlan fields = PlanFields(spec);
  const FieldPlan& plan = *fields.ByNumber()[field];
  JobSpec own = spec;
  for (FieldConfig& other : *own.mutable_fields()) {
    if (other.name() != plan.name) other.clear_vocabulary();
  }
  TextFiles files;
  VocabularyOptions options;
  if (saved != nullptr) options.known = KnownVocabularies(own, *saved);
  options.known_by = std::string(who);
  InputIndex read;
  const auto vocabularies = LoadVocabularies(own, &files, &read, options);
  if (!vocabularies.ok()) return vocabularies.status();
  *contents = VocabulariesOf(read);
  std::shared_ptr<const Vocabulary> vocabulary;
  if (plan.vocabulary) vocabulary = vocabularies->at(plan.vocabulary->file);
  return std::make_shared<const FieldReader>(plan, vocabulary);
}

bool MayHaveSeveral(const FieldPlan& plan) {
  return plan.kind == FieldKind::kMultiValued || plan.kind == FieldKind::kSequence;
}

// A value without its weight.
absl::string_view WithoutWeight(const FieldPlan& plan, absl::string_view part) {
  return part.substr(0, plan.weight_separator == 0 ? part.npos : part.rfind(plan.weight_separator));
}

// What of a column's text is hashed, or looked up. REQUIRES: it has one feature.
std::string HashedOf(const FieldPlan& plan, const std::string& text) {
  absl::string_view value = text;
  if (plan.kind == FieldKind::kNumeric) value = absl::StripAsciiWhitespace(text);
  if (MayHaveSeveral(plan)) {
    const std::vector<absl::string_view> parts =
        absl::StrSplit(text, plan.separator, absl::SkipEmpty());
    const bool last = plan.truncation == Truncation::kOldest;  // of a sequence of one value
    value = parts.empty() ? "" : WithoutWeight(plan, last ? parts.back() : parts.front());
  }
  if (value.empty() && plan.default_value) return *plan.default_value;
  return std::string(value);
}

// Of a field that is bucketised.
std::optional<NumberBucket> BucketOf(const FieldPlan& plan, Key key) {
  if (plan.transform.type != TransformType::kBucketise) return std::nullopt;
  const uint64_t seed = SeedOf(plan);
  NumberBucket out;
  out.missing = key.value == MissingBucketKey(seed);
  if (out.missing) return out;
  for (const double bound : plan.transform.bounds) {
    if (key.value == BucketKey(seed, out.lower, bound)) {
      out.upper = bound;
      return out;
    }
    out.lower = bound;
  }
  return out;
}

// The one feature that training makes of a column with that text.
absl::StatusOr<Key> KeyOfValue(const FieldReader& reader, const std::string& name,
                               const std::string& value) {
  Batch batch;
  const std::string reason = reader.AppendFeatures(value, &batch);
  if (reason.empty() && batch.keys.size() == 1) return Key(batch.keys[0]);
  const std::string of = absl::StrCat("--value '", ShownText(value), "' of ", name);
  if (!reason.empty()) return absl::InvalidArgumentError(absl::StrCat(of, ": ", reason));
  if (batch.keys.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        of,
        ": a line without a value has no row of this field, which has no defaultValue; name a "
        "value"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(of, " is ", batch.keys.size(), " values; name one of them"));
}

}  // namespace

absl::StatusOr<uint64_t> ParseNumber64(absl::string_view option, absl::string_view text) {
  uint64_t number = 0;
  const bool hex = absl::StartsWith(text, "0x") || absl::StartsWith(text, "0X");
  const bool good = hex ? absl::SimpleHexAtoi(text, &number) : absl::SimpleAtoi(text, &number);
  if (good) return number;
  return absl::InvalidArgumentError(absl::StrCat(
      option, " '", text, "' is not a whole number from 0 to 18446744073709551615 (2^64 - 1)"));
}

absl::StatusOr<FieldKeys> FieldKeys::Make(const JobSpec& spec, absl::string_view field,
                                          uint32_t libffm_fields, const Schema* saved,
                                          absl::string_view who) {
  const std::string& format = spec.data().format();
  auto found = FindField(spec, field, libffm_fields);
  if (!found.ok()) return found.status();
  FieldKeys out;
  out.field_ = found->field;
  out.name_ = found->name;
  out.is_hashed_ = format != "libffm";
  if (!out.is_hashed_) return out;
  if (format == "csv") {
    auto reader = ReaderOf(spec, out.field_, saved, who, &out.vocabularies_);
    if (!reader.ok()) return reader.status();
    out.reader_ = *std::move(reader);
    return out;
  }
  out.seed_ = FieldSeed(spec.model().hash_seed(), out.field_);
  out.buckets_ = out.field_ >= kCriteoCategories;
  return out;
}

absl::StatusOr<CategoryKey> FieldKeys::Of(const std::string& value) const {
  CategoryKey out;
  out.field = field_;
  out.name = name_;
  out.is_hashed = is_hashed_;
  if (!is_hashed_) {
    const auto key = ParseNumber64("--value", value);
    if (!key.ok()) return key.status();
    out.key = Key(*key);
    return out;
  }
  out.hashed = value;
  if (reader_ != nullptr) {
    const auto key = KeyOfValue(*reader_, name_, value);
    if (!key.ok()) return key.status();
    out.hashed = HashedOf(reader_->plan(), value);
    out.key = *key;
    out.is_shared = reader_->IsShared(key->value);
    out.bucket = BucketOf(reader_->plan(), *key);
    out.line = reader_->LineOf(out.hashed);
    out.is_hashed = !out.bucket && (!out.line || (*out.line == 0 && !out.hashed.empty()));
    return out;
  }
  if (buckets_ && !value.empty()) {
    int64_t integer = 0;
    if (!absl::SimpleAtoi(value, &integer)) {
      return absl::InvalidArgumentError(absl::StrCat("--value '", value, "' of ", name_,
                                                     " is not an integer of at most 64 bits"));
    }
    out.hashed = CriteoBucket(integer);
  }
  out.key = Key(FeatureKey(seed_, out.hashed));
  return out;
}

absl::Status FieldKeys::CheckOneValue(const std::string& text) const {
  if (reader_ == nullptr || !MayHaveSeveral(reader_->plan())) return absl::OkStatus();
  const FieldPlan& plan = reader_->plan();
  const std::string of = absl::StrCat("value '", ShownText(text), "' of ", name_);
  if (text.find(plan.separator) != text.npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(of, " has the field's separator '", std::string(1, plan.separator),
                     "', at which training parts values, so no line has it; give one value"));
  }
  const absl::string_view value = WithoutWeight(plan, text);
  if (value.size() == text.size() || text.substr(value.size() + 1) == "1") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(of, " has a weight behind '", std::string(1, plan.weight_separator),
                   "', and rows have none; leave it out, or make it 1"));
}

absl::StatusOr<CategoryKey> KeyOfCategory(const JobSpec& spec, absl::string_view field,
                                          const std::string& value, uint32_t libffm_fields,
                                          const Schema* saved, absl::string_view who) {
  const auto keys = FieldKeys::Make(spec, field, libffm_fields, saved, who);
  if (!keys.ok()) return keys.status();
  return keys->Of(value);
}

namespace {

std::string TableNames(const ModelTables& tables) {
  return absl::StrJoin(tables.tables, " and ",
                       [](std::string* out, const TableSpec& table) { out->append(table.name); });
}

absl::StatusOr<uint32_t> TableOfField(const ModelTables& tables, const JobSpec& spec,
                                      absl::string_view name, absl::string_view field) {
  const auto category = FindField(spec, field, tables.fields);
  if (!category.ok()) return category.status();
  const uint32_t table = tables.field_tables[category->field];
  if (name.empty() || tables.tables[table].name == name) return table;
  return absl::InvalidArgumentError(absl::StrCat("field ", category->name, " is of table ",
                                                 tables.tables[table].name, ", not of ", name));
}

}  // namespace

absl::StatusOr<uint32_t> FindRowTable(const ModelTables& tables, const JobSpec& spec,
                                      absl::string_view name, absl::string_view field) {
  const bool by_field = tables.several() && !field.empty();
  if (name.empty() && by_field) return TableOfField(tables, spec, name, field);
  if (name.empty() && !tables.several()) return 0;
  if (name.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("get-row: name the row's --table; the model has ", TableNames(tables)));
  }
  for (uint32_t t = 0; t < tables.tables.size(); ++t) {
    if (tables.tables[t].name != name) continue;
    // That the dense table has no fields is told with the row.
    return by_field && t != ModelTables::kDenseTable ? TableOfField(tables, spec, name, field) : t;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no table '", name, "'; the model has ", TableNames(tables)));
}

absl::StatusOr<TensorRow> TensorRowOf(const TableSpec& table, Key key) {
  const uint32_t dim = table.dim();
  std::vector<std::string> places;
  for (const TensorSpec& t : table.tensors) {
    const uint64_t row = key.value - t.first.value;
    if (key.value >= t.first.value && row < t.Rows(dim)) {
      const uint64_t first = row * dim;
      return TensorRow{t.name, first,
                       static_cast<uint32_t>(std::min<uint64_t>(dim, t.elements - first))};
    }
    places.push_back(
        absl::StrCat(t.name, " ", t.first.value, " to ", t.first.value + t.Rows(dim) - 1));
  }
  return absl::InvalidArgumentError(absl::StrCat("no tensor of table ", table.name,
                                                 " has a row at ", key.value,
                                                 "; there are: ", absl::StrJoin(places, ", ")));
}

}  // namespace strata
