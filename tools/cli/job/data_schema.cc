#include "tools/cli/job/data_schema.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/job/index_fingerprint.h"
#include "proto/job/schema/schema.h"
#include "proto/job/tables/model_tables.h"
#include "worker/data/files/data_file.h"
#include "worker/data/files/file_list.h"
#include "worker/data/reading/field_count.h"

namespace strata {
namespace {

// The training files, where all can be read now.
struct TrainFiles {
  std::vector<std::string> paths;
  uint64_t bytes = 0;
  std::string fingerprint;
  std::string unreadable;  // why not; then the others are empty
};

TrainFiles FindTrainFiles(const JobSpec& spec, InputIndex train) {
  TrainFiles out;
  const auto& paths = spec.data().train();
  auto files = ListFiles("spec.data.train", {paths.begin(), paths.end()});
  if (!files.ok()) {
    out.unreadable = std::string(files.status().message());
    return out;
  }
  if (train.files().empty()) {
    for (const std::string& file : *files) AddDataFile(file, &train);
  }
  for (size_t i = 0; i < files->size(); ++i) {
    const std::string& file = (*files)[i];
    const bool there = i < static_cast<size_t>(train.files_size()) &&
                       train.files(static_cast<int>(i)).path() == file;
    if (there) continue;
    out.unreadable = file == "-" ? "standard input is read by the job alone"
                                 : absl::StrCat(file, " cannot be read here");
    return out;
  }
  for (const InputFile& file : train.files()) out.bytes += file.bytes();
  out.fingerprint = DataFingerprint(train);
  out.paths = *std::move(files);
  return out;
}

// What a schema lacks that the job file alone gives, of data whose lines say how many fields there
// are; empty: nothing.
std::string Lacking(const Schema& declared, const JobSpec& spec) {
  std::string lacking = declared.tensors().empty() ? "dense tensors" : "";
  if (spec.data().format() != "libffm") return lacking;
  return lacking.empty() ? "fields" : absl::StrCat(lacking, " and fields");
}

}  // namespace

void AddDataFile(const std::string& path, InputIndex* index) {
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

absl::StatusOr<DataSchema> SchemaWithData(const JobSpec& spec, InputIndex train) {
  absl::StatusOr<Schema> declared = DeclaredSchema(spec);
  if (!declared.ok()) return declared.status();
  const TrainFiles files = FindTrainFiles(spec, std::move(train));
  DataSchema out;
  out.schema = *std::move(declared);
  out.schema.set_data_fingerprint(files.fingerprint);
  if (const std::optional<FieldCounts> counts = CountFields(spec)) {
    out.fields = counts->fields;
    return out;
  }
  const std::string lacking = Lacking(out.schema, spec);
  if (lacking.empty()) return out;
  std::string why = files.unreadable;
  if (why.empty() && files.bytes > kMostSchemaBytes) {
    why = absl::StrCat("spec.data.train has ", files.bytes, " bytes, and at most ",
                       kMostSchemaBytes, " are read for this");
  }
  if (why.empty()) {
    const auto fields = CountFieldsOfLines(spec.data(), files.paths, kMostSchemaBytes);
    if (fields.ok()) {
      const auto model = MakeModelTables(spec, *fields, 0);
      if (!model.ok()) return model.status();
      out.schema = MakeSchema(spec, *model, files.fingerprint);
      out.fields = *fields;
      return out;
    }
    why = std::string(fields.status().message());
    if (!absl::IsResourceExhausted(fields.status())) out.lines = fields.status();
  }
  out.unknown = absl::StrCat(lacking, ": known when the data are indexed (", why, ")");
  return out;
}

}  // namespace strata
