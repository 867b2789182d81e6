// The schema of a job file with what the job's training files add to it.
// Tested by tests/tools/cli/schema_commands_test.cc
#ifndef STRATA_TOOLS_CLI_JOB_DATA_SCHEMA_H_
#define STRATA_TOOLS_CLI_JOB_DATA_SCHEMA_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {

// More bytes of text are not read for the schema of a job: they take some ten seconds.
inline constexpr uint64_t kMostSchemaBytes = uint64_t{1} << 30;

struct DataSchema {
  Schema schema;
  // How many fields with rows the data's examples have; 0: only their lines say it, and they are
  // not known.
  uint32_t fields = 0;
  // What the schema lacks until the data are indexed, and why, in a line without its end: "dense
  // tensors: known when the data are indexed (...)". Empty: it lacks nothing of them.
  std::string unknown;
  // The error with which the index pass will end, where the files were read for `fields`.
  absl::Status lines;
};

// A file as an index has it (path, size, fingerprint), added to `index`. What cannot be read now,
// as standard input, is left out.
void AddDataFile(const std::string& path, InputIndex* index);

// The schema that a checkpoint of the job will have, as far as its files can be read now, but for
// what its vocabularies have. Where only their lines say how many fields there are, the training
// files are read once, whole, with the memory of one line and one read. `spec` is resolved; `train`
// has those files that AddDataFile was called with, in order; none: it is called here.
// INVALID_ARGUMENT: what MakeModelTables says of a job with such data.
absl::StatusOr<DataSchema> SchemaWithData(const JobSpec& spec, InputIndex train);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_JOB_DATA_SCHEMA_H_
