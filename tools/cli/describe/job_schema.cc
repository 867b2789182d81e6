#include "tools/cli/describe/job_schema.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tools/cli/base/nearest.h"
#include "tools/cli/describe/job_descriptor.h"

namespace strata {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;

// The comment above a declaration with its lines joined; "" without one.
template <typename Declaration>
std::string CommentOf(const Declaration* declaration) {
  google::protobuf::SourceLocation location;
  if (!declaration->GetSourceLocation(&location)) return "";
  std::string joined;
  for (absl::string_view line : absl::StrSplit(location.leading_comments, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    absl::StrAppend(&joined, joined.empty() ? "" : " ", line);
  }
  return joined;
}

std::string TypeOf(const FieldDescriptor* field) {
  if (field->is_map()) return "mapping of text to text";
  std::string type;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      type = "object";
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      type = "text";
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      type = "number";
      break;
    default:
      type = "integer";
  }
  return field->is_repeated() ? absl::StrCat("list of ", type, "s") : type;
}

// What stands between "Default" and the end of its sentence, or a remark after a colon:
// "Default 0: never." gives "0", "Default: adam 1e-8." gives "adam 1e-8".
std::string DefaultIn(absl::string_view comment) {
  size_t at = comment.find("Default");
  if (at == absl::string_view::npos) return "";
  absl::string_view rest = comment.substr(at + 7);
  if (absl::StartsWith(rest, ":")) rest.remove_prefix(1);
  rest = absl::StripLeadingAsciiWhitespace(rest);
  bool quoted = false;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '"') quoted = !quoted;
    const bool last = i + 1 == rest.size() || absl::ascii_isspace(rest[i + 1]);
    if (!quoted && last && (rest[i] == '.' || rest[i] == ':'))
      return std::string(rest.substr(0, i));
  }
  return std::string(rest);
}

void AddFields(const Descriptor* type, JobFileField& into) {
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    const std::string path =
        absl::StrCat(into.path, into.path.empty() ? "" : ".", field->json_name());
    JobFileField& added = into.fields.emplace_back();
    added.name = field->json_name();
    added.path = path;
    added.type = TypeOf(field);
    added.text = CommentOf(field);
    added.default_text = DefaultIn(added.text);
    added.required = absl::StrContains(added.text, "Required");
    if (field->message_type() == nullptr || field->is_map()) continue;
    const std::string about_type = CommentOf(field->message_type());
    if (!about_type.empty()) {
      absl::StrAppend(&added.text, added.text.empty() ? "" : "\n\n", about_type);
    }
    AddFields(field->message_type(), added);
  }
}

JobFileField* ReadSchema() {
  google::protobuf::FileDescriptorSet set;
  const absl::string_view bytes = JobDescriptorSet();
  auto* root = new JobFileField;
  root->type = "object";
  if (!set.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return root;
  DescriptorPool pool;
  for (const auto& file : set.file()) pool.BuildFile(file);
  const Descriptor* job = pool.FindMessageTypeByName("strata.TrainingJob");
  if (job == nullptr) return root;
  root->text = CommentOf(job);
  AddFields(job, *root);
  return root;
}

void Visit(const JobFileField& field, const std::function<void(const JobFileField&)>& visit) {
  for (const JobFileField& below : field.fields) {
    visit(below);
    Visit(below, visit);
  }
}

// "did you mean ...?", or what there is.
std::string Suggestion(const JobFileField& parent, absl::string_view path, absl::string_view name) {
  std::vector<std::string> elsewhere, names;
  Visit(JobSchema(), [&](const JobFileField& field) {
    const bool same_tail = absl::EndsWith(field.path, absl::StrCat(".", path));
    if (same_tail || field.name == name) elsewhere.push_back(field.path);
    // "training.batchSize": the whole of what was typed is the better hint.
    if (same_tail && absl::StrContains(path, ".")) names = {field.path};
  });
  if (!names.empty()) return absl::StrCat("did you mean '", names[0], "'?");
  for (const JobFileField& field : parent.fields) names.push_back(field.name);
  const std::string nearest = Nearest(name, names);
  const std::string before = parent.path.empty() ? "" : absl::StrCat(parent.path, ".");
  if (!nearest.empty()) return absl::StrCat("did you mean '", before, nearest, "'?");
  if (elsewhere.size() == 1) return absl::StrCat("did you mean '", elsewhere[0], "'?");
  if (!elsewhere.empty()) return absl::StrCat("one of: ", absl::StrJoin(elsewhere, ", "), "?");
  return absl::StrCat("it has: ", absl::StrJoin(names, ", "));
}

}  // namespace

const JobFileField& JobSchema() {
  static const JobFileField* const root = ReadSchema();
  return *root;
}

absl::StatusOr<const JobFileField*> FindField(absl::string_view path) {
  const JobFileField* at = &JobSchema();
  if (path.empty() || path == ".") return at;
  for (absl::string_view part : absl::StrSplit(path, '.')) {
    const absl::string_view name = part.substr(0, part.find('['));
    const JobFileField* next = nullptr;
    for (const JobFileField& field : at->fields) {
      if (field.name == name) next = &field;
    }
    if (next != nullptr) {
      at = next;
      continue;
    }
    const std::string of = at->path.empty() ? "a job file" : at->path;
    if (at->fields.empty()) {
      return absl::NotFoundError(absl::StrCat("'", path, "': ", of, " is ", at->type,
                                              " and has no fields; try: strata explain ", of));
    }
    return absl::NotFoundError(absl::StrCat("'", path, "': ", of, " has no field '", name, "'; ",
                                            Suggestion(*at, path, name)));
  }
  return at;
}

std::vector<std::string> AllPaths() {
  std::vector<std::string> paths;
  Visit(JobSchema(), [&](const JobFileField& field) { paths.push_back(field.path); });
  return paths;
}

}  // namespace strata
