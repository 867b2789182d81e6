#include "tools/cli/job/validate_command.h"

#include <google/protobuf/util/json_util.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/job/checks/shown.h"
#include "proto/job/fields/field_form.h"
#include "proto/job/fields/sequences.h"
#include "proto/job/fields/shared_rows.h"
#include "proto/job/job_spec.h"
#include "proto/job/same_files.h"
#include "proto/job/schema/schema.h"
#include "proto/job/schema/schema_text.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "proto/runtime/files/job_places.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/job/data_schema.h"
#include "tools/cli/job/file.h"
#include "worker/data/files/file_list.h"
#include "worker/data/files/text_files.h"
#include "worker/data/formats/parser_factory.h"
#include "worker/data/formats/vocabulary.h"
#include "worker/data/index/vocabularies.h"
#include "worker/data/reading/line_stream.h"

namespace strata {
namespace {

// "" or what is wrong with the file.
std::string FileProblem(const std::string& path) {
  if (path == "-") return "";  // standard input
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    return absl::StrCat(std::strerror(errno), "; mend the path, or wait for the file");
  }
  if (S_ISDIR(info.st_mode)) return "is a folder; name a file in it";
  if (access(path.c_str(), R_OK) != 0) {
    return absl::StrCat(std::strerror(errno), "; give this user the right to read it");
  }
  if (!S_ISREG(info.st_mode)) return "is not a regular file; write the data to one";
  if (info.st_size == 0) return "is empty; write data to it, or move it away";
  return "";
}

// Each path, and each file that a folder or a glob stands for, which stderr tells. `index` has
// those that are right. `written`: what the job writes.
template <typename Paths>
void CheckFiles(const char* field, const Paths& paths, const std::vector<WrittenFile>& written,
                std::vector<std::string>* problems, InputIndex* index) {
  const auto all = ListFiles(field, {paths.begin(), paths.end()}, {.written = written});
  if (!all.ok()) problems->push_back(std::string(all.status().message()));
  for (int i = 0; i < paths.size(); ++i) {
    const auto files = ListFiles(field, {paths[i]});
    if (!files.ok()) continue;  // told above
    if (*files != std::vector<std::string>{paths[i]}) {
      std::fprintf(stderr, "%s[%d]: %s: %zu file%s\n", field, i, paths[i].c_str(), files->size(),
                   files->size() == 1 ? "" : "s");
      for (const std::string& file : *files) std::fprintf(stderr, "  %s\n", file.c_str());
    }
    for (const std::string& file : *files) {
      const std::string problem = FileProblem(file);
      if (problem.empty()) {
        AddDataFile(file, index);
      } else {
        problems->push_back(absl::StrCat(field, "[", i, "]: ", file, ": ", problem));
      }
    }
  }
}

std::string DescribeSchema(const DataSchema& schema, const JobSpec& spec) {
  return absl::StrCat(SchemaText(schema.schema, spec), ShownText(schema.unknown),
                      schema.unknown.empty() ? "" : "\n");
}

// Says in `schema` what the job's vocabularies have.
absl::StatusOr<Vocabularies> ReadVocabularies(const JobSpec& spec, Schema* schema) {
  TextFiles files;
  InputIndex read;
  auto vocabularies = LoadVocabularies(spec, &files, &read);
  if (vocabularies.ok()) DescribeVocabularies(spec, VocabulariesOf(read), schema);
  return vocabularies;
}

// Whether the first of the files has the columns that the job names.
absl::Status CheckColumns(const JobSpec& spec, const InputIndex& index,
                          const Vocabularies& vocabularies) {
  if (!NeedsFirstLine(spec.data()) || index.files().empty()) return absl::OkStatus();
  const std::string& first = index.files(0).path();
  LineStream lines({.paths = {first}});
  if (absl::Status s = lines.Start(); !s.ok()) return s;
  const auto parser = MakeLineParser(spec, DataShape(), lines.first_line(), vocabularies);
  if (parser.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(NameForMessages(first), ":1: ", parser.status().message()));
}

// The job in the form that was asked for, and its labels in the schema; stderr says what that form
// means else.
absl::Status ChangeForm(const ValidateOptions& options, TrainingJob& job, DataSchema* schema) {
  if (options.form.empty()) return absl::OkStatus();
  const bool fields = options.form == "fields";
  const auto notes = fields ? ToFieldsForm(*job.mutable_spec(), schema->fields)
                            : ToColumnsForm(*job.mutable_spec());
  const absl::Status changed = notes.ok() ? ResolveJob(job) : notes.status();
  if (!changed.ok()) {
    std::string more = fields ? "" : "; only the form of spec.fields can say it";
    const bool counted = fields && job.spec().data().format() == "libffm";
    if (counted && !schema->unknown.empty()) more = absl::StrCat("; ", ShownText(schema->unknown));
    return absl::Status(changed.code(),
                        absl::StrCat(options.source.file, ": ", changed.message(), more));
  }
  for (const std::string& note : *notes) std::fprintf(stderr, "strata: note: %s\n", note.c_str());
  *schema->schema.mutable_labels() = SchemaLabels(job.spec());
  return absl::OkStatus();
}

void Warn(const std::string& warning) {
  if (!warning.empty()) std::fprintf(stderr, "strata: warning: %s\n", warning.c_str());
}

// INVALID_ARGUMENT, a line for each file of spec.data, and each vocabulary, that is missing, empty,
// no file or not readable, and each folder or glob without files, or with one that the job writes.
// Adds the files that are right to `train` and `eval`.
absl::Status CheckDataFiles(const JobSpec& spec, InputIndex* train, InputIndex* eval) {
  std::vector<std::string> problems;
  const std::vector<WrittenFile> written = FilesWritten(spec);
  CheckFiles("spec.data.train", spec.data().train(), written, &problems, train);
  CheckFiles("spec.data.eval", spec.data().eval(), written, &problems, eval);
  Warn(SameFiles(*train, *eval));
  for (int i = 0; i < spec.fields_size(); ++i) {
    if (!spec.fields(i).has_vocabulary()) continue;
    const std::string& file = spec.fields(i).vocabulary().file();
    const std::string problem = FileProblem(file);
    if (problem.empty()) continue;
    problems.push_back(absl::StrCat("spec.fields[", i, "].vocabulary.file: ", file, ": ", problem));
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

// Prints what the model is made of, and nothing of the job else.
ExitCode PrintSchema(const ValidateOptions& options, const JobSpec& spec) {
  absl::StatusOr<DataSchema> schema = SchemaWithData(spec, {});
  if (!schema.ok()) return ReportError(schema.status());
  // Without what a file would say that is not there yet.
  ReadVocabularies(spec, &schema->schema).status().IgnoreError();
  if (options.json) {
    std::printf("%s\n", SchemaJson(schema->schema, spec).c_str());
    if (!schema->unknown.empty()) {
      std::fprintf(stderr, "%s\n", ShownText(schema->unknown).c_str());
    }
    return kExitOk;
  }
  std::printf("%s", DescribeSchema(*schema, spec).c_str());
  return kExitOk;
}

// The schema of a job whose files, vocabularies and places are right.
absl::StatusOr<DataSchema> CheckedSchema(const ValidateOptions& options, const TrainingJob& job) {
  InputIndex train, eval;
  if (absl::Status s = CheckDataFiles(job.spec(), &train, &eval); !s.ok()) return s;
  absl::StatusOr<DataSchema> schema = SchemaWithData(job.spec(), train);
  if (!schema.ok()) return schema;
  if (!schema->lines.ok()) return schema->lines;
  const auto vocabularies = ReadVocabularies(job.spec(), &schema->schema);
  if (!vocabularies.ok()) return vocabularies.status();
  absl::Status s = CheckColumns(job.spec(), train, *vocabularies);
  if (s.ok()) s = CheckColumns(job.spec(), eval, *vocabularies);
  if (!s.ok()) return s;
  s = CheckPlacesOfFile(options.source.file, job, /*overwrite=*/false);
  if (!s.ok()) return s;
  return schema;
}

}  // namespace

ExitCode RunValidate(const ValidateOptions& options) {
  absl::StatusOr<TrainingJob> job = LoadJobFile(options.source.file, options.source.overrides);
  if (!job.ok()) return ReportError(job.status());
  if (absl::Status s = DeclaredSchema(job->spec()).status(); !s.ok()) return ReportError(s);
  Warn(KeysByPosition(job->spec()));
  Warn(NothingToAttend(job->spec()));
  Warn(NoSharedRows(job->spec()));
  if (options.schema) return PrintSchema(options, job->spec());
  absl::StatusOr<DataSchema> schema = CheckedSchema(options, *job);
  if (!schema.ok()) return ReportError(schema.status());
  if (absl::Status s = ChangeForm(options, *job, &*schema); !s.ok()) return ReportError(s);
  google::protobuf::util::JsonPrintOptions print;
  print.add_whitespace = !options.json;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(*job, &text, print).ok()) {
    return ReportError(absl::InternalError("the job cannot be printed as JSON"));
  }
  std::printf("%s%s", text.c_str(), options.json ? "\n" : "");
  if (!options.json) std::fprintf(stderr, "%s\n", DescribeSchema(*schema, job->spec()).c_str());
  std::fprintf(stderr, "%s is right\n", options.source.file.c_str());
  return kExitOk;
}

}  // namespace strata
