// What a server tells in metrics of the copies of shards that it has.
#ifndef STRATA_SERVER_COPY_METRICS_H_
#define STRATA_SERVER_COPY_METRICS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "proto/core/ids.h"
#include "proto/strata/control.pb.h"
#include "server/server_metric.h"

namespace strata::server {

// One copy: of which of the job's servers, what it is in their chain, and what it reports.
struct CopyView {
  JobId job;
  uint32_t server = 0;
  std::string role;  // as ChainLink's
  CopyReport report;
};

// One metric after the other, each of all copies, with the labels `job` and `server` (index of the
// job's server). Steps are the lowest of the copy's shards; none while it waits for images.
void AddCopyMetrics(std::span<const CopyView> copies, std::vector<ServerMetric>& out);

}  // namespace strata::server

#endif  // STRATA_SERVER_COPY_METRICS_H_
