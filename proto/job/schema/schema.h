// What a model is made of, by name: its tables, dense tensors, fields and labels as a Schema, a
// pure function of the job and of its tables. Manifests carry it; checkpoints are compared by it
// (proto/job/schema/schema_mapping.h).
#ifndef STRATA_PROTO_JOB_SCHEMA_SCHEMA_H_
#define STRATA_PROTO_JOB_SCHEMA_SCHEMA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/core/table_spec.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {

// `spec` has its defaults resolved; `model` are its tables. Hashed tables come in the order of
// their numbers, tensors in that of theirs. `data_fingerprint`: of the training files; empty: not
// known.
Schema MakeSchema(const JobSpec& spec, const ModelTables& model,
                  absl::string_view data_fingerprint = "");

// The schema as far as the job file says it: where its data decide how many fields an example has
// (libfm, libsvm, libffm) it has no tensors, but those of lr and fm, whose shapes do not follow
// from it, and of libffm the fields that spec.fields names. INVALID_ARGUMENT: what MakeModelTables
// says.
absl::StatusOr<Schema> DeclaredSchema(const JobSpec& spec);

// The schema of a checkpoint, to compare with others. Versions before did not say of a multiValued
// field that an empty default gives it a row where a line has no value, and had other names for
// some tensors (schema_names.h); the manifest's job says both.
Schema SavedSchema(const Manifest& manifest);

// The same of a schema of a checkpoint that a job's record kept, without the manifest. What
// versions before left out is as `job` has it: they took either for the other when they accepted
// the job, and this one compared it before it kept anything. `rename`: as MapSchemas has it.
Schema StoredSchema(const Schema& stored, const JobSpec& job,
                    const std::map<std::string, std::string>& rename);

// The fields of a job's examples, in the order in which the model sees them: those with rows, then
// the numbers. `fields`: how many have rows; counts for libffm alone.
std::vector<SchemaField> SchemaFields(const JobSpec& spec, uint32_t fields);

// The labels of a job in either form: spec.labels, or the one of spec.data, which is kUnnamedLabel
// (schema_meaning.h).
google::protobuf::RepeatedPtrField<SchemaLabel> SchemaLabels(const JobSpec& spec);

// How many fields with rows and how many numbers the examples have, where the job alone says it:
// csv, criteo, criteo_csv. The other formats' data decide.
struct FieldCounts {
  uint32_t fields = 0;
  uint32_t numeric = 0;
};
std::optional<FieldCounts> CountFields(const JobSpec& spec);

// Columns whose categories are hashed by their position, or may be, as the job gives a number for
// the name: a warning for people, or empty. Only the files say whether a header has such a name.
std::string KeysByPosition(const JobSpec& spec);

// (inputs, outputs) of a layer's weights, else all elements in one dimension.
std::vector<uint64_t> TensorShape(const ModelTables& tables, size_t number);

// What an optimizer keeps beside a weight, in the order of ops/optimizer.h; none: it keeps nothing.
std::vector<std::string> OptimizerStateNames(OptimizerType type);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SCHEMA_SCHEMA_H_
