// A job whose rows lie below DRAM, mostly, on real servers.
#ifndef STRATA_TESTS_FAULTS_TIERED_JOB_H_
#define STRATA_TESTS_FAULTS_TIERED_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"

namespace strata::testing {

// Flags of servers that write a tier's memory to files every few steps of this job.
std::vector<std::string> SmallMemtables();

// Factorization machine of 20 steps an epoch, 64 examples each; 6000 features with rows of 528
// bytes. No DRAM limit: for reference.
TrainingJob TieredJob(const std::string& folder, uint32_t epochs);
// The same with five tables (UseFiveTables) in one shard of each server. They share DRAM equally,
// so that of `first`, which has the features of two fields, most rows lie below it.
TrainingJob TieredTablesJob(const std::string& folder, uint32_t epochs);
// The same with room for a tenth of the rows in memory, the rest in `ssd`.
TrainingJob BelowDram(TrainingJob job, const std::string& ssd);

// The same with a tenth of the rows in a GPU tier, on the host.
TrainingJob WithHbm(TrainingJob job);

// Files of SSD tiers below a folder.
std::vector<std::string> TierFiles(const std::string& folder);
// Waits until they hold rows. Of TieredJob that is so from step 12 on: servers have touched some
// 1500 rows each then, of which memory and memtables hold less than 1200.
void AwaitRowsBelow(const std::string& folder);

// The failpoint of a server that stops before that step of a job, the first one that it has. A step
// is a commit of each shard.
std::string StopAtStep(uint64_t step, uint64_t shards = 4);

// The job ended well, with the undisturbed run's model.
void CheckSameModel(const JobStatus& end, const JobStatus& reference);

}  // namespace strata::testing

#endif  // STRATA_TESTS_FAULTS_TIERED_JOB_H_
