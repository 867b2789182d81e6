#include "proto/job/schema/schema_text.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
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

// "adam(learningRate 0.001, beta1 0.9)": `type` and all that is given beside it, but for schedules
// that change nothing and limits that are not there.
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

template <typename List>
std::string StateText(const List& state) {
  return state.empty() ? "no state" : absl::StrCat("state ", absl::StrJoin(state, ", "));
}

// The codec, or empty: rows are pulled as they are.
const std::string& CodecOf(const std::string& pull_codec) {
  static const std::string none;
  return pull_codec == "float32" ? none : pull_codec;
}

// What the job says of the rows of tables and of lines, which no schema has; without defaults.
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
  return beside;
}

void AddRows(const LifeCycleSpec& life_cycle, const std::string& pull_codec, std::string& out) {
  const std::string text = ConfigText(life_cycle);
  if (!text.empty()) absl::StrAppend(&out, "  lifeCycle", text, "\n");
  const std::string& codec = CodecOf(pull_codec);
  if (!codec.empty()) absl::StrAppend(&out, "  pullCodec ", codec, "\n");
}

void AddRowsOf(const SchemaTable& table, const JobSpec& spec, std::string& out) {
  if (spec.tables().empty()) {
    return AddRows(spec.life_cycle(), spec.training().pull_codec(), out);
  }
  for (const TableConfig& t : spec.tables()) {
    if (t.name() == table.name()) AddRows(t.life_cycle(), t.pull_codec(), out);
  }
}

void AddTable(const SchemaTable& table, std::string& out) {
  absl::StrAppend(&out, "table ", table.name(), "  number ", table.table(),
                  table.scored() ? "  rows have a score" : "", "\n");
  for (const SchemaSegment& s : table.segments()) {
    absl::StrAppend(&out, "  ", s.name(), "(", s.dim(), ")  ", s.initializer(), "  ",
                    ConfigText(s.optimizer()), "  ", StateText(s.state()), "\n");
  }
}

void AddTensor(const SchemaTensor& tensor, std::string& out) {
  absl::StrAppend(&out, "tensor ", tensor.name(), "(", absl::StrJoin(tensor.shape(), ", "), ")  ",
                  tensor.rows(), tensor.rows() == 1 ? " row" : " rows", " from ",
                  tensor.first_row(), "  ", tensor.initializer(), "  ",
                  ConfigText(tensor.optimizer()), "  ", StateText(tensor.state()), "\n");
}

// Adds "  name value" where there is a value.
void AddPart(const char* name, const std::string& value, std::string& out) {
  if (value.empty()) return;
  const bool blank = value.find_first_not_of(' ') == std::string::npos;
  const std::string shown = ShownText(value);
  absl::StrAppend(&out, "  ", name, " ", blank ? absl::StrCat("'", shown, "'") : shown);
}

void AddField(const SchemaField& field, std::string& out) {
  absl::StrAppend(&out, "field ", field.name(), "  ", field.kind());
  AddPart("column", field.column() == field.name() ? "" : field.column(), out);
  AddPart("table", field.table(), out);
  AddPart("keys by", field.keys(), out);
  AddPart("hashSeed", field.hash_seed() == 0 ? "" : absl::StrCat(field.hash_seed()), out);
  AddPart("pooling", field.pooling(), out);
  AddPart("separator", field.separator(), out);
  AddPart("weightSeparator", field.weight_separator(), out);
  AddPart("transform", ConfigText(field.transform()), out);
  AddPart("vocabulary", field.vocabulary(), out);
  AddPart("values", field.vocabulary_values() == 0 ? "" : absl::StrCat(field.vocabulary_values()),
          out);
  AddPart("outOfVocabulary",
          field.out_of_vocabulary() == 0 ? "" : absl::StrCat(field.out_of_vocabulary()), out);
  AddPart("maxLength", field.max_length() == 0 ? "" : absl::StrCat(field.max_length()), out);
  AddPart("truncate", field.truncate(), out);
  if (field.has_default_value())
    absl::StrAppend(&out, "  default '", ShownText(field.default_value()), "'");
  out += "\n";
}

void AddLabel(const SchemaLabel& label, std::string& out) {
  absl::StrAppend(&out, "label ", label.name(), "  ", label.kind());
  AddPart("column", label.column() == label.name() ? "" : label.column(), out);
  AddPart("loss", label.loss(), out);
  absl::StrAppend(&out, "  weight ", ShownNumber(label.weight()));
  AddPart("delta", label.delta() == 0 ? "" : ShownNumber(label.delta()), out);
  AddPart("mean", label.has_mean() ? ShownNumber(label.mean()) : "", out);
  out += "\n";
}

}  // namespace

std::string SchemaText(const Schema& schema, const JobSpec& spec) {
  std::string out = absl::StrCat("model ", schema.model(), "\n");
  for (const SchemaTable& table : schema.tables()) {
    AddTable(table, out);
    AddRowsOf(table, spec, out);
  }
  for (const SchemaTensor& tensor : schema.tensors()) AddTensor(tensor, out);
  for (const SchemaField& field : schema.fields()) AddField(field, out);
  for (const SchemaLabel& label : schema.labels()) AddLabel(label, out);
  if (!spec.sample_weight().empty()) {
    absl::StrAppend(&out, "sampleWeight ", ShownText(spec.sample_weight()), "\n");
  }
  if (!schema.data_fingerprint().empty()) {
    absl::StrAppend(&out, "data ", schema.data_fingerprint(), "\n");
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
