#include "tools/cli/job/yaml_message.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/job/checks/shown.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/base/nearest.h"

namespace strata {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

const std::string& NameOf(const FieldDescriptor* field, FieldNaming naming) {
  return naming == FieldNaming::kJson ? field->json_name() : field->name();
}

std::vector<std::string> FieldNames(const Descriptor* type,
                                    FieldNaming naming = FieldNaming::kJson) {
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) names.push_back(NameOf(type->field(i), naming));
  return names;
}

// The path of the first field named `name` below `type`; "" when there is none. Job files nest four
// deep and never recur.
std::string FindPath(absl::string_view name, const Descriptor* type, FieldNaming naming,
                     const std::string& path) {
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    const std::string here = absl::StrCat(path, path.empty() ? "" : ".", NameOf(field, naming));
    if (NameOf(field, naming) == name) return here;
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    std::string below = FindPath(name, field->message_type(), naming, here);
    if (!below.empty()) return below;
  }
  return "";
}

// Bytes of a value that messages show: a file that is no job is one value as long as the file.
constexpr size_t kShownBytes = 40;

// Text of the file, cut where it is long, between characters.
std::string Shown(absl::string_view text) {
  if (text.size() <= kShownBytes) return std::string(text);
  size_t end = kShownBytes;
  const auto continues = [&](size_t i) { return (static_cast<uint8_t>(text[i]) & 0xC0) == 0x80; };
  while (end > 0 && continues(end)) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

std::string KindOf(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map:
      return "a mapping";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Scalar:
      return absl::StrCat("'", Shown(node.Scalar()), "'");
    default:
      return "no value";
  }
}

// One value of the field.
std::string ExpectedOne(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return absl::StrCat("a mapping of: ", absl::StrJoin(FieldNames(field->message_type()), ", "));
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_STRING:
      return "text";
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    default:
      return "a whole number";
  }
}

std::string Expected(const FieldDescriptor* field) {
  if (field->is_map()) return "a mapping of text to text";
  if (TextForm(field) != nullptr) return absl::StrCat("text, or ", ExpectedOne(field));
  if (!field->is_repeated()) return ExpectedOne(field);
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return "a list";
  return absl::StrCat("a list of mappings, each of: ",
                      absl::StrJoin(FieldNames(field->message_type()), ", "));
}

bool IsQuoted(const YAML::Node& node) { return node.Tag() == "!"; }

// "" or what is wrong with `text` as a whole number up to `limit`.
std::string ParseWhole(const std::string& text, uint64_t limit, uint64_t* value) {
  bool digits = !text.empty();
  for (char c : text) digits = digits && absl::ascii_isdigit(c);
  if (!digits) return absl::StrCat("'", Shown(text), "' is not a whole number (0, 1, 2, ...)");
  if (!absl::SimpleAtoi(text, value) || *value > limit) {
    return absl::StrCat(Shown(text), " is too large; the largest is ", limit);
  }
  return "";
}

std::string ParseReal(const std::string& text, double* value) {
  if (!absl::SimpleAtod(text, value) || !std::isfinite(*value)) {
    return absl::StrCat("'", Shown(text), "' is not a finite number; write one as 0.5 or 1e-3");
  }
  return "";
}

// Sets a scalar (or adds one to a list); returns "" or what is wrong.
template <typename T>
void Store(Message* message, const FieldDescriptor* field, T value,
           void (Reflection::*set)(Message*, const FieldDescriptor*, T) const,
           void (Reflection::*add)(Message*, const FieldDescriptor*, T) const) {
  (message->GetReflection()->*(field->is_repeated() ? add : set))(message, field, std::move(value));
}

