// A scheduler in this process, a strata-server process, and this process as the only worker: the
// real path up to a server's rows, without training.
#ifndef STRATA_TOOLS_BENCH_CLUSTER_WIRE_CLUSTER_H_
#define STRATA_TOOLS_BENCH_CLUSTER_WIRE_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/core/shard_map.h"
#include "proto/core/uid.h"
#include "proto/job/tables/model_tables.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/message.h"

namespace strata::bench {

// A child process; killed by its id at the end.
class ChildProcess {
 public:
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      const std::vector<std::string>& command);
  ~ChildProcess();
  // User and system seconds so far.
  double CpuSeconds() const;
  // Resident memory now; 0 when it has ended.
  uint64_t ResidentBytes() const;
  // By SIGKILL; waits for its end.
  void Kill();

 private:
  explicit ChildProcess(int pid) : pid_(pid) {}
  int pid_;  // 0: ended
};

// A binary of this build, by its path from the root of the build's output.
std::string BinaryBeside(const std::string& path);

// User and system seconds of this process, and its resident memory.
double OwnCpuSeconds();
uint64_t OwnResidentBytes();

// Waits for a daemon to write its address there. DEADLINE_EXCEEDED after ten seconds.
absl::StatusOr<std::string> ReadAddressFile(const std::string& path);

class WireCluster {
 public:
  // A job with hashed tables of `dim` floats a row, SGD, async.
  struct Options {
    std::string durability;
    uint32_t dim = 0;
    std::string log_bytes;  // logBytesPerServer
    uint32_t shards = 0;    // of the server; 0: as many as it takes by itself
    uint32_t tables = 1;
  };
  static absl::StatusOr<std::unique_ptr<WireCluster>> Start(const std::string& directory,
                                                            const Options& options);
  virtual ~WireCluster() = default;

  virtual DataChannel& channel() = 0;
  virtual const ModelTables& tables() const = 0;
  virtual const ShardMap& shards() const = 0;
  virtual wire::Header header() const = 0;
  virtual JobIdentity identity() const = 0;
  virtual double ServerCpuSeconds() const = 0;
  // The server's folder, and its end by SIGKILL.
  virtual std::string server_folder() const = 0;
  virtual void KillServer() = 0;
  // Starts the server again, and returns when channel() and header() are those of the new process,
  // which serves the job.
  virtual absl::Status StartServer() = 0;
};

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_CLUSTER_WIRE_CLUSTER_H_
