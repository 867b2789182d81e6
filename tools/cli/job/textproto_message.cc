#include "tools/cli/job/textproto_message.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/strata/job.pb.h"
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

// Walks over text of protobuf's text format, token by token; what is wrong with it, the parser
// says.
class Scanner {
 public:
  explicit Scanner(absl::string_view text) : text_(text) {}

  size_t at() const { return at_; }
  bool done() const { return at_ == text_.size(); }
  // Blanks and comments.
  void SkipSpace() {
    while (!done()) {
      if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (absl::ascii_isspace(text_[at_])) {
        ++at_;
      } else {
        return;
      }
    }
  }
  bool AtQuote() const { return !done() && (text_[at_] == '"' || text_[at_] == '\''); }
  bool Take(char c) {
    if (done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // A name, a text in quotes, or one character. REQUIRES: not done.
  absl::string_view Token() {
    const size_t first = at_;
    if (AtQuote()) {
      const char quote = text_[at_++];
      while (!done() && text_[at_] != quote && text_[at_] != '\n') {
        at_ = std::min(at_ + (text_[at_] == '\\' ? 2 : 1), text_.size());
      }
      if (!done()) ++at_;
    } else {
      ++at_;
      while (!done() && IsName(text_[first]) && IsName(text_[at_])) ++at_;
    }
    return text_.substr(first, at_ - first);
  }

 private:
  static bool IsName(char c) { return absl::ascii_isalnum(c) || c == '_'; }

  const absl::string_view text_;
  size_t at_ = 0;
};

// Protobuf counts a tab as going to the next multiple of eight.
int ColumnAt(absl::string_view text, size_t at) {
  const size_t line = text.substr(0, at).rfind('\n') + 1;  // npos + 1 is 0
  int column = 0;
  for (size_t i = line; i < at; ++i) column += text[i] == '\t' ? 8 - column % 8 : 1;
  return column;
}

}  // namespace

class TextprotoReader::Errors : public google::protobuf::io::ErrorCollector {
 public:
  explicit Errors(TextprotoReader* reader) : reader_(reader) {}

  // From 0; -1: of the whole.
  void AddError(int line, int column, const std::string& message) override {
    std::string place = reader_->name_;
    if (line >= 0) {
      absl::StrAppend(&place, ":", line + 1, ":", reader_->ColumnInFile(line, column) + 1);
    }
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
  const bool parsed = parser.ParseFromString(WithTextForms(text), message);
  if (!parsed && problems_.empty()) {
    problems_.push_back(absl::StrCat(name_, ": is not in protobuf's text format"));
  }
  if (problems_.empty()) CheckFinite(*message, "");
  if (problems_.empty()) CheckLists(text);
}

// `init_from: "DIR"` becomes `init_from: {checkpoint: "DIR"}`.
std::string TextprotoReader::WithTextForms(absl::string_view text) {
  constexpr absl::string_view kBefore = "{checkpoint: ";
  std::string out;
  size_t copied = 0;
  Scanner scan(text);
  const auto insert = [&](size_t at, absl::string_view what) {
    absl::StrAppend(&out, text.substr(copied, at - copied), what);
    copied = at;
    inserted_.push_back({static_cast<int>(std::count(text.begin(), text.begin() + at, '\n')),
                         ColumnAt(text, at), static_cast<int>(what.size())});
  };
  for (scan.SkipSpace(); !scan.done(); scan.SkipSpace()) {
    if (scan.Token() != "init_from") continue;
    scan.SkipSpace();
    if (!scan.Take(':')) continue;
    scan.SkipSpace();
    if (!scan.AtQuote()) continue;
    insert(scan.at(), kBefore);
    size_t end = scan.at();
    while (scan.AtQuote()) {  // neighbours are one text
      scan.Token();
      end = scan.at();
      scan.SkipSpace();
    }
    insert(end, "}");
  }
  absl::StrAppend(&out, text.substr(copied));
  return out;
}

// The parser takes `hidden: []` for nothing, and leaves no trace of it.
void TextprotoReader::CheckLists(absl::string_view text) {
  Scanner scan(text);
  for (scan.SkipSpace(); !scan.done(); scan.SkipSpace()) {
    const size_t at = scan.at();
    const FieldDescriptor* field =
        ModelSpec::descriptor()->FindFieldByName(std::string(scan.Token()));
    const char* problem = field == nullptr ? nullptr : EmptyListProblem(field);
    scan.SkipSpace();
    if (problem == nullptr || !scan.Take(':')) continue;
    scan.SkipSpace();
    if (!scan.Take('[')) continue;
    scan.SkipSpace();
    if (!scan.Take(']')) continue;
    problems_.push_back(
        absl::StrCat(name_, ":", std::count(text.begin(), text.begin() + at, '\n') + 1, ":",
                     ColumnAt(text, at) + 1, ": spec.model.", field->json_name(), ": ", problem));
  }
}

int TextprotoReader::ColumnInFile(int line, int column) const {
  int moved = 0;
  for (const Inserted& i : inserted_) {
    if (i.line != line || column < i.column + moved) continue;
    moved += std::min(i.length, column - i.column - moved);
  }
  return column - moved;
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
  return absl::StrCat(name_, ":", place.line + 1, ":", ColumnInFile(place.line, place.column) + 1,
                      ": ");
}

}  // namespace strata
