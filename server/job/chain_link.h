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
#include "server/job/chain_reader.h"
#include "server/job/entry_parts.h"
#include "server/protocol/replica_chain.h"
#include "server/shard/shard.h"
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
    // Of log, for a copy that is no member yet, beside twice the bytes of its images.
    uint64_t most_kept_bytes = uint64_t{1} << 30;
    // Every copy has the shard's entries up to there; from any thread, not after Close.
    std::function<void(size_t shard, LogEnd committed)> committed;
    std::function<void(size_t shard)> want_image;  // there is none for the next copy
  };
  // Of entries that the next copy lacks so many bytes stay in memory, of all shards.
  static constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  // Of older ones so many are read at a time; at most twice that is in memory.
  static constexpr uint64_t kReadBytes = uint64_t{16} << 20;
  static constexpr uint64_t kCallBytes = uint64_t{16} << 20;     // what is longer goes in parts
  static constexpr absl::Duration kWait = absl::Seconds(1);      // a reply is held so long
  static constexpr absl::Duration kPatience = absl::Seconds(5);  // beyond that
  // Between a broken call and the next one.
  static constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
  static constexpr absl::Duration kLastPause = absl::Milliseconds(500);
  // Images of a shard in a row that next copies could not load: then none is sent for kRest, then
  // one again.
  static constexpr uint32_t kMostRefused = 3;
  static constexpr absl::Duration kRest = absl::Minutes(5);

  // `ends`, `committed`: as ReplicaChain's. `empty`: shards that wait for an image.
  ChainLink(Options options, std::vector<LogEnd> ends, std::vector<LogEnd> committed,
            std::vector<bool> empty);
  ~ChainLink();
  void Close();

  // The scheduler's newest configuration; false: an older one.
  bool Configure(const ChainDirective& directive);
  static ChainConfiguration ConfigurationOf(const ChainDirective& directive);
  // A record is in the log here.
  void Appended(size_t shard, const AppendedRecord& record);
  void Loaded(size_t shard, LogEnd end);  // it has its image
  // A newer base image of the shard is there than any that was sent before.
  void ImageWritten(size_t shard);
  // Bytes of the image that a shard receives.
  void Receiving(size_t shard, uint64_t image, uint64_t bytes);

  // Whether entries of that sender are taken, or no more than its question is answered.
  // FAILED_PRECONDITION: it knows another configuration, or means another copy.
  absl::Status Check(const Caller& caller, const wire::ForwardFields& fields, bool question) const;
  // Answers with what is here, when all that is in the log now is committed or at `deadline`.
  void Answer(const wire::ServerState& state, bool wait, absl::Time deadline, DataReply reply);

  LogEnd end(size_t shard) const;
  LogEnd committed(size_t shard) const;
  bool empty(size_t shard) const;
  // The image that the shard was made of, or is being; 0: of none since this was opened.
  uint64_t image(size_t shard) const;
  // Log segments before it may go: `before`, or one that the next copy needs. A copy that is no
  // member and needs more than may be kept begins anew.
  uint64_t TrimBefore(uint64_t before);
  void Report(CopyReport& report) const;
  // Images that the next copy could not load, by file.
  void ReportImages(ServerJobReport& report) const;
  // Name of the server before this one; empty: there is none.
  std::string sender() const;
  // "head", "middle", "tail", or "joining": it is no member yet.
  std::string role() const;
  // Why this copy cannot go on: its log lost its end.
  absl::Status trouble() const;

 private:
  struct Shard {
    explicit Shard(LogEnd end) : entries(end) {}
    ChainEntries entries;
    bool empty = false;  // waits for an image
    uint64_t image = 0, image_bytes = 0;
    LogEnd told;  // as committed
    ChainSegments segments;
    bool reading = false;
    bool needs_image = false;             // the log does not reach back to the next copy's end
    uint64_t newest_image_bytes = 0;      // of the last one that was sent
    std::unique_ptr<ImageSource> source;  // null while a part is read
    std::optional<ImageSending> sending;
    std::optional<ImageChunk> chunk;  // read, not sent yet
    std::string file;                 // that was sent last
    uint32_t refused = 0;             // in a row
    bool renews = false;              // that file was refused, and there is no newer one yet
    absl::Time rests_until = absl::InfinitePast();  // none is sent
    std::string damage;    // for people; empty: the next copy could load what it got
    LogEnd part_of;        // the entry that goes in parts,
    uint64_t part_at = 0;  // and what the next copy has of it
  };
  struct SentPart {
    size_t shard = 0;
    LogEnd of;
    uint64_t next = 0;  // begins there
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
    std::vector<std::pair<size_t, std::unique_ptr<EntryPart>>> parts;  // by shard
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
  uint64_t FillPart(size_t shard, ChainEntryPtr entry, Out& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PartsAnswered(uint64_t call, bool arrived) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool FillImage(const ReplicaChain::Part& part, Out& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Read(size_t shard, LogEnd after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReadAhead(size_t shard, LogEnd after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReadNow(size_t shard, uint64_t segment, LogEnd after, LogEnd through);
  void NeedImage(size_t shard, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<uint64_t> NeededBy(size_t shard) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  bool GivesUp(uint64_t needed, uint64_t before) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void StopSending(Shard& shard);
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
  std::vector<ChainReader> readers_;  // by shard; touched by the disk's work alone
  std::map<uint64_t, std::vector<SentPart>> sent_parts_ ABSL_GUARDED_BY(mu_);  // by call
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