std::string StoreScalar(const YAML::Node& node, const FieldDescriptor* field, Message* message) {
  const std::string& text = node.Scalar();
  // Protobuf's own JSON writes 64-bit numbers in quotes, so there they are right.
  const bool number = field->cpp_type() != FieldDescriptor::CPPTYPE_STRING &&
                      field->cpp_type() != FieldDescriptor::CPPTYPE_UINT64;
  if (number && IsQuoted(node)) {
    return absl::StrCat("expects ", ExpectedOne(field), ", but \"", Shown(text),
                        "\" is text; write it without quotes");
  }
  uint64_t whole = 0;
  double real = 0;
  std::string problem;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      problem = ParseWhole(text, std::numeric_limits<uint32_t>::max(), &whole);
      if (!problem.empty()) return problem;
      Store(message, field, static_cast<uint32_t>(whole), &Reflection::SetUInt32,
            &Reflection::AddUInt32);
      return "";
    case FieldDescriptor::CPPTYPE_UINT64:
      problem = ParseWhole(text, std::numeric_limits<uint64_t>::max(), &whole);
      if (!problem.empty()) return problem;
      Store(message, field, whole, &Reflection::SetUInt64, &Reflection::AddUInt64);
      return "";
    case FieldDescriptor::CPPTYPE_FLOAT:
      problem = ParseReal(text, &real);
      if (!problem.empty()) return problem;
      if (std::abs(real) > std::numeric_limits<float>::max()) {
        return absl::StrCat(Shown(text), " is too large for a 32-bit number");
      }
      Store(message, field, static_cast<float>(real), &Reflection::SetFloat, &Reflection::AddFloat);
      return "";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      problem = ParseReal(text, &real);
      if (!problem.empty()) return problem;
      Store(message, field, real, &Reflection::SetDouble, &Reflection::AddDouble);
      return "";
    case FieldDescriptor::CPPTYPE_BOOL:
      if (text != "true" && text != "false") {
        return absl::StrCat("expects true or false, not '", Shown(text), "'");
      }
      Store(message, field, text == "true", &Reflection::SetBool, &Reflection::AddBool);
      return "";
    case FieldDescriptor::CPPTYPE_STRING:
      Store(message, field, text, &Reflection::SetString, &Reflection::AddString);
      return "";
    default:
      return "cannot be given in a file";
  }
}

}  // namespace

std::string UnknownField(absl::string_view name, const Descriptor* type, const Descriptor* root,
                         FieldNaming naming) {
  const std::vector<std::string> names = FieldNames(type, naming);
  const std::string said = absl::StrCat("unknown field '", Shown(name), "'");
  const std::string nearest = Nearest(name, names);
  if (!nearest.empty()) return absl::StrCat(said, "; did you mean '", nearest, "'?");
  const std::string elsewhere = FindPath(name, root, naming, "");
  if (!elsewhere.empty()) return absl::StrCat(said, "; did you mean '", elsewhere, "'?");
  return absl::StrCat(said, "; the fields are: ", absl::StrJoin(names, ", "));
}

const FieldDescriptor* TextForm(const FieldDescriptor* field) {
  const Descriptor* type = field->message_type();
  const bool has_one = type == InitFromSpec::descriptor() && !field->is_repeated();
  return has_one ? type->FindFieldByNumber(InitFromSpec::kCheckpointFieldNumber) : nullptr;
}

const char* EmptyListProblem(const FieldDescriptor* field) {
  const bool layers = field->is_repeated() && field->containing_type() == ModelSpec::descriptor();
  return layers ? "an empty list would be the default's layers; give a width for each layer, or "
                  "remove it"
                : nullptr;
}

void YamlReader::Problem(const YAML::Mark& mark, const std::string& path, absl::string_view what) {
  std::string line = name_;
  if (!name_.empty() && !mark.is_null()) {
    absl::StrAppend(&line, ":", mark.line + 1, ":", mark.column + 1);
  }
  if (!line.empty()) line += ": ";
  if (!path.empty()) absl::StrAppend(&line, path, ": ");
  problems_.push_back(ShownText(absl::StrCat(line, what)));
}

std::string YamlReader::Where(const std::string& path) const {
  const auto found = marks_.find(path);
  if (name_.empty()) return "";
  if (found == marks_.end() || found->second.is_null()) return name_ + ": ";
  return absl::StrCat(name_, ":", found->second.line + 1, ":", found->second.column + 1, ": ");
}

