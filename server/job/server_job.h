// A job on this server: its shards on their executors, the log they share, its sessions, cuts and
// base images.
// Tested by tests/server/data_service_test.cc, tests/server/job/cut_test.cc
#ifndef STRATA_SERVER_JOB_SERVER_JOB_H_
#define STRATA_SERVER_JOB_SERVER_JOB_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "proto/core/ids.h"
#include "proto/core/mutex.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/buffer.h"
#include "proto/wire/device_values.h"
#include "proto/wire/message.h"
#include "server/job/chain_image.h"
#include "server/job/chain_link.h"
#include "server/job/entry_parts.h"
#include "server/job/job_folder.h"
#include "server/job/opening.h"
#include "server/job/peer_watch.h"
#include "server/job/plan.h"
#include "server/job/ticket_book.h"
#include "server/protocol/chain_handover.h"
#include "server/protocol/image_schedule.h"
#include "server/protocol/lane_sessions.h"
#include "server/protocol/session_table.h"
#include "server/shard/request.h"
#include "server/shard/runner.h"
#include "server/shard/watched_log.h"
#include "server/snapshot/progress.h"
#include "server/table/device_offer.h"
#include "storage/tier/row_tier.h"
#include "storage/tier/watched_tier.h"

namespace strata::server {

// Thread-safe. Every request is answered exactly once, from whichever thread had the last word.
//
// Base images: when a shard's is due (server/protocol/image_schedule.h), a new log segment begins,
// the shard writes an image of a moment between two commits, and the segments that no shard needs
// any more go.
class ServerJob {
 public:
  struct Options {
    Executor* pool = nullptr;  // all of them outlive the job
    Executor* disk = nullptr;  // for files of images and checkpoints
    Timer* timer = nullptr;
    RequestMemory* memory = nullptr;
    uint64_t incarnation = 0;            // of this process, and of this opening of the job in it
    KeyCounters* keys = nullptr;         // may be null; outlives the job
    DataTransport* transport = nullptr;  // to copies of its shards; null: they have none
    uint64_t process = 0;                // incarnation of the process, as other copies are told
  };
  // A pull waits at most this long, whatever it asks.
  static constexpr uint32_t kMaxWaitMs = 60000;

  ServerJob(JobPlan plan, OpenedJob opened, const Options& options);
  // Answers what waits with UNAVAILABLE, waits for what runs.
  ~ServerJob();

  // The views point into `bytes`. Errors: FAILED_PRECONDITION (generation, map epoch or session is
  // not the one here: the text has both; or values on a device: server/table/device_offer.h),
  // INVALID_ARGUMENT, DATA_LOSS, RESOURCE_EXHAUSTED; nothing was changed then. Of pushes and marks
  // also PERMISSION_DENIED (server/protocol/lane_sessions.h), by each shard for itself; of pulls
  // for and by tickets, and of prefetches, from the directive on.
  void OpenSession(const wire::OpenSessionRequest& request, DataReply reply);
  void Pull(Buffer bytes, const wire::PullRequestView& request, DataReply reply);
  void Prefetch(Buffer bytes, const wire::PrefetchRequestView& request, DataReply reply);
  void Push(Buffer bytes, const wire::PushRequestView& request, DataReply reply);
  void Mark(const wire::MarkRequest& request, DataReply reply);
  // From the copy before this one. Errors: FAILED_PRECONDITION: it knows another configuration, or
  // entries before those are missing; DATA_LOSS; those of the log. Entries before may be here then.
  void Forward(const Caller& caller, Buffer bytes, const wire::ForwardRequestView& request,
               DataReply reply);
  // It answers for its shards: they have no copies, or this is the head of those.
  bool is_head() const { return head_; }
  // Its shards have copies, on other servers or soon.
  bool is_copy() const { return link_ != nullptr; }
  // Of a copy: what it is among them (ChainLink::role).
  std::string copy_role() const { return link_->role(); }
  // Neighbours among the copies that are not reached.
  std::vector<PeerTrouble> peers() const {
    return watch_ == nullptr ? std::vector<PeerTrouble>() : watch_->Troubles();
  }

  // Follows the scheduler: cuts, closed tasks, map epoch. REQUIRES: same job and generation.
  void Follow(const ServerJobDirective& directive);
  // State is OPEN.
  ServerJobReport Report() const;

