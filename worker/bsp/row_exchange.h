// What a synchronous trainer sends and is answered: messages with their rows or, where a server and
// the worker's model share a device in one process, with rows that stay there (DESIGN.md section 6,
// "On a GPU").
#ifndef STRATA_WORKER_BSP_ROW_EXCHANGE_H_
#define STRATA_WORKER_BSP_ROW_EXCHANGE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/parallel.h"
#include "proto/core/ids.h"
#include "proto/core/lane_tree.h"
#include "proto/wire/buffer.h"
#include "worker/bsp/cohort.h"
#include "worker/bsp/lane_sums.h"
#include "worker/client/exchange.h"
#include "worker/client/session_machine.h"
#include "worker/device/row_memory.h"
#include "worker/metrics/training_stats.h"
#include "worker/train/plan.h"

namespace strata {

// One thread at a time. Errors are Exchange's, the device's, and its memory's.
class RowExchange {
 public:
  // All outlive it. `memory`: of the model's device; null: rows go through the host. `session` says
  // which servers take them there. `parallel`: the team of the thread that calls this.
  RowExchange(const TrainingPlan* plan, const Exchange* exchange, device::RowMemory* memory,
              const SessionMachine* session, ops::Parallel* parallel, TrainingStats* stats);

  // Every server is open. The first call decides, for good, where the rows of cohorts and gradients
  // lie: on the device if all servers take them there. One that later does not is sent, and sends,
  // the same values in messages.
  void OnAllOpen();
  // Of those rows; null: the host's.
  device::RowMemory* memory() const { return there_ ? memory_ : nullptr; }

  // The pulls of a server's share of the cohort's keys, as Exchange splits it; without lanes it is
  // one, of no weights.
  absl::StatusOr<std::vector<Exchange::Shards>> SplitPull(uint32_t server,
                                                          const CohortData& data) const;
  // As Exchange's, of the cohort's keys; without lanes it pulls no weights.
  absl::StatusOr<Buffer> EncodePull(uint32_t server, Exchange::Shards shards,
                                    const wire::Header& header, Step step, uint32_t wait_ms,
                                    const CohortData& data, const wire::PullExtras& extras) const;
  // `shards` and `rows`, Exchange::RowsOf it: of what this is the reply to.
  absl::StatusOr<Exchange::PullAnswer> DecodePull(Exchange::Shards shards, Exchange::Rows rows,
                                                  const Buffer& reply, CohortData* data) const;
  // As Exchange's, of the sums of these nodes.
  absl::StatusOr<std::vector<Buffer>> EncodePush(uint32_t server, const wire::PushFields& fields,
                                                 std::span<const LaneNode> nodes, LaneSums* sums,
                                                 const wire::Ticket& ticket) const;

 private:
  // Counts the shards' share of rows that go there.
  void Count(Exchange::Shards shards, const KeyList& keys) const;
  // Whether the server writes the cohort's rows on the device.
  bool WritesThere(uint32_t server, const CohortData& data) const {
    return !data.lanes.empty() && there_ && session_->takes_rows(server);
  }

  const TrainingPlan* const plan_;
  const Exchange* const exchange_;
  device::RowMemory* const memory_;
  const SessionMachine* const session_;
  ops::Parallel* const parallel_;
  TrainingStats* const stats_;
  bool decided_ = false;
  bool there_ = false;
};

}  // namespace strata

#endif  // STRATA_WORKER_BSP_ROW_EXCHANGE_H_
