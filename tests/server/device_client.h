// A client that sends a job's values by a device's memory, through the transport inside a process.
#ifndef STRATA_TESTS_SERVER_DEVICE_CLIENT_H_
#define STRATA_TESTS_SERVER_DEVICE_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/core/lane_tree.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/buffer.h"
#include "proto/wire/device_values.h"
#include "proto/wire/message_codec.h"
#include "tests/server/job/bench.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {

// What memory holds before a server writes it.
inline constexpr float kUnwritten = 12345.0f;

// What a node of the lane tree has of one table in one shard.
struct Part {
  TableId table;
  ShardId shard;
  std::vector<Key> keys;
  std::vector<float> values;
};

// What stands for a device's memory, by group, a float larger than the group; it goes when the last
// message does that points into it.
using Memory = std::vector<std::vector<float>>;

// Of a bench whose tables are TestTables().
class DeviceClient {
 public:
  explicit DeviceClient(JobBench& bench);

  std::shared_ptr<JobBench::Answer> Call(DataMethod method, Buffer request);
  // REQUIRES: it is answered at once.
  absl::Status StatusOf(DataMethod method, Buffer request);

  // Of the reply to OpenSession; null: none.
  std::shared_ptr<const DeviceValues> Open();

  std::vector<Part> Parts(uint64_t seed, uint64_t step, LaneNode node) const;
  // Places in `memory` for what table 0 has of the parts, made where there are none.
  DeviceValues There(const std::vector<Part>& parts, const std::shared_ptr<Memory>& memory) const;
  static Buffer With(const Buffer& message, DeviceValues values);

  // Without groups if there is a ticket.
  Buffer PullRequest(const std::vector<Part>& parts, uint64_t step, uint32_t wait_ms,
                     const wire::PullExtras& extras = {}) const;
  // The reply's groups and the memory hold what the account says, to the bit, and nothing beyond.
  void CheckServed(const JobBench::Answer& answer, const std::vector<Part>& parts,
                   const Memory& memory, const Reference& reference) const;

  // A push of nodes: of table 0 without values when by_device.
  struct Pushed {
    Buffer message;  // without `there`
    DeviceValues there;
    std::shared_ptr<Memory> memory;
    Buffer whole() const { return memory == nullptr ? message : With(message, there); }
  };
  Pushed Push(uint64_t seed, uint64_t step, const std::vector<LaneNode>& nodes, bool by_device,
              const wire::Ticket& ticket = {}, wire::PushFields fields = {}) const;

 private:
  JobBench& bench_;
  const std::unique_ptr<DataTransport> transport_;
  const std::unique_ptr<DataListener> listener_;
  const std::shared_ptr<DataChannel> channel_;
  std::vector<ShardId> shards_;
  std::string device_ = "host";
};

}  // namespace strata::server

#endif  // STRATA_TESTS_SERVER_DEVICE_CLIENT_H_
