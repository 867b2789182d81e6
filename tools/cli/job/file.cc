#include "tools/cli/job/file.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/job/checks/shown.h"
#include "proto/job/data_spec.h"
#include "proto/job/job_spec.h"
#include "tools/cli/job/textproto_message.h"
#include "tools/cli/job/yaml_message.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

absl::StatusOr<std::string> ReadAll(std::istream& in, const std::string& name) {
  std::string text(kMaxJobFileBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return absl::UnavailableError(absl::StrCat(name, ": cannot be read"));
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.size() > kMaxJobFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": is longer than ", kMaxJobFileBytes, " bytes; is it a job file?"));
  }
  return text;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder; name the job file"));
  }
  std::ifstream in(path, std::ios::binary);
  if (in) return ReadAll(in, path);
  const std::string why = absl::StrCat(path, ": ", std::strerror(errno));
  if (errno == EACCES) return absl::PermissionDeniedError(why);
  return absl::NotFoundError(why);
}

// Number (from 1) of the last line up to `last` (from 0) that begins with a tab, 0 without one.
int TabIndentedLine(const std::string& text, int last) {
  int number = 0, found = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (number++ > last) break;
    const size_t content = line.find_first_not_of(" \t");
    if (content == absl::string_view::npos) continue;
    if (line.substr(0, content).find('\t') != absl::string_view::npos) found = number;
  }
  return found;
}

std::string Explain(const YAML::Exception& e, const std::string& name, const std::string& text) {
  if (e.mark.is_null()) return absl::StrCat(name, ": ", e.msg);
  std::string told = absl::StrCat(name, ":", e.mark.line + 1, ":", e.mark.column + 1, ": ", e.msg);
  const int tab = TabIndentedLine(text, e.mark.line);
  if (tab > 0) {
    absl::StrAppend(&told, " (line ", tab, " is indented with a tab; YAML wants spaces)");
  }
  return told;
}

// The one document of `text`.
absl::StatusOr<YAML::Node> ParseYaml(absl::string_view text, const std::string& name) {
  std::string copy(text);
  if (absl::StartsWith(copy, "\xEF\xBB\xBF")) copy.erase(0, 3);
  if (copy.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": holds a zero byte; is it text?"));
  }
  // JSON may be indented by tabs, which YAML forbids; strings of JSON hold none.
  const size_t start = copy.find_first_not_of(" \t\r\n");
  if (start != std::string::npos && copy[start] == '{') {
    std::replace(copy.begin(), copy.end(), '\t', ' ');
  }
  try {
    std::vector<YAML::Node> documents = YAML::LoadAll(copy);
    if (documents.empty() || (documents.size() == 1 && documents[0].IsNull())) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": is empty"));
    }
    if (documents.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": holds ", documents.size(), " documents; a job file holds one"));
    }
    return documents[0];
  } catch (const YAML::Exception& e) {
    return absl::InvalidArgumentError(Explain(e, name, copy));
  }
}

// Where an override leads: a field and the message that holds it.
struct Target {
  Message* message = nullptr;
  const FieldDescriptor* field = nullptr;
};

absl::StatusOr<Target> FindTarget(const std::string& override_text, absl::string_view path,
                                  TrainingJob& job) {
  Target target{&job, nullptr};
  std::string walked;
  for (absl::string_view name : absl::StrSplit(path, '.')) {
    if (target.field != nullptr) {
      if (target.field->is_repeated() ||
          target.field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
        return absl::InvalidArgumentError(
            absl::StrCat("--set ", override_text, ": ", walked, " has no fields"));
      }
      target.message =
          target.message->GetReflection()->MutableMessage(target.message, target.field);
    }
    const Descriptor* type = target.message->GetDescriptor();
    target.field = nullptr;
    for (int i = 0; i < type->field_count(); ++i) {
      if (type->field(i)->json_name() == name) target.field = type->field(i);
    }
    if (target.field == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("--set ", override_text, ": ", walked, walked.empty() ? "" : ": ",
                       UnknownField(name, type, TrainingJob::descriptor())));
    }
    absl::StrAppend(&walked, walked.empty() ? "" : ".", name);
  }
  return target;
}

