#include "tools/cli/job/textproto_message.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tools/cli/job/yaml_message.h"

namespace strata {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

// What protobuf says of a field that it does not know, in our words; else as it is.
std::string InOurWords(absl::string_view message, const Descriptor* root) {
  absl::string_view rest = message;
  if (!absl::ConsumePrefix(&rest, "Message type \"")) return std::string(message);
  const size_t type_end = rest.find("\" has no field named \"");
  if (type_end == absl::string_view::npos) return std::string(message);
  const Descriptor* type =
      root->file()->pool()->FindMessageTypeByName(std::string(rest.substr(0, type_end)));
  rest.remove_prefix(type_end + sizeof("\" has no field named \"") - 1);
  if (type == nullptr) return std::string(message);
  return UnknownField(rest.substr(0, rest.find('"')), type, root, FieldNaming::kProto);
}

const FieldDescriptor* FieldByJsonName(const Descriptor* type, absl::string_view name) {
  for (int i = 0; i < type->field_count(); ++i) {
    if (type->field(i)->json_name() == name) return type->field(i);
  }
  return nullptr;
}

}  // namespace

class TextprotoReader::Errors : public google::protobuf::io::ErrorCollector {
 public:
  explicit Errors(TextprotoReader* reader) : reader_(reader) {}

  // From 0; -1: of the whole.
  void AddError(int line, int column, const std::string& message) override {
    std::string place = reader_->name_;
    if (line >= 0) absl::StrAppend(&place, ":", line + 1, ":", column + 1);
    reader_->problems_.push_back(absl::StrCat(place, ": ", InOurWords(message, reader_->type_)));
  }

 private:
  TextprotoReader* const reader_;
};

void TextprotoReader::Read(absl::string_view text, Message* message) {
  type_ = message->GetDescriptor();
  if (text.find('\0') != absl::string_view::npos) {
    problems_.push_back(absl::StrCat(name_, ": holds a zero byte; is it text?"));
    return;
  }
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");
  Errors errors(this);
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(&places_);
  const bool parsed = parser.ParseFromString(std::string(text), message);
  if (!parsed && problems_.empty()) {
    problems_.push_back(absl::StrCat(name_, ": is not in protobuf's text format"));
  }
  if (problems_.empty()) CheckFinite(*message, "");
}

void TextprotoReader::CheckFinite(const Message& message, const std::string& path) {
  const Reflection* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string here = absl::StrCat(path, path.empty() ? "" : ".", field->json_name());
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const std::string at = field->is_repeated() ? absl::StrCat(here, "[", i, "]") : here;
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        CheckFinite(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                         : reflection->GetMessage(message, field),
                    at);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
        const float value = field->is_repeated() ? reflection->GetRepeatedFloat(message, field, i)
                                                 : reflection->GetFloat(message, field);
        if (!std::isfinite(value)) {
          problems_.push_back(
              absl::StrCat(Where(at), at, ": ", value, " is not a finite 32-bit number"));
        }
      }
    }
  }
}

std::string TextprotoReader::Where(absl::string_view path) const {
  const std::string none = name_ + ": ";
  const TextFormat::ParseInfoTree* tree = &places_;
  const Descriptor* type = type_;
  TextFormat::ParseLocation place;
  for (absl::string_view part : absl::StrSplit(path, '.')) {
    if (tree == nullptr || type == nullptr) return none;
    int index = -1;
    const size_t bracket = part.find('[');
    if (bracket != absl::string_view::npos) {
      absl::string_view number = part.substr(bracket + 1);
      if (!absl::ConsumeSuffix(&number, "]") || !absl::SimpleAtoi(number, &index)) return none;
      part = part.substr(0, bracket);
    }
    const FieldDescriptor* field = FieldByJsonName(type, part);
    if (field == nullptr) return none;
    // A list as a whole stands where its first element does.
    if (field->is_repeated() && index < 0) index = 0;
    place = tree->GetLocation(field, index);
    // The elements of a list in brackets stand where the first does.
    if (place.line < 0 && index > 0) place = tree->GetLocation(field, 0);
    const bool group = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    tree = group ? tree->GetTreeForNested(field, index) : nullptr;
    type = group ? field->message_type() : nullptr;
  }
  if (place.line < 0) return none;
  return absl::StrCat(name_, ":", place.line + 1, ":", place.column + 1, ": ");
}

}  // namespace strata