void YamlReader::Read(const YAML::Node& node, const std::string& path, Message* message) {
  const Descriptor* type = message->GetDescriptor();
  if (!node.IsMap()) {
    Problem(node.Mark(), path,
            absl::StrCat("expects a mapping of: ", absl::StrJoin(FieldNames(type), ", "),
                         "; found ", KindOf(node)));
    return;
  }
  std::set<std::string> seen;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) {
      Problem(entry.first.Mark(), path,
              absl::StrCat("expects a field's name; found ", KindOf(entry.first)));
      continue;
    }
    const std::string& name = entry.first.Scalar();
    const FieldDescriptor* field = nullptr;
    for (int i = 0; i < type->field_count(); ++i) {
      if (type->field(i)->json_name() == name) field = type->field(i);
    }
    if (field == nullptr) {
      Problem(entry.first.Mark(), path, UnknownField(name, type, root_));
    } else if (!seen.insert(name).second) {
      Problem(entry.first.Mark(), path, absl::StrCat("field '", name, "' is given twice"));
    } else {
      const std::string field_path = absl::StrCat(path, path.empty() ? "" : ".", name);
      if (entry.second.IsNull()) {
        // The mark of nothing is wherever the next thing stands.
        Problem(entry.first.Mark(), field_path,
                absl::StrCat("has no value; give ", Expected(field), ", or remove it"));
      } else {
        ReadField(entry.second, field_path, field, message);
      }
    }
  }
}

void YamlReader::ReadField(const YAML::Node& node, const std::string& path,
                           const FieldDescriptor* field, Message* message) {
  marks_[path] = node.Mark();
  message->GetReflection()->ClearField(message, field);
  if (field->is_map()) return ReadMap(node, path, field, message);
  if (!field->is_repeated()) {
    ReadValue(node, path, field, message);
    return;
  }
  if (!node.IsSequence()) {
    const bool group = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    std::string what =
        absl::StrCat("expects ", Expected(field), group ? "; found " : ", found ", KindOf(node));
    if (node.IsScalar() && !group && node.Scalar().size() <= kShownBytes) {
      absl::StrAppend(&what, "; write [", node.Scalar(), "]");
    }
    Problem(node.Mark(), path, what);
    return;
  }
  if (const char* problem = EmptyListProblem(field); problem != nullptr && node.size() == 0) {
    return Problem(node.Mark(), path, problem);
  }
  size_t index = 0;
  for (const YAML::Node& element : node) {
    const std::string element_path = absl::StrCat(path, "[", index++, "]");
    marks_[element_path] = element.Mark();
    ReadValue(element, element_path, field, message);
  }
}

void YamlReader::ReadMap(const YAML::Node& node, const std::string& path,
                         const FieldDescriptor* field, Message* message) {
  if (!node.IsMap()) {
    return Problem(node.Mark(), path,
                   absl::StrCat("expects ", Expected(field), "; found ", KindOf(node)));
  }
  std::set<std::string> seen;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar() || !entry.second.IsScalar()) {
      Problem(entry.first.Mark(), path, absl::StrCat("expects ", Expected(field)));
    } else if (!seen.insert(entry.first.Scalar()).second) {
      Problem(entry.first.Mark(), path,
              absl::StrCat("'", Shown(entry.first.Scalar()), "' is given twice"));
    } else {
      Message* pair = message->GetReflection()->AddMessage(message, field);
      const Descriptor* type = field->message_type();
      pair->GetReflection()->SetString(pair, type->map_key(), entry.first.Scalar());
      pair->GetReflection()->SetString(pair, type->map_value(), entry.second.Scalar());
    }
  }
}

void YamlReader::ReadValue(const YAML::Node& node, const std::string& path,
                           const FieldDescriptor* field, Message* message) {
  if (const FieldDescriptor* text = TextForm(field); text != nullptr && node.IsScalar()) {
    Message* below = message->GetReflection()->MutableMessage(message, field);
    return ReadField(node, absl::StrCat(path, ".", text->json_name()), text, below);
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    const Reflection* reflection = message->GetReflection();
    Read(node, path,
         field->is_repeated() ? reflection->AddMessage(message, field)
                              : reflection->MutableMessage(message, field));
    return;
  }
  std::string problem;
  if (!node.IsScalar()) {
    problem = absl::StrCat("expects ", ExpectedOne(field), ", found ", KindOf(node));
  } else {
    problem = StoreScalar(node, field, message);
  }
  if (!problem.empty()) Problem(node.Mark(), path, problem);
}

}  // namespace strata
