// Between a worker's arrays and the wire: pure functions of a job's tables and shard map.
#ifndef STRATA_WORKER_CLIENT_EXCHANGE_H_
#define STRATA_WORKER_CLIENT_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/parallel.h"
#include "proto/core/shard_map.h"
#include "proto/job/tables/model_tables.h"
#include "proto/wire/buffer.h"
#include "proto/wire/device_values.h"
#include "proto/wire/message.h"
#include "proto/wire/message_codec.h"
#include "proto/wire/message_limits.h"
#include "worker/device/row_memory.h"
#include "worker/step/gradient.h"
#include "worker/step/key_runs.h"

namespace strata {

// Distinct keys of hashed tables; the arrays belong to the caller.
struct KeyList {
  std::span<const uint64_t> keys;  // ascending by table, then by position
  std::span<const uint64_t> positions;
  std::span<const KeyRun> runs;  // of keys, by table
};

// Weights that were pulled: of the asked keys, and of the whole dense table.
struct ParameterBlock {
  std::vector<float> rows;   // (keys, row dim of the table)
  std::vector<float> dense;  // (dense rows, dense row dim), in position order
  // Instead of rows, where servers write them on the model's device: (keys, row dim) in its memory.
  std::shared_ptr<float> rows_there;
};

// Immutable after construction; any thread.
class Exchange {
 public:
  // What passes the limits goes in parts (tests give less than a message may have).
  struct Limits {
    size_t push_bytes = kMaxMessageBytes;  // of a request
    size_t pull_bytes = kMaxMessageBytes;  // of a request, its keys at the server and its reply
  };
  Exchange(const ModelTables& tables, const ShardMap& shards, const Limits& limits);
  Exchange(const ModelTables& tables, const ShardMap& shards)
      : Exchange(tables, shards, Limits()) {}

  size_t dense_rows() const { return dense_keys_.size(); }
  // Floats of a key in a pull, by table.
  std::span<const uint32_t> row_dims() const { return row_dims_; }
  // The same in a push: those, and the counts where rows have a score.
  std::span<const uint32_t> push_dims() const { return push_dims_; }
  // Whether some push has counts.
  bool counts() const { return row_dims_ != push_dims_; }
  // Whether pulled rows and pushed ones are floats of one width, which may lie on a device.
  bool MayStayThere(const wire::PullCodecs& pulls) const;
  // Pointers to the tensors inside a dense array of (dense_rows, dense row dim), by tensor number.
  std::vector<const float*> TensorsIn(const float* dense) const;
  std::vector<float*> TensorsIn(float* dense) const;

  // Sizes `out` for `keys`. Contents are unspecified until every server's reply was decoded.
  void Prepare(const KeyList& keys, ParameterBlock* out) const;
  // The same with rows in `memory`. Errors: its.
  absl::Status PrepareThere(const KeyList& keys, device::RowMemory* memory,
                            ParameterBlock* out) const;

  // How a pull's rows come.
  enum class Rows : uint8_t {
    kInReply,
    kThere,  // the request goes with PlacesOfPull
  };
  // Some shards of one server, ascending: those of which one request speaks.
  using Shards = std::span<const ShardId>;
  // All of a server's; they live as long as the exchange.
  Shards ShardsOf(uint32_t server) const { return own_[server]; }
  // The pulls that ask a server for its share of `keys` and, with `dense`, of the dense table: one
  // that speaks of all of its shards or, where that would pass the limit, several, each of as many
  // of the next shards as it can take. A shard answers from the same rows, whichever request speaks
  // of it. RESOURCE_EXHAUSTED, with the remedy: what one shard has of the keys is more than a
  // message can carry.
  absl::StatusOr<std::vector<Shards>> SplitPull(uint32_t server, const KeyList& keys, bool dense,
                                                const wire::PullCodecs& codecs, Rows rows) const;

  // The request to the server of `shards`: their share of `keys` and, with `dense`, of the dense
  // table. Each of them is spoken of, with keys or without.
  // With extras.ticket, made for these very keys, none is sent.
  absl::StatusOr<Buffer> EncodePull(Shards shards, const wire::Header& header, Step step,
                                    uint32_t wait_ms, const KeyList& keys, bool dense,
                                    const wire::PullExtras& extras = {}) const;
  // What goes with that request, or one by its ticket, so that the server writes the rows into
  // `rows`, (keys, row dim) on `device`. Null: none of the keys are its.
  std::shared_ptr<const DeviceValues> PlacesOfPull(Shards shards, const KeyList& keys, bool dense,
                                                   const std::string& device,
                                                   const std::shared_ptr<float>& rows) const;
  // A part of some shards' share of keys.
  struct Part {
    size_t keys = 0;
    size_t first_float = 0;  // of their rows in a pull
    size_t floats = 0;
  };
  // The shards' share of `keys`, ascending.
  std::vector<Part> ShareOf(Shards shards, const KeyList& keys) const;
  // Announces a pull's keys.
  absl::StatusOr<Buffer> EncodePrefetch(uint32_t server, const wire::Header& header, Step step,
                                        const KeyList& keys, bool dense) const;

