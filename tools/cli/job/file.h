// Job files: one TrainingJob (proto/strata/job.proto) as YAML or JSON with camelCase names, or in
// protobuf's text format with the names of the .proto file.
#ifndef STRATA_TOOLS_CLI_JOB_FILE_H_
#define STRATA_TOOLS_CLI_JOB_FILE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/job_places.h"
#include "proto/strata/job.pb.h"

namespace strata {

// Files above this size are refused: a job file is written by hand.
inline constexpr size_t kMaxJobFileBytes = size_t{1} << 20;

// Files named .textproto, .pbtxt or .txtpb are in the text format, all others YAML or JSON.
//
// Reads the job file at `path` ("-": standard input), applies `overrides`, makes paths absolute,
// fills defaults and checks values (ResolveJob).
//
// An override is "path=value" as in "spec.training.batchSize=4096"; the value is YAML
// ("spec.model.hidden=[64, 32]"), a list of one may be given bare, and an empty value takes the
// field's default.
//
// These relative paths are relative to the folder of the job file (standard input: to the current
// folder), also when an override gave them: spec.data.train, spec.data.eval ("-", standard input,
// stays), spec.model.initFrom,
// spec.storage.directory, spec.checkpoint.directory, spec.output.predictions, spec.output.metrics,
// spec.output.removed.
//
// Errors: NOT_FOUND, PERMISSION_DENIED (the file), INVALID_ARGUMENT (what it says): one line for
// each thing that is wrong, as "job.yaml:7:5: spec.training: unknown field 'batchsize'; did you
// mean 'batchSize'?".
absl::StatusOr<TrainingJob> LoadJobFile(const std::string& path,
                                        const std::vector<std::string>& overrides);

// Of a job that LoadJobFile read from `path`: its places as seen from here
// (proto/runtime/files/job_places.h). INVALID_ARGUMENT. `storage`: a cluster's servers have their
// own, which may hang here.
absl::Status CheckPlacesOfFile(
    const std::string& path, const TrainingJob& job, bool overwrite,
    JobPlacesOptions::Storage storage = JobPlacesOptions::Storage::kLook);

// The same for text. `name` stands in messages, and its end tells the language; `folder` is what
// relative paths are relative to.
absl::StatusOr<TrainingJob> ParseJobText(absl::string_view text, const std::string& name,
                                         const std::string& folder,
                                         const std::vector<std::string>& overrides);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_JOB_FILE_H_
