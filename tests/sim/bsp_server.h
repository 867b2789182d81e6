// A server of a simulated synchronous job: shards, sessions and tickets as they are in the process,
// over a log and images that outlive it.
#ifndef STRATA_TESTS_SIM_BSP_SERVER_H_
#define STRATA_TESTS_SIM_BSP_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/core/ids.h"
#include "server/job/ticket_book.h"
#include "server/protocol/session_table.h"
#include "server/shard/shard.h"
#include "storage/row/hash.h"
#include "tests/sim/bsp_message.h"
#include "tests/sim/bsp_workload.h"
#include "tests/sim/memory_log.h"

namespace strata::sim {

struct BspServerCounts {
  uint64_t served_preimages = 0;
  uint64_t too_old = 0;
  uint64_t named_tickets = 0;  // that stood for keys
  uint64_t stale_tickets = 0;  // that were refused
  uint64_t images = 0;
  uint64_t recovered_images = 0;  // that a start began from
};

// One thread. Whatever promise is found broken is in error().
class BspServer {
 public:
  struct Options {
    uint32_t number = 0;  // 0 .. servers - 1
    uint32_t servers = 2;
    uint32_t shards = 1;  // of each server, of several partitions each
    uint32_t lanes = 1;
    bool life_cycle = false;
    bool hbm = false;             // a GPU tier on the host, the least
    BspWorkload* load = nullptr;  // outlives the server
    std::string folder;           // of its own; of base images
  };
  // Starts it.
  explicit BspServer(const Options& options);

  // Recovers from images and log. REQUIRES: !up().
  void Start();
  void Kill();
  bool up() const { return !shards_.empty(); }

  // The answer to a request; kBroken when it is not up.
  BspMessage Serve(const BspMessage& request);
  // Whether some shard would have the pull wait. REQUIRES: up().
  bool WouldWait(const BspMessage& pull) const;

  // REQUIRES: up() and, but for the first, WantsCommit(shard).
  bool WantsCommit(uint32_t shard) const { return shards_[shard]->WantsCommit(); }
  void Commit(uint32_t shard);
  // What it commits is durable, and the process ends before it is applied.
  void DieInCommit(uint32_t shard);
  // Writes a base image of the shard and drops the log that none needs any more. REQUIRES: up().
  void WriteImage(uint32_t shard);

  // Of the shards; of one that is not up, the largest that a worker was told.
  uint64_t least_clock() const;
  uint64_t greatest_clock() const;
  storage::HashSum Hash();
  const BspServerCounts& counts() const { return counts_; }
  const std::string& error() const { return error_; }

 private:
  // Outlives the process.
  struct Kept {
    std::string image;        // path; empty: none
    uint64_t segment = 0;     // the log from here on belongs to the image
    uint64_t told_clock = 0;  // largest that a worker was told
  };

  void Error(std::string text);
  std::unique_ptr<server::Shard> Recover(uint32_t shard);
  void ServePull(const BspMessage& pull, BspMessage& reply);
  void ServePush(const BspMessage& push, BspMessage& reply);
  void CheckWeights(server::Shard& shard, Step step, bool preimages);
  std::vector<Position> KeysOf(const server::Shard& shard, const BspMessage& m);
  wire::Ticket Give(const BspMessage& m);
  bool Known(const BspMessage& m);

  const Options o_;
  MemoryLog log_;
  std::vector<Kept> kept_;                              // by shard
  std::vector<std::unique_ptr<server::Shard>> shards_;  // none: not up
  uint64_t incarnation_ = 0;
  std::unique_ptr<server::TicketBook> tickets_;
  std::unique_ptr<server::SessionTable> sessions_;
  BspServerCounts counts_;
  std::string error_;
};

}  // namespace strata::sim

#endif  // STRATA_TESTS_SIM_BSP_SERVER_H_