  struct PullAnswer {
    wire::ServerState state;
    wire::PullOutcome outcome = wire::PullOutcome::kUnspecified;
    wire::Ticket ticket;  // for these keys
  };
  // Checks a reply to EncodePull's request and, where it was served, writes the values to their
  // places, many of them by the threads of `parallel`, unless that is null. DATA_LOSS or INTERNAL
  // when the reply does not answer the request. `shards` as in the request; `rows`: RowsOf it.
  static Rows RowsOf(const Buffer& request) {
    return request.device_values() == nullptr ? Rows::kInReply : Rows::kThere;
  }
  absl::StatusOr<PullAnswer> DecodePull(Shards shards, std::span<const uint8_t> reply,
                                        const KeyList& keys, bool dense, ParameterBlock* out,
                                        const wire::PullCodecs& codecs = {},
                                        Rows rows = Rows::kInReply,
                                        ops::Parallel* parallel = nullptr) const;
  // The ticket of a prefetch's reply, if it has one for these keys.
  absl::StatusOr<wire::Ticket> DecodePrefetch(uint32_t server, std::span<const uint8_t> reply,
                                              const KeyList& keys, bool dense) const;

  using Contribution = std::pair<LaneNode, std::shared_ptr<const Gradient>>;
  // The requests that carry one server's share of the contributions: one, or several split by
  // shards where one would pass the message limit. RESOURCE_EXHAUSTED, with the remedy, when one
  // shard's share alone does. With a ticket, which must be of the keys of the only contribution,
  // keys are not sent, unless there are several: a ticket is of all shards.
  // Rows that lie on a device, which is `device` then, stay there (Buffer::device_values). Many
  // values are written by the threads of `parallel`, unless that is null.
  absl::StatusOr<std::vector<Buffer>> EncodePush(uint32_t server, const wire::PushFields& fields,
                                                 std::span<const Contribution> contributions,
                                                 const wire::Ticket& ticket = {},
                                                 const std::string& device = "",
                                                 ops::Parallel* parallel = nullptr) const;

 private:
  // Keys begin .. end - 1 of a key list, or of the dense table's, that lie in one shard of one
  // server, and where their rows begin.
  struct Run {
    uint32_t table;
    ShardId shard;
    size_t begin;
    size_t end;
    size_t first_float;
  };
  // What a pull of these shards takes at most: a bound for which no key is looked at.
  size_t MostPullBytes(Shards own, const KeyList& keys, size_t fixed) const;
  // Of the dense rows of a shard, in a message.
  size_t DenseBytes(ShardId shard) const;
  // dims: of the rows, by table. Hashed tables first, in order.
  std::vector<Run> RunsOf(Shards shards, const KeyList& keys, std::span<const uint32_t> dims,
                          bool dense) const;
  // INTERNAL: there are keys that `runs` has not, of which nobody would be asked.
  static absl::Status CheckRuns(const KeyList& keys);
  absl::StatusOr<Buffer> EncodePushPart(Shards shards, const wire::PushFields& fields,
                                        std::span<const Contribution> contributions,
                                        const wire::Ticket& ticket, const std::string& device,
                                        ops::Parallel* parallel) const;
  std::vector<wire::KeyGroup> KeyGroups(std::span<const Run> runs, const KeyList& keys) const;
  // `ticket` if it is for these keys, else none: a server's mistake costs only the ticket.
  wire::Ticket Verified(std::span<const Run> runs, const KeyList& keys,
                        const wire::Ticket& ticket) const;

  const ModelTables tables_;
  const ShardMap shards_;
  const Limits limits_;
  std::vector<uint32_t> row_dims_, push_dims_;  // by table
  std::vector<uint64_t> dense_keys_;            // (dense rows): key = position
  std::vector<size_t> tensor_row_;              // by tensor number: first row in the dense array
  std::vector<std::vector<ShardId>> own_;       // by server: its shards
  std::vector<Run> dense_runs_;                 // of all servers
};

}  // namespace strata

#endif  // STRATA_WORKER_CLIENT_EXCHANGE_H_
