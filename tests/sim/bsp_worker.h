// A worker of a simulated synchronous job: the lane driver and what else decides in the process.
#ifndef STRATA_TESTS_SIM_BSP_WORKER_H_
#define STRATA_TESTS_SIM_BSP_WORKER_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "proto/core/ids.h"
#include "proto/core/lane_tree.h"
#include "tests/sim/bsp_message.h"
#include "worker/bsp/lane_driver.h"
#include "worker/client/push_sequences.h"
#include "worker/client/ticket_ledger.h"

namespace strata::sim {

struct BspWorkerOptions {
  size_t number = 0;
  uint32_t servers = 1;
  uint32_t lanes = 1;  // of the job
  Step last_step;
};

// One thread. Stays where it is made.
class BspWorker {
 public:
  // `random` outlives the worker: how pushes are grouped, and what is announced.
  BspWorker(const BspWorkerOptions& options, std::mt19937_64* random)
      : o_(options), random_(random), driver_(o_.servers, o_.last_step) {}

  void Host(uint32_t lane, Step step) { driver_.Host(lane, step); }
  std::vector<uint32_t> lanes() const { return driver_.lanes(); }
  bool done() const { return driver_.done(); }
  // Does all there is to do, and sends requests.
  void Act(std::vector<BspMessage>& network);
  void Answer(const BspMessage& reply);

 private:
  std::vector<LaneNode> Grouping(const std::vector<uint32_t>& lanes);
  BspMessage MakePush(const LaneDriver::Action& action);
  void Prefetch(const LaneDriver::Action& action, std::vector<BspMessage>& network);

  const BspWorkerOptions o_;
  std::mt19937_64* random_;
  LaneDriver driver_;
  TicketLedger tickets_;
  SequenceCounter counter_;
  PushSequences sequences_{&counter_};
};

}  // namespace strata::sim

#endif  // STRATA_TESTS_SIM_BSP_WORKER_H_
