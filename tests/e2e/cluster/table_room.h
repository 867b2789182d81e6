// Whether rows of a job's table mostly lie below DRAM.
#ifndef STRATA_TESTS_E2E_CLUSTER_TABLE_ROOM_H_
#define STRATA_TESTS_E2E_CLUSTER_TABLE_ROOM_H_

#include <cstdint>
#include <string>

#include "proto/strata/job.pb.h"

namespace strata::testing {

// A hashed table's rows, and what DRAM has room for at most: of them all servers of a job together.
struct TableRoom {
  uint64_t rows = 0;
  uint64_t most_in_dram = 0;

  // More of the rows have no room than have.
  bool MostlyBelow() const { return rows > 2 * most_in_dram; }
};

// Of the rows in a checkpoint (a folder, or a folder of them: the newest), by the limit, the
// servers and the shards that `spec` states.
TableRoom RoomOf(const std::string& checkpoint, const std::string& table, const JobSpec& spec);

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_CLUSTER_TABLE_ROOM_H_
