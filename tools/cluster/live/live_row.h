// One row of a running job, as its server has it now.
// Tested by tests/e2e/inspect_process_test.cc
#ifndef STRATA_TOOLS_CLUSTER_LIVE_LIVE_ROW_H_
#define STRATA_TOOLS_CLUSTER_LIVE_LIVE_ROW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/core/table_spec.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"

namespace strata {

struct LiveRow {
  std::vector<float> weights;  // (table.dim()); of an absent row its initial value
  std::string server;
  uint32_t shard = 0;
  uint64_t clock = 0;  // bsp: the last committed step; async: windows applied
};

// Reads by Pull as `caller`, in a session of its own, which is bound to the job: no row changes.
// `shards` is what the scheduler says of the job. NOT_FOUND: the server has another job of that
// number (the text names both), or none. FAILED_PRECONDITION: the server does not hold its shards
// open now, or another generation or map epoch is there (ask the scheduler again); UNAVAILABLE,
// DEADLINE_EXCEEDED: it does not answer; DATA_LOSS.
absl::StatusOr<LiveRow> ReadLiveRow(const JobShards& shards, const TableSpec& table, Key key,
                                    DataTransport& transport, const Caller& caller,
                                    absl::Duration timeout);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_LIVE_LIVE_ROW_H_
