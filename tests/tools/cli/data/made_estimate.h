// Estimates of a small job, and parts of them.
#ifndef STRATA_TESTS_TOOLS_CLI_DATA_MADE_ESTIMATE_H_
#define STRATA_TESTS_TOOLS_CLI_DATA_MADE_ESTIMATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/core/memory_part.h"
#include "proto/strata/job.pb.h"
#include "tools/cli/data/estimate.h"

namespace strata {

// A factorization machine over criteo in four shards; defaults resolved.
JobSpec Spec();
DataMeasure Data();

JobEstimate Estimate(const JobSpec& spec, uint64_t rows = 0);

// What an estimate says of the processes of that role.
ProcessEstimate Of(const JobEstimate& estimate, const std::string& role);
bool HasPart(const ProcessEstimate& process, const std::string& name);
uint64_t PartBytes(const std::vector<MemoryPart>& parts, const std::string& name);

}  // namespace strata

#endif  // STRATA_TESTS_TOOLS_CLI_DATA_MADE_ESTIMATE_H_
