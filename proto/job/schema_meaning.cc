#include "proto/job/schema_meaning.h"

#include <cstddef>
#include <array>
#include <charconv>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "proto/strata/job.pb.h"

namespace strata {
namespace {

// "hashSeed was 0, is 9; pooling was sum, is mean".
class Differences {
 public:
  template <typename T>
  void Add(absl::string_view what, const T& saved, const T& now) {
    if (saved == now) return;
    absl::StrAppend(&text_, text_.empty() ? "" : "; ", what, " was ", Shown(saved), ", is ",
                    Shown(now));
  }
  void Add(absl::string_view change) {
    if (!change.empty()) absl::StrAppend(&text_, text_.empty() ? "" : "; ", change);
  }
  const std::string& text() const { return text_; }

 private:
  static std::string Shown(const std::string& text) { return text.empty() ? "none" : text; }
  // With as many digits as it takes: two numbers that differ do so in their texts.
  static std::string Shown(float number) {
    const std::string text = absl::StrCat(number);
    float read = 0;
    return absl::SimpleAtof(text, &read) && read == number ? text : absl::StrFormat("%.9g", number);
  }
  static std::string Shown(const std::optional<float>& number) {
    return number ? Shown(*number) : "none";
  }
  template <typename T>
  static std::string Shown(const T& value) {
    return absl::StrCat(value);
  }

  std::string text_;
};

// The shortest text that reads as this number: two numbers never have one.
std::string Exactly(double number) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number);
  return std::string(text.data(), end.ptr);
}

std::string TransformText(const TransformConfig& t) {
  std::string text = t.type();
  if (t.bounds_size() > 0) {
    const auto exactly = [](std::string* out, double bound) { out->append(Exactly(bound)); };
    absl::StrAppend(&text, " [", absl::StrJoin(t.bounds(), ", ", exactly), "]");
  }
  if (t.has_mean()) absl::StrAppend(&text, " mean ", Exactly(t.mean()));
  if (t.has_deviation()) absl::StrAppend(&text, " deviation ", Exactly(t.deviation()));
  if (t.has_min()) absl::StrAppend(&text, " min ", Exactly(t.min()));
  if (t.has_max()) absl::StrAppend(&text, " max ", Exactly(t.max()));
  return text;
}

}  // namespace

std::string MeaningChange(const SchemaField& saved, const SchemaField& now,
                          const std::optional<std::string>& table,
                          const VocabularyContents& files) {
  Differences d;
  d.Add("kind", saved.kind(), now.kind());
  if (table) {
    d.Add("keys by", saved.keys(), now.keys());
    // Keys may hash the column's name; numbers do not, nor do fields that go by their table's.
    const bool by_column = !now.table().empty() && now.keys() != "table";
    if (by_column) d.Add("column", saved.column(), now.column());
    d.Add("table", *table, now.table());
    d.Add("hashSeed", saved.hash_seed(), now.hash_seed());
  }
  d.Add("pooling", saved.pooling(), now.pooling());
  d.Add("transform", TransformText(saved.transform()), TransformText(now.transform()));
  if (table) {
    d.Add(VocabularyChange(saved, now, files));
    d.Add("vocabulary.outOfVocabulary", saved.out_of_vocabulary(), now.out_of_vocabulary());
  }
  d.Add("maxLength", saved.max_length(), now.max_length());
  d.Add("truncate", saved.truncate(), now.truncate());
  d.Add("separator", saved.separator(), now.separator());
  d.Add("weightSeparator", saved.weight_separator(), now.weight_separator());
  d.Add("defaultValue", saved.has_default_value() ? "'" + saved.default_value() + "'" : "",
        now.has_default_value() ? "'" + now.default_value() + "'" : "");
  return d.text();
}

std::string KeySpace(const SchemaField& field, absl::string_view table) {
  if (table.empty() || field.keys() == "value") return "";
  const std::string column = field.keys() == "table" ? std::string() : field.column();
  // Lines of any two vocabularies are the same keys.
  const char* values = field.out_of_vocabulary() > 0 ? "lines" : "hashes";
  return absl::StrCat(table, "\n", field.keys(), "\n", column, "\n", field.hash_seed(), "\n",
                      values);
}

std::string MeaningChange(const SchemaLabel& saved, const SchemaLabel& now) {
  Differences d;
  d.Add("column", saved.column(), now.column());
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

std::optional<int> LabelOf(absl::string_view tensor) {
  int label = 0;
  if (!absl::ConsumePrefix(&tensor, "tower_") && !absl::ConsumePrefix(&tensor, "gate_")) {
    return std::nullopt;
  }
  if (!absl::SimpleAtoi(tensor.substr(0, tensor.find('_')), &label)) return std::nullopt;
  return label;
}

std::optional<std::string> SequenceOf(absl::string_view tensor) {
  // attention_NAME_LAYER_weight, or _bias; NAME may hold anything.
  if (!absl::ConsumePrefix(&tensor, "attention_")) return std::nullopt;
  if (!absl::ConsumeSuffix(&tensor, "_weight") && !absl::ConsumeSuffix(&tensor, "_bias")) {
    return std::nullopt;
  }
  const size_t end = tensor.rfind('_');
  if (end == absl::string_view::npos) return std::nullopt;
  return std::string(tensor.substr(0, end));
}

bool GoesByLabels(const Schema& schema, absl::string_view tensor) {
  for (const char* name :
       {"bias", "numeric_weight", "interaction_weight", "output_weight", "output_bias"}) {
    if (tensor == name) return true;
  }
  absl::string_view last;  // layer_N_weight
  for (const SchemaTensor& t : schema.tensors()) {
    if (absl::StartsWith(t.name(), "layer_") && absl::EndsWith(t.name(), "_weight"))
      last = t.name();
  }
  const bool last_is_output =
      schema.model() == "wide_deep" || schema.model() == "deepfm" || schema.model() == "dlrm";
  absl::string_view stem = last;
  if (!last_is_output || !absl::ConsumeSuffix(&stem, "_weight")) return false;
  return tensor == last || tensor == absl::StrCat(stem, "_bias");
}

}  // namespace strata
