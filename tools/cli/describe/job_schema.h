// What a job file may say: fields with types and the comments of job.proto, for `strata explain`,
// the manual page and completion.
// Tested by tests/tools/cli/describe/explain_test.cc
// Tested by tests/tools/cli/describe/job_defaults_test.cc
#ifndef STRATA_TOOLS_CLI_DESCRIBE_JOB_SCHEMA_H_
#define STRATA_TOOLS_CLI_DESCRIBE_JOB_SCHEMA_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace strata {

struct JobFileField {
  std::string name;  // as job files write it: "batchSize"; "" at the root
  std::string path;  // "spec.training.batchSize"; "" at the root
  // "text", "integer", "number", "true or false", "object", or "list of texts" and so on.
  std::string type;
  // The field's comment, and after a blank line that of its message's type; lines joined.
  std::string text;
  // What the comment says after "Default": "512", "sgd 0.01, momentum 0.01" (by type); "" when it
  // says nothing.
  std::string default_text;
  bool required = false;             // the comment says so
  std::vector<JobFileField> fields;  // of an object or of a list's objects, in order of job.proto
};

// The root: the fields of TrainingJob. Static, made on the first call; any thread.
const JobFileField& JobSchema();

// The field at `path` ("" and ".": the root; "[0]" behind a list is passed over). NOT_FOUND names
// the part that is unknown and what was probably meant, or what there is.
absl::StatusOr<const JobFileField*> FindField(absl::string_view path);

// Every path below the root, in order of job.proto, objects before their fields.
std::vector<std::string> AllPaths();

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DESCRIBE_JOB_SCHEMA_H_
