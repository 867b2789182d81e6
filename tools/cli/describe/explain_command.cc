#include "tools/cli/describe/explain_command.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace strata {
namespace {

constexpr size_t kColumns = 100;

// Appends `text` word by word, broken before column kColumns, each line behind `indent` spaces;
// blank lines stay.
void AppendWrapped(const std::string& text, size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  for (absl::string_view paragraph : absl::StrSplit(text, "\n\n")) {
    size_t column = 0;
    for (absl::string_view word : absl::StrSplit(paragraph, ' ', absl::SkipEmpty())) {
      if (column > 0 && column + 1 + word.size() > kColumns) {
        out += "\n";
        column = 0;
      }
      absl::StrAppend(&out, column == 0 ? margin : " ", word);
      column += (column == 0 ? indent : 1) + word.size();
    }
    if (column > 0) out += "\n";
  }
}

// "name   type" and the comment below it.
void AppendField(const JobFileField& field, size_t indent, Depth depth, std::string& out) {
  absl::StrAppend(&out, std::string(indent, ' '), field.name, "  <", field.type, ">\n");
  AppendWrapped(field.text, indent + 4, out);
  if (depth == Depth::kOneLevel) return;
  for (const JobFileField& below : field.fields) AppendField(below, indent + 2, depth, out);
}

nlohmann::ordered_json Json(const JobFileField& field, bool with_fields, Depth depth) {
  nlohmann::ordered_json json;
  json["path"] = field.path;
  json["name"] = field.name;
  json["type"] = field.type;
  if (!field.default_text.empty()) json["default"] = field.default_text;
  if (field.required) json["required"] = true;
  json["description"] = field.text;
  if (!with_fields || field.fields.empty()) return json;
  json["fields"] = nlohmann::ordered_json::array();
  for (const JobFileField& below : field.fields) {
    json["fields"].push_back(Json(below, depth == Depth::kRecursive, depth));
  }
  return json;
}

}  // namespace

std::string FieldText(const JobFileField& field, Depth depth) {
  std::string out =
      absl::StrCat(field.path.empty() ? "A job file" : field.path, "  <", field.type, ">\n");
  AppendWrapped(field.text, 4, out);
  if (field.fields.empty()) return out;
  out += "\nFields:\n";
  for (const JobFileField& below : field.fields) AppendField(below, 2, depth, out);
  return out;
}

std::string FieldJson(const JobFileField& field, Depth depth) {
  return Json(field, true, depth).dump();
}

ExitCode RunExplain(const ExplainOptions& options) {
  const absl::StatusOr<const JobFileField*> field = FindField(options.path);
  if (!field.ok()) return ReportError(field.status());
  const Depth depth = options.recursive ? Depth::kRecursive : Depth::kOneLevel;
  const std::string text =
      options.json ? FieldJson(**field, depth) + "\n" : FieldText(**field, depth);
  std::fputs(text.c_str(), stdout);
  return kExitOk;
}

}  // namespace strata
