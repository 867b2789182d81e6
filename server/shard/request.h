// A pull or a push being worked on by the shards that it speaks of, and the reply that the last of
// them sends.
#ifndef STRATA_SERVER_SHARD_REQUEST_H_
#define STRATA_SERVER_SHARD_REQUEST_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "ops/codec.h"
#include "proto/core/ids.h"
#include "proto/core/lane_tree.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/buffer.h"
#include "proto/wire/device_values.h"
#include "proto/wire/message_codec.h"
#include "server/shard/request_keys.h"
#include "server/shard/shard.h"
#include "server/table/kept_rows.h"

namespace strata::server {

// Bytes of requests (and of the replies being filled) that a server holds in memory.
class RequestMemory {
 public:
  explicit RequestMemory(uint64_t limit) : limit_(limit) {}
  // Counts `bytes` until the returned token is gone. RESOURCE_EXHAUSTED while others leave too
  // little of the limit; INVALID_ARGUMENT where all of it is too little, so that nobody tries for
  // ever.
  absl::StatusOr<std::shared_ptr<void>> Take(uint64_t bytes);
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  uint64_t limit() const { return limit_; }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

// Keys of requests since the server began, those of tickets too.
struct KeyCounters {
  std::atomic<uint64_t> pulled{0};
  std::atomic<uint64_t> pushed{0};
  // Those of them whose values went by a device's memory.
  std::atomic<uint64_t> pulled_there{0};
  std::atomic<uint64_t> pushed_there{0};
};

// What every call has: who answers, and how many shards still have to say something. Each shard's
// part ends with exactly one call of a method that says so, from any thread; the last one replies.
class Call {
 public:
  Call(wire::ServerState identity, size_t parts, DataReply reply);
  virtual ~Call() = default;

  // The part broke; the first status given is the reply.
  void Fail(absl::Status status);

 protected:
  // Ends a part at a shard of that clock.
  void End(Step clock);
  // Called once, when all parts have ended well.
  virtual void Finish(const wire::ServerState& state) = 0;
  void Reply(absl::StatusOr<Buffer> reply) { reply_(std::move(reply)); }

 private:
  const wire::ServerState identity_;
  DataReply reply_;
  std::atomic<size_t> parts_;
  absl::Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  std::optional<Step> clock_ ABSL_GUARDED_BY(mu_);  // smallest
};

// The groups of a pull or prefetch that lie in one shard.
using KeysPart = std::vector<size_t>;  // indices into RequestKeys::groups, and of the reply's

// What a pull or prefetch asks for.
struct RequestedKeys {
  std::shared_ptr<RequestKeys> keys;
  std::vector<KeysPart> parts;  // by shard named
  wire::Ticket ticket;          // that keeps the keys; none without

  // What the ticket remembers of a group's rows, on the shard's executor. Null without a ticket, or
  // when it has ended.
  KeptRows* Kept(size_t group) const {
    return ticket && !keys->dropped ? &keys->groups[group].rows : nullptr;
  }
};

class PullCall : public Call {
 public:
  // `there`: where groups without values in `encoder` go; null: there are none.
  PullCall(wire::ServerState identity, Step step, absl::Time deadline,
           wire::PullReplyEncoder encoder, wire::PullCodecs codecs, RequestedKeys keys,
           std::shared_ptr<const DeviceValues> there, std::shared_ptr<void> memory,
           DataReply reply);

  Step step() const { return step_; }  // 0: whatever is committed
  absl::Time deadline() const { return deadline_; }
  const RequestedKeys& keys() const { return keys_; }
  // Of a hashed table.
  ops::RowCodec codec(TableId table) const { return static_cast<ops::RowCodec>(codecs_.Of(table)); }
  // Where group `index` is written; different groups by different threads.
  uint8_t* out(size_t index) { return encoder_.bytes(index).data(); }
  // Instead, where the group goes by a device's memory; else null.
  float* there(size_t index) const { return there_ == nullptr ? nullptr : there_->groups[index]; }
  void Seal(size_t index) { encoder_.Seal(index); }

  void Served(Step clock) { End(clock); }
  void NotYet(Step clock);
  void TooOld(Step clock, Step resume);

 private:
  void Finish(const wire::ServerState& state) override;

  const Step step_;
  const absl::Time deadline_;
  wire::PullReplyEncoder encoder_;
  const wire::PullCodecs codecs_;
  const RequestedKeys keys_;
  const std::shared_ptr<const DeviceValues> there_;
  const std::shared_ptr<void> memory_;
  std::atomic<bool> not_yet_{false};
  std::atomic<uint64_t> resume_{0};  // largest of the shards for which the step is too old
};

// What a push says to one shard.
struct PushPart {
  std::vector<LaneNode> nodes;       // by contribution
  std::vector<ShardUpdate> updates;  // by contribution
};

class PushCall : public Call {
 public:
  PushCall(wire::ServerState identity, const wire::PushFields& fields, size_t parts,
           DataReply reply)
      : Call(identity, parts, std::move(reply)), fields_(fields) {}

  const wire::PushFields& fields() const { return fields_; }
  void Accepted(Step clock, bool repeated) {
    if (repeated) repeated_.store(true, std::memory_order_relaxed);
    End(clock);
  }

 private:
  void Finish(const wire::ServerState& state) override;

  const wire::PushFields fields_;
  std::atomic<bool> repeated_{false};
};

class PrefetchCall : public Call {
 public:
  PrefetchCall(wire::ServerState identity, RequestedKeys keys, DataReply reply)
      : Call(identity, keys.parts.size(), std::move(reply)), keys_(std::move(keys)) {}

  const RequestedKeys& keys() const { return keys_; }
  void Warmed(Step clock) { End(clock); }

 private:
  void Finish(const wire::ServerState& state) override;

  const RequestedKeys keys_;
};

class MarkCall : public Call {
 public:
  MarkCall(wire::ServerState identity, size_t parts, DataReply reply, SessionId session = {})
      : Call(identity, parts, std::move(reply)), session_(session) {}

  SessionId session() const { return session_; }
  void Marked(Step clock) { End(clock); }

 private:
  void Finish(const wire::ServerState& state) override;

  const SessionId session_;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SHARD_REQUEST_H_
