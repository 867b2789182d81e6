// Checkpoints of another job, written file by file, and a job on two shards that starts from one
// (spec.model.initFrom).
#ifndef STRATA_TESTS_SERVER_JOB_ANOTHER_CHECKPOINT_H_
#define STRATA_TESTS_SERVER_JOB_ANOTHER_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proto/core/partition.h"
#include "proto/core/table_spec.h"
#include "server/job/opening.h"
#include "server/job/plan.h"
#include "storage/row/layout.h"
#include "tests/temp_folder.h"

namespace strata::server {

inline constexpr uint32_t kFourPartitions = 4;
inline constexpr PartitionRange kAllFour{PartitionId(0), PartitionId(kFourPartitions - 1)};

// Table 0: rows of one weight and, where they have one, a score.
TableSpec OneWeight(bool scored);
// Table 1: one tensor of `weights` floats, whose rows have one each.
TableSpec OneTensor(uint64_t weights);

struct AnotherRow {
  float weight = 0;
  float score = 0;
  storage::RowMeta meta;
};
using AnotherRows = std::map<uint64_t, AnotherRow>;  // by key

// A file of a checkpoint. `applied`: the windows that an asynchronous job's shard had applied,
// whose files say the number of the cut where those of bsp say the step.
struct AnotherFile {
  uint64_t clock = 0;
  uint64_t base = 0;  // an increment, on the file of that clock
  uint64_t applied = 0;
  uint64_t earlier = 0;     // commits of jobs before that one, of each table
  size_t filter_bytes = 0;  // of an admission filter of no table here
  PartitionRange range = kAllFour;
  AnotherRows rows;
  AnotherRows dense = {};  // of the tensor, by number
};

// Increments follow the file before them. `tables`: OneWeight, or that and OneTensor.
void WriteAnother(const std::string& folder, const std::vector<AnotherFile>& files,
                  const std::vector<TableSpec>& tables);

// A job of such tables on two shards that takes all rows of the checkpoint.
JobPlan PlanFrom(const std::string& checkpoint, const std::vector<TableSpec>& tables);

// Opens it in temp.path() + "/server".
OpenedJob OpenFrom(const TempFolder& temp, const JobPlan& plan);
OpenedJob OpenFrom(const TempFolder& temp, const std::string& checkpoint,
                   const std::vector<TableSpec>& tables);

// What the shards hold of a table, as their checkpoint has it.
AnotherRows RowsOf(const TempFolder& temp, const OpenedJob& job, const TableSpec& table);

// Steps without an example.
void PassSteps(const OpenedJob& job, uint64_t first, uint64_t last);

}  // namespace strata::server

#endif  // STRATA_TESTS_SERVER_JOB_ANOTHER_CHECKPOINT_H_
