// The data plane of a server: reads messages, finds the job they speak of, hands them on.
#ifndef STRATA_SERVER_DATA_SERVICE_H_
#define STRATA_SERVER_DATA_SERVICE_H_

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "proto/core/ids.h"
#include "proto/core/lane_tree.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/credentials/rpc_policy.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "server/job/server_job.h"
#include "server/session_gate.h"

namespace strata::server {

// The shards of one of a job's servers, by its index: a process may have copies of several.
struct JobSlot {
  JobId job;
  uint32_t server = 0;
  friend auto operator<=>(const JobSlot&, const JobSlot&) = default;
};

// Thread-safe. No bytes crash it; what is wrong with them is the reply.
class DataService : public DataHandler {
 public:
  // `clock` decides which session credentials have expired, and outlives the service.
  explicit DataService(Clock* clock = Clock::Real()) : gate_(clock) {}

  // Who may call what is rpc_policy.h's; what a call's session may do, session_gate.h's.
  void Handle(const Caller& caller, DataMethod method, Buffer request, DataReply reply) override;

  void Add(std::shared_ptr<ServerJob> job);
  // The job is gone from here; whoever is using it still finishes with it.
  std::shared_ptr<ServerJob> Remove(JobId job, uint32_t server = 0);
  std::shared_ptr<ServerJob> Find(JobId job, uint32_t server) const;
  // Of any of the job's servers whose shards are here: one that answers for them, if one does.
  std::shared_ptr<ServerJob> Find(JobId job) const;

  // The scheduler was heard: session credentials expire by that (session_gate.h).
  void HearScheduler() { gate_.Hear(); }
  // By which session credentials are checked, as the directive has them.
  void SetSessionKeys(std::vector<std::string> keys) { gate_.SetKeys(std::move(keys)); }

  // For metrics, by method.
  struct Counters {
    std::atomic<uint64_t> requests{0};
    std::atomic<uint64_t> errors{0};
    std::atomic<uint64_t> request_bytes{0};
    std::atomic<uint64_t> reply_bytes{0};
    std::atomic<uint64_t> in_flight{0};  // not answered yet
  };
  const std::array<Counters, kDataMethods>& counters() const { return counters_; }

 private:
  // What a call says of itself.
  struct Said {
    Rpc rpc;
    const wire::Header& header;
    std::span<const LaneNode> lanes = {};
    bool as_host = false;
    std::span<const ShardId> shards = {};  // that it names
  };
  using JobPtr = std::shared_ptr<ServerJob>;
  // What a call means that names a server, or else shards; the job's shards may be those of several
  // of its servers here. Null: nothing that is here.
  absl::StatusOr<JobPtr> Meant(const wire::Header& header, std::span<const ShardId> shards) const;
  // The job that a call means, if the caller may make it.
  absl::StatusOr<JobPtr> JobOf(const Caller& caller, const Said& said);
  // The same of a call that names no shards: all heads that are here, unless it names a server.
  absl::StatusOr<std::vector<JobPtr>> JobsOf(const Caller& caller, const Said& said);
  void Pull(const Caller& caller, Buffer request, DataReply reply);
  void Push(const Caller& caller, Buffer request, DataReply reply);
  void Prefetch(const Caller& caller, Buffer request, DataReply reply);
  void Mark(const Caller& caller, Buffer request, DataReply reply);
  void OpenSession(const Caller& caller, Buffer request, DataReply reply);
  void Forward(const Caller& caller, Buffer request, DataReply reply);

  SessionGate gate_;

  std::array<Counters, kDataMethods> counters_;
  mutable absl::Mutex mu_;
  std::map<JobSlot, std::shared_ptr<ServerJob>> jobs_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata::server

#endif  // STRATA_SERVER_DATA_SERVICE_H_
