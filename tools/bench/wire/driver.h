// The client of the wire benchmarks: the rows of load.h in a server process, and requests
// ready to send.
#ifndef STRATA_TOOLS_BENCH_WIRE_DRIVER_H_
#define STRATA_TOOLS_BENCH_WIRE_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message_codec.h"
#include "tools/bench/base/figure.h"
#include "tools/bench/cluster/wire_cluster.h"
#include "tools/bench/wire/load.h"

namespace strata::bench {

// One thread.
class WireDriver {
 public:
  struct Options {
    std::string durability;
    std::string log_bytes = "4GiB";  // logBytesPerServer
    size_t rows = kRows;             // a multiple of kKeys
    uint32_t shards = 0;             // of the server; 0: as many as it takes by itself
    uint32_t tables = 1;             // over which rows and keys are spread; divides kKeys
    uint32_t copies = 1;             // as WireCluster::Options
    bool secure = false;
  };
  // The job's server, filled.
  static absl::StatusOr<std::unique_ptr<WireDriver>> Open(const BenchOptions& o,
                                                          const Options& options);

  // Calls per second over about so many seconds.
  absl::StatusOr<double> Pulls(double seconds);
  absl::StatusOr<double> Pushes(double seconds);
  // One pull, answered.
  absl::Status PullOnce();

  // Pairs a second of a pull and the push of its keys, and bytes of a key's four messages.
  struct Pairs {
    double per_second = 0;
    double key_bytes = 0;
  };
  absl::StatusOr<Pairs> PullsAndPushes(double seconds, bool tickets, wire::ValueCodec codec);

  WireCluster& cluster() { return *cluster_; }
  double ServerCpuSeconds() const { return cluster_->ServerCpuSeconds(); }
  size_t shard_count() const { return Shards().size(); }

 private:
  // A request's keys, by hashed table.
  struct OfTable {
    TableId table;
    Keys::Request keys;
  };
  using Request = std::vector<OfTable>;

  absl::Status Fill(const std::vector<Keys>& keys);
  template <typename Group, typename MakeGroup>
  std::vector<Group> Groups(const Request& r, MakeGroup make) const;
  Request Take(const std::vector<Keys>& keys,
               const std::function<Keys::Request(const Keys&)>& take) const;
  std::vector<ShardId> Shards() const { return cluster_->shards().ShardsOf(0); }
  std::vector<wire::KeyGroup> KeyGroups(const Request& r) const;
  absl::StatusOr<Buffer> EncodePull(const Request& r) const;
  absl::StatusOr<Buffer> EncodePush(const Request& r, const wire::Ticket& ticket = {});

  std::unique_ptr<WireCluster> cluster_;
  std::vector<TableId> tables_;  // hashed
  std::vector<Request> sets_;
  std::vector<float> gradient_;
  uint64_t window_ = 0;
};

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_WIRE_DRIVER_H_
