#include "proto/job/schema/schema_text.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/job/checks/shown.h"
#include "proto/strata/job.pb.h"

namespace strata {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string NumberText(const Message& message, const FieldDescriptor* field) {
  const Reflection* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_FLOAT:
      return ShownNumber(reflection->GetFloat(message, field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return ShownNumber(reflection->GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetBool(message, field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(reflection->GetUInt32(message, field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(reflection->GetUInt64(message, field));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->GetString(message, field);
    default:
      return "";
  }
}

// Whether a 0 says that there is none of it.
bool IsAbsentAtZero(const std::string& field) {
  for (const char* name :
       {"weight_decay", "clip_norm", "clip_value", "l1", "l2", "initial_accumulator",
        "warmup_steps", "final_factor", "ttl_steps", "bytes_per_partition"}) {
    if (field == name) return true;
  }
  return false;
}

template <typename List>
std::string StateText(const List& state) {
  return state.empty() ? "no state" : absl::StrCat("state ", absl::StrJoin(state, ", "));
}

// The codec, or empty: rows are pulled as they are.
const std::string& CodecOf(const std::string& pull_codec) {
  static const std::string none;
  return pull_codec == "float32" ? none : pull_codec;
}

// What the job says of the rows of tables, of lines and of where vocabularies lie, which no schema
// has; without defaults.
JobSpec BesideSchema(const JobSpec& spec) {
  JobSpec beside;
  beside.set_sample_weight(spec.sample_weight());
  const std::string& codec = CodecOf(spec.training().pull_codec());
  if (spec.tables().empty()) {
    if (spec.has_life_cycle()) *beside.mutable_life_cycle() = spec.life_cycle();
    if (!codec.empty()) beside.mutable_training()->set_pull_codec(codec);
  }
  for (const TableConfig& t : spec.tables()) {
    if (!t.has_life_cycle() && CodecOf(t.pull_codec()).empty()) continue;
    TableConfig& table = *beside.add_tables();
    table.set_name(t.name());
    table.set_pull_codec(CodecOf(t.pull_codec()));
    if (t.has_life_cycle()) *table.mutable_life_cycle() = t.life_cycle();
  }
  for (const FieldConfig& f : spec.fields()) {
    if (f.vocabulary().file().empty()) continue;
    FieldConfig& field = *beside.add_fields();
    field.set_name(f.name());
    field.mutable_vocabulary()->set_file(f.vocabulary().file());
  }
  return beside;
}

// A line, whatever names hold.
void AddLine(absl::string_view text, std::string& out) {
  absl::StrAppend(&out, ShownText(text), "\n");
}

void AddRowsOf(const SchemaTable& table, const JobSpec& spec, std::string& out) {
  const RowsText rows = RowsTextOf(spec, table.name());
  if (!rows.life_cycle.empty()) AddLine(absl::StrCat("  lifeCycle", rows.life_cycle), out);
  if (!rows.pull_codec.empty()) AddLine(absl::StrCat("  pullCodec ", rows.pull_codec), out);
}

void AddTable(const SchemaTable& table, std::string& out) {
  AddLine(absl::StrCat("table ", table.name(), "  number ", table.table(),
                       table.scored() ? "  rows have a score" : ""),
          out);
  for (const SchemaSegment& s : table.segments()) {
    AddLine(absl::StrCat("  ", s.name(), "(", s.dim(), ")  ", s.initializer(), "  ",
                         ConfigText(s.optimizer()), "  ", StateText(s.state())),
            out);
  }
}

void AddTensor(const SchemaTensor& tensor, std::string& out) {
  AddLine(absl::StrCat("tensor ", tensor.name(), "(", absl::StrJoin(tensor.shape(), ", "), ")  ",
                       tensor.rows(), tensor.rows() == 1 ? " row" : " rows", " from ",
                       tensor.first_row(), "  ", tensor.initializer(), "  ",
                       ConfigText(tensor.optimizer()), "  ", StateText(tensor.state())),
          out);
}

// Adds "  name value" where there is a value.
void AddPart(const char* name, const std::string& value, std::string& line) {
  if (value.empty()) return;
  const bool blank = value.find_first_not_of(' ') == std::string::npos;
  absl::StrAppend(&line, "  ", name, " ", blank ? absl::StrCat("'", value, "'") : value);
}

std::string VocabularyFileOf(const JobSpec& spec, const std::string& field) {
  for (const FieldConfig& f : spec.fields()) {
    if (f.name() == field) return f.vocabulary().file();
  }
  return "";
}

void AddField(const SchemaField& field, const JobSpec& spec, std::string& out) {
  std::string line = absl::StrCat("field ", field.name(), "  ", field.kind());
  AddPart("column", field.column() == field.name() ? "" : field.column(), line);
  AddPart("table", field.table(), line);
  AddPart("keys by", field.keys(), line);
  AddPart("hashSeed", field.hash_seed() == 0 ? "" : absl::StrCat(field.hash_seed()), line);
  AddPart("pooling", field.pooling(), line);
  AddPart("separator", field.separator(), line);
  AddPart("weightSeparator", field.weight_separator(), line);
  AddPart("transform", ConfigText(field.transform()), line);
  AddPart("vocabulary", field.vocabulary(), line);
  AddPart("values", field.vocabulary_values() == 0 ? "" : absl::StrCat(field.vocabulary_values()),
          line);
  AddPart("outOfVocabulary",
          field.out_of_vocabulary() == 0 ? "" : absl::StrCat(field.out_of_vocabulary()), line);
  AddPart("vocabularyFile", VocabularyFileOf(spec, field.name()), line);
  AddPart("maxLength", field.max_length() == 0 ? "" : absl::StrCat(field.max_length()), line);
  AddPart("truncate", field.truncate(), line);
  if (field.has_default_value()) {
    absl::StrAppend(&line, "  default '", field.default_value(), "'");
  }
  AddLine(line, out);
}

void AddLabel(const SchemaLabel& label, std::string& out) {
  std::string line = absl::StrCat("label ", label.name(), "  ", label.kind());
  AddPart("column", label.column() == label.name() ? "" : label.column(), line);
  AddPart("loss", label.loss(), line);
  absl::StrAppend(&line, "  weight ", ShownNumber(label.weight()));
  AddPart("delta", label.delta() == 0 ? "" : ShownNumber(label.delta()), line);
  AddPart("mean", label.has_mean() ? ShownNumber(label.mean()) : "", line);
  AddLine(line, out);
}

}  // namespace

std::string ConfigText(const Message& config) {
  const Reflection* reflection = config.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(config, &fields);
  std::string type;
  std::vector<std::string> parts;
  for (const FieldDescriptor* field : fields) {
    if (field->name() == "type") {
      type = reflection->GetString(config, field);
    } else if (field->is_repeated()) {
      std::vector<std::string> bounds;
      for (int i = 0; i < reflection->FieldSize(config, field); ++i) {
        bounds.push_back(ShownNumber(reflection->GetRepeatedDouble(config, field, i)));
      }
      parts.push_back(absl::StrCat(field->json_name(), " [", absl::StrJoin(bounds, ", "), "]"));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const std::string below = ConfigText(reflection->GetMessage(config, field));
      if (below.empty() || below == "constant") continue;
      parts.push_back(absl::StrCat(field->json_name(), below[0] == '(' ? "" : " ", below));
    } else {
      const std::string value = NumberText(config, field);
      const bool absent = value == "0" && IsAbsentAtZero(field->name());
      if (!absent && value != "false")
        parts.push_back(absl::StrCat(field->json_name(), " ", value));
    }
  }
  return parts.empty() ? type : absl::StrCat(type, "(", absl::StrJoin(parts, ", "), ")");
}

RowsText RowsTextOf(const JobSpec& spec, absl::string_view table) {
  if (spec.tables().empty()) {
    return {ConfigText(spec.life_cycle()), CodecOf(spec.training().pull_codec())};
  }
  for (const TableConfig& t : spec.tables()) {
    if (t.name() == table) return {ConfigText(t.life_cycle()), CodecOf(t.pull_codec())};
  }
  return {};
}

std::string SchemaText(const Schema& schema, const JobSpec& spec) {
  std::string out;
  AddLine(absl::StrCat("model ", schema.model()), out);
  for (const SchemaTable& table : schema.tables()) {
    AddTable(table, out);
    AddRowsOf(table, spec, out);
  }
  for (const SchemaTensor& tensor : schema.tensors()) AddTensor(tensor, out);
  for (const SchemaField& field : schema.fields()) AddField(field, spec, out);
  for (const SchemaLabel& label : schema.labels()) AddLabel(label, out);
  if (!spec.sample_weight().empty()) {
    AddLine(absl::StrCat("sampleWeight ", spec.sample_weight()), out);
  }
  if (!schema.data_fingerprint().empty()) {
    AddLine(absl::StrCat("data ", schema.data_fingerprint()), out);
  }
  return out;
}

std::string SchemaJson(const Schema& schema, const JobSpec& spec) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  std::string text, beside;
  // A message of texts and numbers always has a form.
  if (!google::protobuf::util::MessageToJsonString(schema, &text, options).ok() ||
      !google::protobuf::util::MessageToJsonString(BesideSchema(spec), &beside).ok()) {
    return "{}";
  }
  if (beside == "{}") return text;
  text.pop_back();  // of an object with members
  return absl::StrCat(text, ",\"spec\":", beside, "}");
}

}  // namespace strata
