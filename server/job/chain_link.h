// What one copy of a server's shards sends to the next one: the decisions of ReplicaChain, with a
// connection, the entries, and the answers to whoever waits for a commit.
// Tested by tests/server/job/chain_test.cc
#ifndef STRATA_SERVER_JOB_CHAIN_LINK_H_
#define STRATA_SERVER_JOB_CHAIN_LINK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/backoff.h"
#include "proto/runtime/base/executor.h"
#include "proto/runtime/base/timer.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/transport/transport.h"
#include "proto/strata/control.pb.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "server/job/chain_entries.h"
#include "server/job/chain_image.h"
#include "server/protocol/replica_chain.h"
#include "server/snapshot/pace.h"
#include "storage/log/record.h"
#include "storage/log/update_log.h"

namespace strata::server {

// Thread-safe; no call waits for anything. Close before it goes.
class ChainLink : public std::enable_shared_from_this<ChainLink> {
 public:
  struct Options {
    JobId job;
    JobIdentity identity;
    Generation generation;
    uint32_t server_index = 0;
    std::string log_id;
    std::vector<ShardId> shards;
    std::string folder;                  // of the generation
    DataTransport* transport = nullptr;  // all of them outlive the link
    Timer* timer = nullptr;
    Executor* disk = nullptr;
    storage::UpdateLog* log = nullptr;
    uint64_t image_bytes_per_second = 0;  // 0: no limit
    // Every copy has the shard's entries up to there; from any thread, not after Close.
    std::function<void(size_t shard, LogEnd committed)> committed;
    // The next copy needs an image, and there is none.
    std::function<void(size_t shard)> want_image;
  };
  // Of entries that the next copy lacks so many bytes stay in memory; older ones are read again.
  static constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  // Of a call; one entry may be larger.
  static constexpr uint64_t kCallBytes = uint64_t{2} << 20;
  static constexpr absl::Duration kWait = absl::Seconds(1);      // a reply is held so long
  static constexpr absl::Duration kPatience = absl::Seconds(5);  // beyond that

  // Between a broken call and the next one.
  static constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
  static constexpr absl::Duration kLastPause = absl::Milliseconds(500);
  // Images of a shard in a row that next copies could not load: then none is sent any more.
  static constexpr uint32_t kMostRefused = 3;

  // `ends`, `committed`: as ReplicaChain's. `empty`: shards that wait for an image.
  ChainLink(Options options, std::vector<LogEnd> ends, std::vector<LogEnd> committed,
            std::vector<bool> empty);
  ~ChainLink();
  void Close();

  // The scheduler's newest configuration; false: an older one.
  bool Configure(const ChainDirective& directive);
  static ChainConfiguration ConfigurationOf(const ChainDirective& directive);
  // A record is in the log here.
  void Appended(size_t shard, const storage::LogHeader& header, storage::LogPosition at,
                std::span<const std::span<const uint8_t>> parts, LogEnd end);
  // The shard has its image.
  void Loaded(size_t shard, LogEnd end);
  // A newer base image of the shard is there than any that was sent before.
  void ImageWritten(size_t shard);
  // Bytes of the image that a shard receives.
  void Receiving(size_t shard, uint64_t image, uint64_t bytes);

  // Whether entries of that sender are taken, or no more than its question is answered.
  // FAILED_PRECONDITION: it knows another configuration, or means another copy.
  absl::Status Check(const Caller& caller, const wire::ForwardFields& fields, bool question) const;
  // Answers with what is here, when all that is in the log now is committed or at `deadline`.
  void Answer(const wire::ServerState& state, bool wait, absl::Time deadline, DataReply reply);

  LogEnd committed(size_t shard) const;
  bool empty(size_t shard) const;
  // Log segments before it may go, as far as the next copy is concerned.
  uint64_t TrimBefore() const;
  void Report(CopyReport& report) const;
  // Images that the next copy could not load, by file.
  void ReportImages(ServerJobReport& report) const;
  // OK, or why this copy cannot go on: its log lost its end, or does not reach back far enough.
  absl::Status trouble() const;

 private:
  struct Shard {
    explicit Shard(LogEnd end) : entries(end) {}
    ChainEntries entries;
    bool empty = false;  // waits for an image
    uint64_t image = 0, image_bytes = 0;
    bool reading = false;
    LogEnd told;  // as committed
    std::unique_ptr<ImageSource> source;
    std::optional<ImageChunk> chunk;  // read, not sent yet
    std::string file;                 // that was sent last
    uint32_t refused = 0;             // in a row
    bool renews = false;              // that file was refused, and there is no newer one yet
    std::string damage;               // for people; empty: the next copy could load what it got
  };
  struct Held {
    std::vector<LogEnd> until;  // by shard
    absl::Time deadline;
    wire::ServerState state;
    DataReply reply;
  };
  struct Out {
    uint64_t call = 0;
    wire::ForwardRequestView message;
    std::vector<ChainEntryPtr> entries;
    std::vector<ImageChunk> chunks;
    std::shared_ptr<DataChannel> channel;
  };
  // What is to be done without the lock.
  struct Work {
    std::vector<Out> out;
    std::vector<std::pair<size_t, LogEnd>> committed;
    std::vector<std::pair<DataReply, Buffer>> replies;
  };

  void Pump();
  void Collect(Work& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Fill(const ReplicaChain::Call& call, Out& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool FillImage(const ReplicaChain::Part& part, Out& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Read(size_t shard, LogEnd after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReadNow(size_t shard, LogEnd after, LogEnd through);
  void ReadImage(size_t shard, uint64_t offset) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReadImageNow(size_t shard, uint64_t offset);
  void Send(Out out);
  void Answered(uint64_t call, const absl::StatusOr<Buffer>& reply);
  void ImagesRefused(const std::vector<ShardId>& shards, const absl::Status& why);
  void Pause(absl::Duration wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WakeAt(absl::Time when) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReadyAt(size_t shard, absl::Time when) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Buffer ReplyNow(const wire::ServerState& state) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void Bound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  SnapshotPace pace_;
  absl::Mutex calling_;  // held shared while options_.committed and want_image are called
  mutable absl::Mutex mu_;
  std::unique_ptr<Executor> disk_ ABSL_GUARDED_BY(mu_);  // null: closed
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  ChainDirective directive_ ABSL_GUARDED_BY(mu_);
  ReplicaChain chain_ ABSL_GUARDED_BY(mu_);
  std::vector<Shard> shards_ ABSL_GUARDED_BY(mu_);
  std::vector<Held> held_ ABSL_GUARDED_BY(mu_);
  std::string address_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<DataChannel> channel_ ABSL_GUARDED_BY(mu_);
  Backoff backoff_ ABSL_GUARDED_BY(mu_);
  bool paused_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Time> waits_since_ ABSL_GUARDED_BY(mu_);
  absl::Status trouble_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_CHAIN_LINK_H_