absl::Status ApplyOverride(const std::string& text, TrainingJob& job) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--set ", text, ": expects path=value, as in --set spec.training.batchSize=4096"));
  }
  const std::string path = text.substr(0, equals), value = text.substr(equals + 1);
  absl::StatusOr<Target> target = FindTarget(text, path, job);
  if (!target.ok()) return target.status();
  const FieldDescriptor* field = target->field;
  if (value.empty()) {
    target->message->GetReflection()->ClearField(target->message, field);
    return absl::OkStatus();
  }
  YAML::Node node;
  // Bare text needs no YAML quoting on the command line.
  const bool text_field =
      field->cpp_type() == FieldDescriptor::CPPTYPE_STRING || TextForm(field) != nullptr;
  const char* const yaml = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING ? "[\"'" : "{\"'";
  const bool bare = text_field && std::strchr(yaml, value[0]) == nullptr;
  if (bare) {
    node = YAML::Node(value);
  } else {
    try {
      node = YAML::Load(value);
    } catch (const YAML::Exception& e) {
      return absl::InvalidArgumentError(absl::StrCat("--set ", text, ": ", e.msg));
    }
  }
  if (field->is_repeated() && node.IsScalar()) {
    YAML::Node list;
    list.push_back(node);
    node.reset(list);  // assigning would make the list its own element
  }
  YamlReader reader("", TrainingJob::descriptor());
  reader.ReadField(node, path, field, target->message);
  if (reader.problems().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--set ", text, ": ", reader.problems()[0]));
}

// A user's home at the start of a path: no shell puts it into a file, nor behind --set NAME=.
void ExpandHome(std::string* path) {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return;
  if (*path == "~" || absl::StartsWith(*path, "~/")) path->replace(0, 1, home);
}

void MakeAbsolute(const fs::path& folder, std::string* path) {
  if (path->empty() || *path == "-") return;  // "-": standard input
  ExpandHome(path);
  *path = (folder / *path).lexically_normal().string();
}

void MakePathsAbsolute(const fs::path& folder, JobSpec& spec) {
  // has_: a group that the file leaves out stays out.
  if (spec.has_data()) {
    for (std::string& file : *spec.mutable_data()->mutable_train()) MakeAbsolute(folder, &file);
    for (std::string& file : *spec.mutable_data()->mutable_eval()) MakeAbsolute(folder, &file);
  }
  for (FieldConfig& field : *spec.mutable_fields()) {
    if (field.has_vocabulary()) MakeAbsolute(folder, field.mutable_vocabulary()->mutable_file());
  }
  if (spec.model().has_init_from()) {
    MakeAbsolute(folder, spec.mutable_model()->mutable_init_from()->mutable_checkpoint());
  }
  if (spec.has_storage()) MakeAbsolute(folder, spec.mutable_storage()->mutable_directory());
  if (spec.has_checkpoint()) MakeAbsolute(folder, spec.mutable_checkpoint()->mutable_directory());
  if (spec.has_output()) {
    MakeAbsolute(folder, spec.mutable_output()->mutable_predictions());
    MakeAbsolute(folder, spec.mutable_output()->mutable_metrics());
    MakeAbsolute(folder, spec.mutable_output()->mutable_removed());
  }
}

// Whether the override set the field at `path` or something above it.
bool Sets(absl::string_view override_text, absl::string_view path) {
  const absl::string_view set = override_text.substr(0, override_text.find('='));
  if (!absl::StartsWith(path, set)) return false;
  return path.size() == set.size() || path[set.size()] == '.' || path[set.size()] == '[';
}

