#include "scheduler/state/start.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/job/schema/schema.h"
#include "proto/job/schema/schema_depths.h"
#include "proto/job/schema/schema_start.h"
#include "proto/job/tables/model_tables.h"

namespace strata::scheduler {

std::string Indented(absl::string_view lines) {
  return absl::StrCat("\n  ", absl::StrReplaceAll(lines, {{"\n", "\n  "}}));
}

absl::StatusOr<Schema> SchemaOf(const JobSpec& spec, uint32_t fields, uint32_t numeric,
                                absl::string_view data_fingerprint) {
  const auto model = MakeModelTables(spec, fields, numeric);
  if (!model.ok()) return model.status();
  return MakeSchema(spec, *model, data_fingerprint);
}

absl::StatusOr<Schema> ExpectedSchema(const JobSpec& spec, const Manifest& saved) {
  const auto counts =
      CountFields(spec).value_or(FieldCounts{.fields = saved.fields(), .numeric = saved.numeric()});
  return SchemaOf(spec, counts.fields, counts.numeric);
}

absl::Status CheckSchemaOf(const Manifest& manifest) {
  const auto made = ExpectedSchema(manifest.job().spec(), manifest);
  if (!made.ok()) return absl::DataLossError(made.status().message());
  return CheckSaved(SavedSchema(manifest), *made);
}

SchemaMapping MapInit(const Schema& saved, const std::optional<std::string>& saved_weight,
                      const Schema& now, const JobSpec& spec, const VocabularyContents& files) {
  const auto rename = RenamesOf(spec.model().init_from());
  SchemaMapping mapping = MapSchemas(saved, now, rename, files);
  // No line has weighed what was imported.
  if (saved_weight && saved.model() != kImportedModel) {
    MapSampleWeight(*saved_weight, spec.sample_weight(), rename, mapping);
  }
  return mapping;
}

std::string InitText(const Schema& saved, const std::optional<std::string>& saved_weight,
                     const Schema& now, const JobSpec& spec, const VocabularyContents& files) {
  const SchemaMapping mapping = MapInit(saved, saved_weight, now, spec, files);
  std::string text = MappingText(mapping);
  const std::string depths = DepthWarning(mapping, saved, now);
  if (!depths.empty()) absl::StrAppend(&text, "; warning: ", depths);
  if (saved_weight || saved.model() == kImportedModel) return text;
  return absl::StrCat(text,
                      "; not compared: spec.sampleWeight (an earlier version accepted the job)");
}

absl::Status CheckInit(const Schema& saved, const std::optional<std::string>& saved_weight,
                       const Schema& now, const JobSpec& spec, const VocabularyContents& files) {
  const InitFromSpec& init = spec.model().init_from();
  const absl::Status s =
      CheckInitFrom(MapInit(saved, saved_weight, now, spec, files), saved, now, init);
  if (s.ok() || absl::IsInvalidArgument(s)) return s;
  return absl::FailedPreconditionError(absl::StrCat(
      "spec.model.initFrom ", init.checkpoint(), " does not fit the job:", Indented(s.message())));
}

absl::Status CheckResumed(const Schema& saved, const Schema& now, const VocabularyContents& files) {
  return OtherModel(ResumeDifferences(MapSchemas(saved, now, {}, files)));
}

absl::Status OtherModel(std::vector<std::string> differences) {
  if (differences.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the checkpoint to resume from is of another model; resume with the same one, ",
                   kOtherWays, ":", Indented(FirstLines(std::move(differences)))));
}

std::string ResumedText(const Schema& saved, const Schema& now, const VocabularyContents& files) {
  const std::string text = MappingText(MapSchemas(saved, now, {}, files));
  // Of files that are listed it is known which they are (scheduler/job/new_files.h).
  if (saved.data_fingerprint() == now.data_fingerprint() || !saved.data().files().empty()) {
    return text;
  }
  return absl::StrCat(text,
                      "; the training files are not those of the checkpoint (their sizes, ends or "
                      "order differ): what was read of those is not read of these");
}

}  // namespace strata::scheduler
