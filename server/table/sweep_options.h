// Which removals of a commit are due, and who is told of them.
// Tested by tests/server/shard/shard_life_cycle_test.cc
#ifndef STRATA_SERVER_TABLE_SWEEP_OPTIONS_H_
#define STRATA_SERVER_TABLE_SWEEP_OPTIONS_H_

#include <cstdint>

#include "storage/delta/removed_stream.h"

namespace strata::server {

struct SweepOptions {
  uint64_t step = 0;            // the commit's number
  bool keep_preimages = false;  // add to the pre-images what the rows weighed
  // Is told of the rows that go, under the numbers removed_to - 1 and removed_to; or null.
  storage::RemovedWriter* removed = nullptr;
  uint64_t removed_to = 0;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_TABLE_SWEEP_OPTIONS_H_
