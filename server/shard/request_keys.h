// The keys that a request speaks of, checked and by position. A ticket keeps them.
// Tested by tests/sim/bsp_order_test.cc
// Tested by tests/server/job/ticket_service_test.cc
#ifndef STRATA_SERVER_SHARD_REQUEST_KEYS_H_
#define STRATA_SERVER_SHARD_REQUEST_KEYS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "proto/core/ids.h"
#include "server/table/kept_rows.h"

namespace strata::server {

struct RequestKeys {
  struct Group {
    TableId table;
    ShardId shard;
    std::vector<Position> positions;
    uint32_t keys_crc32c = 0;  // of the keys as they were sent
    KeptRows rows;             // with a ticket; touched on the shard's executor only
  };
  std::vector<Group> groups;  // in the request's order
  // Index into groups; with a ticket, where each occurs once.
  std::map<std::pair<TableId, ShardId>, size_t> index;
  std::shared_ptr<void> memory;  // counted as long as this lives
  // The ticket is gone: nothing may be pinned any more. Set before the shards are told.
  std::atomic<bool> dropped{false};

  uint64_t keys() const {
    uint64_t n = 0;
    for (const Group& g : groups) n += g.positions.size();
    return n;
  }
  // What a ticket for them takes: positions and slots, and the rest of a group.
  uint64_t TicketBytes() const {
    return 256 + groups.size() * (sizeof(Group) + 96) + keys() * (8 + 4);
  }
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SHARD_REQUEST_KEYS_H_
