// How much memory `strata predict` takes with a job's model: rows up to the limit, a batch of lines
// and what the quality keeps. It does not grow with the lines.
// Tested by tests/tools/cli/data/estimate_test.cc, tests/tools/cli/data/estimate_memory_test.cc
#ifndef STRATA_TOOLS_CLI_DATA_PREDICT_ESTIMATE_H_
#define STRATA_TOOLS_CLI_DATA_PREDICT_ESTIMATE_H_

#include <vector>

#include "proto/core/memory_part.h"
#include "proto/strata/job.pb.h"
#include "server/memory_estimate.h"
#include "worker/memory_estimate.h"

namespace strata {

// `server` and `worker`: of the job as it trains. The input has as many lines as the training data,
// and lines like those.
std::vector<MemoryPart> EstimatePredict(const JobSpec& spec, const server::ServerLoad& server,
                                        const WorkerLoad& worker);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DATA_PREDICT_ESTIMATE_H_