// Gives its place to a message of ResolveJob, which begins with the field's path: the last override
// that set it, else the line of the file.
absl::Status AddPlace(const absl::Status& status,
                      const std::function<std::string(const std::string&)>& where,
                      const std::vector<std::string>& overrides) {
  const std::string message(status.message());
  const std::string path = message.substr(0, message.find_first_of(": "));
  for (auto it = overrides.rbegin(); it != overrides.rend(); ++it) {
    if (Sets(*it, path)) {
      return absl::Status(status.code(), absl::StrCat("--set ", *it, ": ", message));
    }
  }
  return absl::Status(status.code(), absl::StrCat(where(path), message));
}

bool IsTextproto(absl::string_view name) {
  return absl::EndsWith(name, ".textproto") || absl::EndsWith(name, ".pbtxt") ||
         absl::EndsWith(name, ".txtpb");
}

// A user's text in it may hold anything.
absl::Status OneLine(const absl::Status& status) {
  return absl::Status(status.code(), ShownText(status.message()));
}

// Everything after reading: the same for every language. `where` tells where a field stands.
absl::StatusOr<TrainingJob> Complete(TrainingJob job, const std::string& folder,
                                     const std::vector<std::string>& overrides,
                                     const std::function<std::string(const std::string&)>& where) {
  for (const std::string& override_text : overrides) {
    absl::Status status = ApplyOverride(override_text, job);
    if (!status.ok()) return OneLine(status);
  }
  std::error_code error;
  const fs::path base = fs::absolute(folder, error);
  if (error) return absl::NotFoundError(absl::StrCat(folder, ": ", error.message()));
  if (job.has_spec()) MakePathsAbsolute(base, *job.mutable_spec());
  absl::Status status = ResolveJob(job);
  if (!status.ok()) return OneLine(AddPlace(status, where, overrides));
  return job;
}

}  // namespace

absl::StatusOr<TrainingJob> ParseJobText(absl::string_view text, const std::string& name,
                                         const std::string& folder,
                                         const std::vector<std::string>& overrides) {
  TrainingJob job;
  if (IsTextproto(name)) {
    TextprotoReader reader(name);
    reader.Read(text, &job);
    if (!reader.problems().empty()) {
      return absl::InvalidArgumentError(absl::StrJoin(reader.problems(), "\n"));
    }
    return Complete(std::move(job), folder, overrides,
                    [&](const std::string& path) { return reader.Where(path); });
  }
  absl::StatusOr<YAML::Node> document = ParseYaml(text, name);
  if (!document.ok()) return document.status();
  YamlReader reader(name, TrainingJob::descriptor());
  reader.Read(*document, "", &job);
  if (!reader.problems().empty()) {
    return absl::InvalidArgumentError(absl::StrJoin(reader.problems(), "\n"));
  }
  return Complete(std::move(job), folder, overrides,
                  [&](const std::string& path) { return reader.Where(path); });
}

absl::StatusOr<TrainingJob> LoadJobFile(const std::string& path,
                                        const std::vector<std::string>& overrides) {
  if (path == "-") {
    absl::StatusOr<std::string> text = ReadAll(std::cin, "standard input");
    if (!text.ok()) return text.status();
    absl::StatusOr<TrainingJob> job = ParseJobText(*text, "standard input", ".", overrides);
    if (job.ok() && spec::ReadsStandardInput(job->spec().data())) {
      return absl::InvalidArgumentError(
          "spec.data: '-' is standard input, which already holds the job file; write one of them "
          "to "
          "a file");
    }
    return job;
  }
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  const std::string folder = fs::path(path).parent_path().string();
  return ParseJobText(*text, path, folder.empty() ? "." : folder, overrides);
}

absl::Status CheckPlacesOfFile(const std::string& path, const TrainingJob& job, bool overwrite,
                               JobPlacesOptions::Storage storage) {
  JobPlacesOptions options;
  std::error_code error;
  if (path != "-") options.job_file = fs::absolute(path, error).string();
  options.overwrite = overwrite;
  options.storage = storage;
  return CheckJobPlaces(job.spec(), options);
}

}  // namespace strata
