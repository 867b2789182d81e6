// One copy of the shards of one of a job's servers, in the chain of all their copies (rules R1 to
// R18 of tests/model/README.md): what it sends to the copy after it, and what is committed.
//
//   ReplicaChain chain(ends, committed);
//   chain.Configure(configuration);               // the scheduler's newest one
//   chain.Appended(shard, end);                   // the shard's own log has an entry more
//   while (auto call = chain.Next(true)) ...      // send it: entries from `after` on
//   chain.Replied(call->id, epoch, next); chain.Broken(call->id);
//   chain.committed(shard)
#ifndef STRATA_SERVER_PROTOCOL_REPLICA_CHAIN_H_
#define STRATA_SERVER_PROTOCOL_REPLICA_CHAIN_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace strata::server {

// The last entry of a shard's log. Entries are ordered by step (async: number of the applied
// window), then by cut (async: the last cut that was taken).
struct LogEnd {
  uint64_t step = 0;
  uint64_t cut = 0;
  friend auto operator<=>(const LogEnd&, const LogEnd&) = default;
};

// Where an entry belongs, for a log that ends at `own`.
enum class EntryFit : uint8_t {
  kNext,  // behind its end: append it
  kHave,  // it is there
  kGap,   // something is missing before it: refuse it
};
// Of a step or an applied window, and of a cut's record.
EntryFit FitOfStep(LogEnd own, uint64_t step);
EntryFit FitOfCut(LogEnd own, LogEnd entry);

// What a copy knows of the newest configuration.
struct ChainConfiguration {
  uint64_t epoch = 0;
  uint32_t place = 0;    // 0: the head; `members`: it is copied to, and is none of them
  uint32_t members = 1;  // of which a learner is the last
  uint32_t full = 1;     // the first so many
  uint32_t min_replicas = 1;
  // Log id of the copy after it, or of the one that it copies to; empty: there is none.
  std::string next;

  // It has all that was ever committed (R13). Another one's log may get that later.
  bool has_all() const;
  // Nobody's acknowledgement is waited for.
  bool last() const { return place + 1 >= members; }
  friend bool operator==(const ChainConfiguration&, const ChainConfiguration&) = default;
};

// A shard as the copy after this one told it.
struct NextEnd {
  bool empty = false;  // it needs an image
  LogEnd end;
  LogEnd committed;
  uint64_t image = 0;  // that it is receiving, and bytes of it that are there
  uint64_t image_bytes = 0;
  friend bool operator==(const NextEnd&, const NextEnd&) = default;
};

// A pure machine: no threads, clock, disk. Shards go by index.
class ReplicaChain {
 public:
  // Calls to the next copy that are not answered. Each shard is in one of them at most, so that no
  // entry overtakes the one before it; what is appended meanwhile goes with the next call.
  static constexpr size_t kMostCalls = 4;

  // `committed`: what is known of that without asking anybody; of a log that was recovered: bsp all
  // but its last entry, async nothing.
  ReplicaChain(std::vector<LogEnd> ends, std::vector<LogEnd> committed);

  // False: an older one, which changes nothing. A change of epoch, or of the next copy, forgets
  // what was sent (R7).
  bool Configure(const ChainConfiguration& configuration);
  // The shard's own log ends there now (R1: it is written).
  void Appended(size_t shard, LogEnd end);

  struct Part {
    size_t shard = 0;
    bool image = false;  // else the entries after `after`
    LogEnd after;
    NextEnd next;  // of an image: what is there of it
  };
  struct Call {
    uint64_t id = 0;
    uint64_t epoch = 0;
    bool wait = false;        // no news before something more is committed
    std::vector<Part> parts;  // empty: only the question how far the next copy is
  };
  // What to send now. `images`: parts of images may be sent. Call it until it returns nothing,
  // after each event.
  std::optional<Call> Next(bool images);
  // The call is not made after all. Until the shard is ready again nothing of it is sent: its
  // entries are being read, or so many bytes a second are enough.
  void Drop(uint64_t call);
  void SetReady(size_t shard, bool ready) { shards_[shard].ready = ready; }
  // The call was answered, by a copy that goes by `epoch`. `next`: by shard.
  void Replied(uint64_t call, uint64_t epoch, const std::vector<std::optional<NextEnd>>& next);
  // Nobody knows whether it arrived. All is asked anew; the caller waits a little before.
  void Broken(uint64_t call);

  const ChainConfiguration& configuration() const { return configuration_; }
  size_t shards() const { return shards_.size(); }
  LogEnd end(size_t shard) const { return shards_[shard].end; }
  // Every copy of the chain has it (R3). Never goes back.
  LogEnd committed(size_t shard) const { return shards_[shard].committed; }
  // Nothing: not known since the last change of the configuration or the last broken call.
  std::optional<NextEnd> next(size_t shard) const;
  // The next copy has what it had to have when both knew the configuration (R13).
  bool NextHasAll() const;
  // The next copy has an entry that is missing here: this log has lost its end.
  bool lost_end() const { return lost_end_; }

 private:
  struct Shard {
    LogEnd end;
    LogEnd committed;
    LogEnd goal;  // its end when the configuration came
    std::optional<NextEnd> next;
    uint64_t in_call = 0;  // 0: in none
    bool ready = true;
  };
  void Forget();
  void Commit(Shard& shard);
  Call Make(std::vector<Part> parts);

  ChainConfiguration configuration_;
  bool configured_ = false;
  std::vector<Shard> shards_;
  std::map<uint64_t, bool> calls_;  // since the last Forget; true: all shards are asked for
  uint64_t last_call_ = 0;
  bool lost_end_ = false;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_PROTOCOL_REPLICA_CHAIN_H_
