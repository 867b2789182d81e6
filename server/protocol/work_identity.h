// Which piece of work a push or a mark is (DESIGN.md section 5): what its session's number stands
// for.
// Tested by tests/sim/bsp_sim_test.cc
#ifndef STRATA_SERVER_PROTOCOL_WORK_IDENTITY_H_
#define STRATA_SERVER_PROTOCOL_WORK_IDENTITY_H_

#include <cstdint>

#include "proto/wire/message.h"

namespace strata::server {

// A hash of the work's identity: two that are equal are one work, but for a chance of 2^-64. It
// does not depend on shards (a push may be split by them), groups or tickets (a repetition goes
// with keys). Any thread.
//
// Synchronous: the step and the nodes, in the order of the contributions.
uint64_t WorkOfContributions(const wire::PushRequestView& request);
// Asynchronous: task and window.
uint64_t WorkOfWindow(const wire::PushRequestView& request);
// Lane and cut.
uint64_t WorkOfMark(const wire::MarkRequest& request);

}  // namespace strata::server

#endif  // STRATA_SERVER_PROTOCOL_WORK_IDENTITY_H_
