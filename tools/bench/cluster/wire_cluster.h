// A scheduler and servers as processes, and this process as the only worker: the real path up to a
// server's rows, without training.
#ifndef STRATA_TOOLS_BENCH_CLUSTER_WIRE_CLUSTER_H_
#define STRATA_TOOLS_BENCH_CLUSTER_WIRE_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/core/shard_map.h"
#include "proto/core/uid.h"
#include "proto/job/tables/model_tables.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/message.h"

namespace strata::bench {

class WireCluster {
 public:
  // A job with hashed tables of `dim` floats a row, SGD, async.
  struct Options {
    std::string durability;
    uint32_t dim = 0;
    std::string log_bytes;  // logBytesPerServer
    uint32_t shards = 0;    // of the server; 0: as many as it takes by itself
    uint32_t tables = 1;
    uint32_t copies = 1;  // servers that have the rows; more than one: durability "replicated"
    bool secure = false;  // TLS
  };
  static absl::StatusOr<std::unique_ptr<WireCluster>> Start(const std::string& directory,
                                                            const Options& options);
  virtual ~WireCluster() = default;

  virtual DataChannel& channel() = 0;
  virtual const ModelTables& tables() const = 0;
  virtual const ShardMap& shards() const = 0;
  virtual wire::Header header() const = 0;
  virtual JobIdentity identity() const = 0;
  // Of all servers that have copies.
  virtual double ServerCpuSeconds() const = 0;
  // The first server's folder, and its end by SIGKILL.
  virtual std::string server_folder() const = 0;
  virtual void KillServer() = 0;
  // Starts the server again, and returns when channel() and header() are those of the new process,
  // which serves the job.
  virtual absl::Status StartServer() = 0;
};

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_CLUSTER_WIRE_CLUSTER_H_
