// The hashed tables of a job, which do not depend on its data.
// Tested by tests/proto/job/tables/tables_spec_test.cc
#ifndef STRATA_PROTO_JOB_TABLES_HASHED_TABLES_H_
#define STRATA_PROTO_JOB_TABLES_HASHED_TABLES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/table_spec.h"
#include "proto/strata/job.pb.h"

namespace strata {

// The number of the table that stands at `index` of spec.tables: 1 is the dense one's.
constexpr uint32_t TableNumber(uint32_t index) { return index == 0 ? 0 : index + 1; }

// Of spec.tables[].dramShare. The sum over all tables is far below 2^32.
inline constexpr uint32_t kMaxDramShare = 1'000'000;

// Those of spec.tables, in order, or the one of a job without: `features`. `spec` has its defaults
// resolved (job_spec.h). INVALID_ARGUMENT names the field.
absl::StatusOr<std::vector<TableSpec>> MakeHashedTables(const JobSpec& spec);

// The one width of all fields' embeddings; 0 of a model that takes any. field_tables: of
// FieldTables. INVALID_ARGUMENT, when they have several: names fields, tables and widths.
absl::StatusOr<uint32_t> EmbeddingDim(const JobSpec& spec,
                                      const std::vector<uint32_t>& field_tables);

// Easgd: the tables hold the centre, to which lanes add what they exchange; the job's optimizers
// are those of the lanes' own steps, and this one is the tables'.
bool HoldsCentre(const JobSpec& spec);
OptimizerSpec SumsAlone();

}  // namespace strata

#endif  // STRATA_PROTO_JOB_TABLES_HASHED_TABLES_H_
