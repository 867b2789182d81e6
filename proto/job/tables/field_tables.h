// Which of spec.tables the fields of the data have their rows in.
// Tested by tests/proto/job/tables/tables_spec_test.cc
#ifndef STRATA_PROTO_JOB_TABLES_FIELD_TABLES_H_
#define STRATA_PROTO_JOB_TABLES_FIELD_TABLES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/strata/job.pb.h"

namespace strata {

// Names of the fields with rows, by their numbers (field_plan.h), where the job file says which
// there are: criteo, criteo_csv, csv. Of libffm the data say how many there are.
std::optional<std::vector<std::string>> NamesOfFields(const JobSpec& spec);

// By field of the data: the index in spec.tables of the table that spec.fields gives it. Empty
// where spec.tables has none, and for libfm and libsvm, whose features have no fields: those are
// all of the one table that such a job may have.
// INVALID_ARGUMENT: a field without a table, one that is given twice, a table that does not exist
// or that no field names, several tables for libfm or libsvm.
absl::StatusOr<std::vector<uint32_t>> FieldTables(const JobSpec& spec, uint32_t fields);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_TABLES_FIELD_TABLES_H_
