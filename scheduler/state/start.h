// Whether what a job starts from fits it: schemas compared by name, told in a user's words. Pure.
// Tested by tests/scheduler/store/submission_test.cc
#ifndef STRATA_SCHEDULER_STATE_START_H_
#define STRATA_SCHEDULER_STATE_START_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job/schema/schema_mapping.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"

namespace strata::scheduler {

// The schema of a job whose data have `fields` fields and `numeric` numbers. INVALID_ARGUMENT: the
// job cannot have a model of them (MakeModelTables).
absl::StatusOr<Schema> SchemaOf(const JobSpec& spec, uint32_t fields, uint32_t numeric,
                                absl::string_view data_fingerprint = "");

// The same before the data are read: where they decide, as those of `saved`.
absl::StatusOr<Schema> ExpectedSchema(const JobSpec& spec, const Manifest& saved);

// DATA_LOSS: the manifest's schema is none, or contradicts its job.
absl::Status CheckSchemaOf(const Manifest& manifest);

// What the job `spec`, of the schema `now`, finds in the checkpoint that spec.model.initFrom names:
// its schema is `saved`, and spec.sampleWeight of its job was `saved_weight`; nothing: that is not
// known, and not compared. `files`: what the vocabularies of `now` have, here and below.
SchemaMapping MapInit(const Schema& saved, const std::optional<std::string>& saved_weight,
                      const Schema& now, const JobSpec& spec, const VocabularyContents& files = {});
// The mapping, in one line, with a warning of output layers above other layers than they were.
std::string InitText(const Schema& saved, const std::optional<std::string>& saved_weight,
                     const Schema& now, const JobSpec& spec, const VocabularyContents& files = {});

// FAILED_PRECONDITION, INVALID_ARGUMENT: that does not fit the job; a line for each difference.
absl::Status CheckInit(const Schema& saved, const std::optional<std::string>& saved_weight,
                       const Schema& now, const JobSpec& spec,
                       const VocabularyContents& files = {});

// FAILED_PRECONDITION: the same of a checkpoint to resume from.
absl::Status CheckResumed(const Schema& saved, const Schema& now, const VocabularyContents& files);
// The same of differences that are known (proto/job/schema/schema_start.h); none: OK.
absl::Status OtherModel(std::vector<std::string> differences);
// What else there is than to resume, as part of a sentence.
inline constexpr char kOtherWays[] =
    "start anew with --overwrite, or start from it with spec.model.initFrom in another "
    "spec.checkpoint.directory";
// The lines below one that introduces them.
std::string Indented(absl::string_view lines);

// What such a job takes over, in one line; and whether its data are others than they were.
std::string ResumedText(const Schema& saved, const Schema& now, const VocabularyContents& files);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_STATE_START_H_