  const JobPlan& plan() const { return plan_; }
  // For metrics; any thread.
  const std::vector<std::unique_ptr<ShardRunner>>& shards() const { return runners_; }
  // OK, or why no row below DRAM can be trusted: only opening the job anew mends it.
  absl::Status tier_damage() const { return tier_ == nullptr ? absl::OkStatus() : tier_->damage(); }
  // Zeros without a tier.
  storage::TierStats tier_stats() const {
    return tier_ == nullptr ? storage::TierStats() : tier_->stats();
  }
  struct CutBytes {
    uint64_t written = 0, total = 0;
  };
  // Of cuts that not all shards have answered.
  CutBytes cut_bytes() const;
  uint64_t log_bytes() const { return log_ == nullptr ? 0 : log_->stats().bytes; }
  uint64_t images_written() const { return images_written_; }

 private:
  struct PushData;
  struct Cut {
    CutOrder order;
    std::map<ShardId, ShardCut> shards;  // that have answered
    std::map<ShardId, std::shared_ptr<const SnapshotProgress>> files;
  };

  absl::Status CheckHeader(const wire::Header& header, bool session_known) const;
  // PERMISSION_DENIED: the session hosts no lanes. Tickets are for those who do: they keep rows in
  // the topmost tier and memory for keys.
  absl::Status CheckTakesTickets(SessionId session) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckForTicket(SessionId session) const {
    absl::MutexLock lock(&mu_);
    return CheckTakesTickets(session);
  }
  // The session's number stands for this work from now on (server/protocol/session_table.h,
  // server/protocol/work_identity.h). INVALID_ARGUMENT: it is 0, or stands for other work.
  absl::Status UseSequence(const char* what, SessionId session, Sequence number, uint64_t work);
  absl::Status Closed() const;
  wire::ServerState Identity() const;
  // Index into runners_ of every shard named: strictly once each, all of them held here.
  absl::StatusOr<std::vector<size_t>> Named(const std::vector<ShardId>& shards) const;
  absl::StatusOr<std::vector<Position>> CheckGroup(const wire::GroupView& group,
                                                   wire::GroupValues values) const;
  // Index into a request's shards by shard, and of a group's; INVALID_ARGUMENT: not among them.
  static std::map<ShardId, size_t> PartsOf(std::span<const ShardId> shards);
  static absl::StatusOr<size_t> PartOf(const std::map<ShardId, size_t>& parts, ShardId shard);
  // The groups' keys, checked. With `for_ticket`: ready to be kept, and no table and shard twice.
  absl::StatusOr<RequestedKeys> CheckKeys(std::span<const ShardId> shards,
                                          std::span<const wire::GroupView> groups,
                                          bool for_ticket) const;
  // The keys of a pull's ticket. FAILED_PRECONDITION: it is stale.
  absl::StatusOr<RequestedKeys> TicketKeys(const wire::PullRequestView& request) const;
  absl::StatusOr<TicketBook::KeysPtr> FindTicket(SessionId session,
                                                 const wire::Ticket& ticket) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives keys.ticket for keys that were checked for one; none where memory is short.
  void GiveTicket(const wire::Header& header, Step step, RequestedKeys& keys);
  void Drop(const std::vector<TicketBook::KeysPtr>& tickets);
  absl::Status CheckPush(const wire::PushRequestView& request) const;
  absl::StatusOr<std::vector<PushPart>> PushParts(const Buffer& bytes,
                                                  const wire::PushRequestView& request) const;
  // Keys and values of group g of a push, in `data`.
  absl::StatusOr<TableSums> PushGroup(const wire::PushRequestView& request, size_t g,
                                      const std::shared_ptr<RequestKeys>& ticket,
                                      const std::shared_ptr<PushData>& data) const;
  // What a pull's values on a device (or null) must be, with its keys.
  absl::Status CheckThere(const wire::PullRequestView& request, const DeviceValues* there,
                          const RequestKeys& keys) const;
  absl::StatusOr<std::shared_ptr<PullCall>> MakePull(const wire::PullRequestView& request,
                                                     const Buffer& bytes, DataReply& reply);
  // Posts to runners unless the job is being closed.
  using Post = std::function<void(ShardRunner& runner, size_t part)>;
  void Dispatch(Call& call, const std::vector<size_t>& named, const Post& post);

