// A job of one server over its data plane, on one thread and a clock that stands still.
#ifndef STRATA_TESTS_SERVER_JOB_BENCH_H_
#define STRATA_TESTS_SERVER_JOB_BENCH_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/core/uid.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/message_codec.h"
#include "server/data_service.h"
#include "server/job/server_job.h"
#include "tests/server/shard/shard_fixture.h"

namespace strata::server {

class JobBench {
 public:
  explicit JobBench(uint32_t lanes, bool synchronous = true, uint64_t incarnation = 1);
  ~JobBench() { Stop(); }

  Position First(PartitionRange r) const { return plan_.partitioning.First(r.first); }
  Position Last(PartitionRange r) const { return plan_.partitioning.Last(r.last); }
  JobPlan& plan() { return plan_; }
  // Before Start: files go there instead of into folder_.
  void UseFolder(std::string path) { path_ = std::move(path); }
  // Before Start: the least DRAM for the hashed table, whose other rows go to the tier.
  void LimitDram();
  // Before Start: the least GPU tier for the hashed table, on the host.
  void AddHbm();

  void Start();
  // As kill -9: nothing in memory survives. The scheduler knows that it was open.
  void Restart() {
    Stop();
    ++incarnation_;
    plan_.was_open |= plan_.logged;
    Start();
  }
  void Stop();

  const JobIdentity& identity() const { return plan_.identity; }
  wire::Header header() const { return {JobId(1), SessionId(9), Generation(1), MapEpoch(5)}; }

  using Answer = std::optional<absl::StatusOr<Buffer>>;
  std::shared_ptr<Answer> Call(DataMethod method, Buffer request,
                               const Caller& caller = Caller::Nobody());
  absl::Status OpenSession() {
    return Call(DataMethod::kOpenSession,
                wire::EncodeOpenSessionRequest(wire::OpenSessionFor(header(), identity())))
        ->value()
        .status();
  }

  // Numbers that no message of this session had.
  Sequence NextSequence() { return Sequence(++sequence_); }
  // A push with the next number, unless `fields` has one.
  Buffer PushMessage(uint64_t seed, uint64_t step, const std::vector<LaneNode>& nodes,
                     wire::PushFields fields, const Sums* only = nullptr);
  absl::StatusOr<wire::PushReply> PushStep(uint64_t seed, uint64_t step,
                                           const std::vector<LaneNode>& nodes);

  std::vector<Key> KeysOf(const ShardPlan& shard) const;
  std::shared_ptr<Answer> Pull(uint64_t step, uint32_t wait_ms);
  // The answer holds what the account says, to the bit.
  void CheckServed(const Answer& answer, const Reference& reference);
  wire::PullReplyView Outcome(const Answer& answer);
  // Of all shards, by a cut at `step`.
  storage::HashSum Hash(uint64_t step);
  // The same, into files in `folder`.
  storage::HashSum Checkpoint(uint64_t step, const std::string& folder);

  TempFolder folder_;
  ManualExecutor pool_;
  ManualTimer timer_;
  RequestMemory memory_;
  KeyCounters keys_;
  DataService service_;
  bool recovered_ = false;
  DataTransport* transport_ = nullptr;  // to copies of its shards

 private:
  JobPlan plan_;
  std::string path_;
  uint64_t incarnation_;
  uint64_t cuts_ = 0;
  uint64_t sequence_ = 0;
  std::atomic<bool> closing_{false};
};

}  // namespace strata::server

#endif  // STRATA_TESTS_SERVER_JOB_BENCH_H_
