// What servers are told of a chain, and people. Pure functions.
// Tested by tests/scheduler/job/machine_chains_test.cc
#ifndef STRATA_SCHEDULER_JOB_CHAINS_CHAIN_WORDS_H_
#define STRATA_SCHEDULER_JOB_CHAINS_CHAIN_WORDS_H_

#include <cstdint>

#include "proto/strata/control.pb.h"
#include "scheduler/job/chains/copy_view.h"
#include "scheduler/nodes/membership.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

// To the copy at `place`; as many as there are members: to the one that joins.
ChainDirective TellChain(const Membership& members, const ChainRecord& chain, int place,
                         uint32_t min_replicas);

// Adds the copies with role, zone and what each said last.
void ShowCopies(const Membership& members, const ChainRecord& chain, const ChainView& view,
                ShardServer& out);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_CHAINS_CHAIN_WORDS_H_