  // What a directive says of cuts, tasks and sessions; of a copy the newest one's, also when it
  // becomes the head later.
  void FollowOrders(const ServerJobDirective& directive);
  void FollowNewest();
  // Of a copy: the scheduler's newest configuration.
  std::shared_ptr<ChainLink> MakeLink(const OpenedJob& opened);
  void FollowChain(const ServerJobDirective& directive) ABSL_LOCKS_EXCLUDED(chain_mu_);
  // All shards do.
  void GoBy(const ChainDirective& chain) ABSL_EXCLUSIVE_LOCKS_REQUIRED(chain_mu_);
  void WatchNeighbours(const ChainDirective& chain);
  struct Forwarded;
  void TakeForwarded(const std::shared_ptr<Forwarded>& call);
  void TakeImage(size_t shard, const std::shared_ptr<Forwarded>& call);
  void LogsDiffer(size_t shard, const absl::Status& why);
  void RefuseImage(size_t shard, const std::shared_ptr<Forwarded>& call);
  absl::Status LoadReceived(size_t shard, Shard& rows);
  absl::Status CheckHead() const;
  void ReportCopy(ServerJobReport& report) const;
  void WriteImage(size_t shard);
  void BeginImage();
  // Tells shards which sessions host lanes, if that is news.
  void FollowSessions(const ServerJobDirective& directive);
  uint64_t LaneEpoch() const;
  void OnCommitted();
  void EndTickets();
  void OnImage(size_t shard, absl::Status status);
  void ReportStalls(ServerJobReport& report) const;
  void ReportSlowDisk(ServerJobReport& report) const;
  void ReportRefused(ServerJobReport& report) const;
  void OnCutBegun(ShardId shard, CutNumber cut, std::shared_ptr<const SnapshotProgress> file);
  void OnCut(ShardId shard, CutNumber cut, const ShardCut& result);
  static CutReport ReportCut(const JobPlan& plan, const Cut& cut, size_t shards);

  const JobPlan plan_;
  const Options options_;
  const std::string folder_;
  const std::string root_;
  const std::shared_ptr<JobFolderLock> lock_;
  const std::unique_ptr<storage::WatchedTier> tier_;
  const std::unique_ptr<WatchedLog> log_;
  SnapshotPace pace_;  // of all shards
  const DeviceOffer device_;
  std::vector<std::unique_ptr<ShardRunner>> runners_;  // fixed after construction
  std::vector<std::unique_ptr<Executor>> executors_;   // destroyed before runners_
  std::atomic<uint64_t> map_epoch_;
  std::atomic<bool> head_{true};
  std::vector<std::unique_ptr<ImageReceiver>> receivers_;  // by shard, on its executor
  std::vector<std::unique_ptr<EntryParts>> parts_;         // by shard, of a copy
  std::atomic<size_t> receiving_{0};                       // shards that have no image yet
  const std::shared_ptr<ChainLink> link_;                  // null: its shards have no copies
  const std::shared_ptr<PeerWatch> watch_;                 // null as well
  std::atomic<uint64_t> images_written_{0};

  mutable absl::Mutex mu_;
  SessionTable sessions_ ABSL_GUARDED_BY(mu_);
  TicketBook tickets_ ABSL_GUARDED_BY(mu_);
  std::atomic<uint64_t> tickets_until_{0};  // tickets of steps up to here have ended
  std::map<CutNumber, Cut> cuts_ ABSL_GUARDED_BY(mu_);
  CutNumber given_up_ ABSL_GUARDED_BY(mu_) = 0;      // all cuts up to it, as the scheduler says
  LaneSessions lane_sessions_ ABSL_GUARDED_BY(mu_);  // told; shards may not have it yet
  ImageSchedule images_ ABSL_GUARDED_BY(mu_);
  std::vector<bool> wanted_images_ ABSL_GUARDED_BY(mu_);  // by shard: for the copy after this one
  absl::Mutex following_ ABSL_ACQUIRED_BEFORE(mu_);
  // Held while a configuration is posted to all shards, and while the copy goes by one.
  Mutex chain_mu_ ABSL_ACQUIRED_BEFORE(following_);
  ChainHandover handover_ ABSL_GUARDED_BY(chain_mu_);
  std::shared_ptr<const ChainDirective> chain_ ABSL_GUARDED_BY(chain_mu_);  // told last, or null
  ServerJobDirective newest_ ABSL_GUARDED_BY(mu_);                          // of a copy
  absl::Status copy_trouble_ ABSL_GUARDED_BY(mu_);
  absl::Mutex posting_;  // held shared while posting to runners
  bool closed_ ABSL_GUARDED_BY(posting_) = false;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_SERVER_JOB_H_
