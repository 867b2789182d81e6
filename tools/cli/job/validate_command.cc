#include "tools/cli/job/validate_command.h"

#include <google/protobuf/util/json_util.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/job/fields/field_form.h"
#include "proto/job/fields/sequences.h"
#include "proto/job/fields/shared_rows.h"
#include "proto/job/index_fingerprint.h"
#include "proto/job/job_spec.h"
#include "proto/job/same_files.h"
#include "proto/job/schema/schema.h"
#include "proto/job/schema/schema_text.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "proto/runtime/files/job_places.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/job/file.h"
#include "worker/data/files/data_file.h"
#include "worker/data/files/file_list.h"
#include "worker/data/files/text_files.h"
#include "worker/data/index/vocabularies.h"

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

// A file as an index has it; what cannot be read is told elsewhere.
void AddFile(const std::string& path, InputIndex* index) {
  if (path == "-") return;
  const auto file = DataFile::Open(path);
  if (!file.ok()) return;
  const auto fingerprint = (*file)->Fingerprint();
  if (!fingerprint.ok()) return;
  InputFile* entry = index->add_files();
  entry->set_path(path);
  entry->set_bytes((*file)->size());
  entry->set_fingerprint(*fingerprint);
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
        AddFile(file, index);
      } else {
        problems->push_back(absl::StrCat(field, "[", i, "]: ", file, ": ", problem));
      }
    }
  }
}

std::string DescribeSchema(const Schema& schema, const JobSpec& spec) {
  return absl::StrCat(SchemaText(schema, spec),
                      schema.tensors().empty()
                          ? "its dense tensors follow from the data, which tell how many fields "
                            "an example has; `strata checkpoint show` prints them\n"
                          : "");
}

// Says in `schema` what the job's vocabularies have.
absl::Status ReadVocabularies(const JobSpec& spec, Schema* schema) {
  TextFiles files;
  InputIndex read;
  const auto vocabularies = LoadVocabularies(spec, &files, &read);
  if (vocabularies.ok()) DescribeVocabularies(spec, VocabulariesOf(read), schema);
  return vocabularies.status();
}

// Of the files to train on, as a checkpoint will name them; empty where one cannot be read now.
// `train`: those that were read already, in their order; none: they are read.
std::string FingerprintOfData(const JobSpec& spec, InputIndex train = {}) {
  const auto& paths = spec.data().train();
  const auto files = ListFiles("spec.data.train", {paths.begin(), paths.end()});
  if (!files.ok()) return "";
  if (train.files().empty()) {
    for (const std::string& file : *files) AddFile(file, &train);
  }
  return train.files_size() == static_cast<int>(files->size()) ? DataFingerprint(train) : "";
}

// The job in the form that was asked for.
absl::Status ChangeForm(const std::string& form, TrainingJob& job) {
  if (form.empty()) return absl::OkStatus();
  const absl::Status changed =
      form == "fields" ? ToFieldsForm(*job.mutable_spec()) : ToColumnsForm(*job.mutable_spec());
  return changed.ok() ? ResolveJob(job) : changed;
}

void Warn(const std::string& warning) {
  if (!warning.empty()) std::fprintf(stderr, "strata: warning: %s\n", warning.c_str());
}

// INVALID_ARGUMENT, a line for each file of spec.data, and each vocabulary, that is missing, empty,
// no file or not readable, and each folder or glob without files, or with one that the job writes.
// Adds the files that are right to `train`.
absl::Status CheckDataFiles(const JobSpec& spec, InputIndex* train) {
  std::vector<std::string> problems;
  InputIndex eval;
  const std::vector<WrittenFile> written = FilesWritten(spec);
  CheckFiles("spec.data.train", spec.data().train(), written, &problems, train);
  CheckFiles("spec.data.eval", spec.data().eval(), written, &problems, &eval);
  Warn(SameFiles(*train, eval));
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

}  // namespace

ExitCode RunValidate(const ValidateOptions& options) {
  absl::StatusOr<TrainingJob> job = LoadJobFile(options.source.file, options.source.overrides);
  if (!job.ok()) return ReportError(job.status());
  absl::StatusOr<Schema> schema = DeclaredSchema(job->spec());
  if (!schema.ok()) return ReportError(schema.status());
  Warn(KeysByPosition(job->spec()));
  Warn(NothingToAttend(job->spec()));
  Warn(NoSharedRows(job->spec()));
  if (options.schema) {
    schema->set_data_fingerprint(FingerprintOfData(job->spec()));
    // Without what a file would say that is not there yet.
    ReadVocabularies(job->spec(), &*schema).IgnoreError();
    std::printf("%s", options.json ? (SchemaJson(*schema, job->spec()) + "\n").c_str()
                                   : DescribeSchema(*schema, job->spec()).c_str());
    return kExitOk;
  }
  InputIndex train;
  const absl::Status files = CheckDataFiles(job->spec(), &train);
  if (!files.ok()) return ReportError(files);
  schema->set_data_fingerprint(FingerprintOfData(job->spec(), std::move(train)));
  if (absl::Status s = ReadVocabularies(job->spec(), &*schema); !s.ok()) return ReportError(s);
  if (absl::Status s = CheckPlacesOfFile(options.source.file, *job, /*overwrite=*/false); !s.ok())
    return ReportError(s);
  const absl::Status changed = ChangeForm(options.form, *job);
  if (!changed.ok()) {
    return ReportError(absl::Status(
        changed.code(),
        absl::StrCat(options.source.file, ": ", changed.message(),
                     options.form == "columns" ? "; only spec.fields can say this job" : "")));
  }
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
