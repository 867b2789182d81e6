// What workers and servers of a simulated synchronous job say to each other.
#ifndef STRATA_TESTS_SIM_BSP_MESSAGE_H_
#define STRATA_TESTS_SIM_BSP_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/core/ids.h"
#include "proto/core/lane_tree.h"
#include "proto/wire/message.h"
#include "worker/bsp/lane_driver.h"

namespace strata::sim {

struct BspMessage {
  enum Kind : uint8_t {
    kPull,  // requests
    kPush,
    kPrefetch,
    kServed,  // replies
    kNotYet,
    kTooOld,
    kAccepted,
    kPrefetched,
    kBroken,
  };
  Kind kind;
  size_t worker;
  uint32_t server;
  uint64_t ticket;                   // of the lane driver: names the call
  Step step;                         // request; kTooOld: where to go on
  std::vector<uint32_t> lanes;       // whose keys are meant
  std::vector<LaneNode> nodes = {};  // kPush
  Sequence sequence = {};            // kPush
  wire::Ticket named = {};           // request: instead of keys
  ServerIdentity identity = {};      // reply
  wire::Ticket given = {};           // reply

  bool request() const { return kind == kPull || kind == kPush || kind == kPrefetch; }
};

}  // namespace strata::sim

#endif  // STRATA_TESTS_SIM_BSP_MESSAGE_H_
