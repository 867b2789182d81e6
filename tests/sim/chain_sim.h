// Copies of two asynchronous shards in a chain (server/protocol/replica_chain.h), with a scheduler
// that removes, promotes, joins and closes tasks, over a network that loses, repeats and reorders,
// and processes that are killed, restarted, wiped, or told late, and whose shards have queues: what
// was looked at when it arrived happens later. One thread; a seed says all.
#ifndef STRATA_TESTS_SIM_CHAIN_SIM_H_
#define STRATA_TESTS_SIM_CHAIN_SIM_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "server/protocol/chain_handover.h"
#include "server/protocol/replica_chain.h"
#include "server/protocol/window_ledger.h"

namespace strata::testing {

class ChainSim {
 public:
  static constexpr size_t kShards = 2;
  static constexpr size_t kProcesses = 4;
  static constexpr uint64_t kWindows = 4;  // of a task

  explicit ChainSim(uint64_t seed, uint32_t replicas);
  // Runs `steps` events with faults, then lets all come to an end without. Empty, or the first
  // promise that broke.
  std::string Run(size_t steps);

  // What happened, to know that the run was worth something.
  uint64_t commits() const { return commits_; }
  uint64_t removals() const { return removals_; }
  uint64_t joins() const { return joins_; }
  uint64_t closed() const { return closed_[0]; }
  // Entries that waited in a queue while the shard was handed another epoch.
  uint64_t late() const { return late_; }

 private:
  struct Entry {
    server::LogEnd end;
    bool cut = false;
    uint64_t value = 0;  // the window's number among the shard's, or the cut's among all
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  using Log = std::vector<Entry>;
  struct Member {
    size_t process = 0;
    std::string log_id;
    friend bool operator==(const Member&, const Member&) = default;
  };
  struct Configuration {
    uint64_t epoch = 0;
    std::vector<Member> members;
    uint32_t full = 0;
    std::optional<Member> joining;
    friend bool operator==(const Configuration&, const Configuration&) = default;
  };
  struct Taking;  // a message whose parts are in queues
  // What waits for a shard; the first that is there.
  struct Work {
    std::optional<Configuration> configuration;
    uint64_t number = 0;  // of that
    size_t place = 0;
    std::shared_ptr<Taking> taking;
    size_t part = 0;            // of that
    std::optional<Entry> push;  // by a lane; its end is not known yet
    uint64_t close_below = 0;   // tasks
  };
  struct Process {
    bool alive = true;
    uint64_t incarnation = 1;
    std::string log_id;  // of what lies on its disk
    Log logs[kShards];
    bool empty[kShards] = {};                     // joins, and has no image yet
    std::optional<Configuration> told, by;        // the newest; the one that the copy goes by
    std::unique_ptr<server::ReplicaChain> chain;  // null: it has no copy
    std::unique_ptr<server::ChainHandover> handover;
    std::vector<std::shared_ptr<Taking>> looked_at;  // by threads that have not queued it yet
    std::deque<Work> queue[kShards];
    uint64_t epoch[kShards] = {};  // that the shard goes by
    server::WindowLedger ledger[kShards];
    std::string image[kShards];  // on disk: a ledger, and how much of the log that stands for
    size_t image_entries[kShards] = {};
    std::vector<uint64_t> calls;  // not answered
  };
  struct Message {
    bool reply = false;
    size_t from = 0, to = 0;
    uint64_t incarnation = 0;  // of the one who asked
    uint64_t call = 0, epoch = 0;
    std::string from_log, to_log;
    struct Part {
      size_t shard = 0;
      bool image = false;
      Log entries;
      server::WindowLedger ledger;  // the image's
    };
    std::vector<Part> parts;
    std::vector<std::optional<server::NextEnd>> ends;
  };
  struct Taking {
    Message message;
    size_t left = 0;  // parts that are in queues
    bool refused = false;
  };

  uint64_t Below(uint64_t n) { return random_() % n; }
  static server::LogEnd EndOf(const Log& log) {
    return log.empty() ? server::LogEnd() : log.back().end;
  }
  std::string NewLogId() { return "log" + std::to_string(++log_ids_); }

  void Event();
  void Fault();
  void SchedulerMoves();
  void Remove(size_t place);
  void Join();
  void Promote(size_t last);
  void Persist(Configuration next);
  void Tell(size_t process);
  void OpenCopy(Process& p, const Configuration& c);
  void Forget(Process& p);
  void Hand(size_t process, size_t place);
  static server::ChainConfiguration ConfigurationAt(const Configuration& of, size_t place);
  void Queue(Process& p);
  void RunShard(size_t process, size_t s);
  void TakePart(Process& p, const Message::Part& part);
  static void Append(Process& p, size_t s, const Entry& e);
  static void Note(Process& p, size_t s, const Entry& e);
  static void WriteImage(Process& p, size_t s);
  void Kill(size_t process);
  void Restart(size_t process);
  void Wipe(Process& p);
  void Push(size_t process);
  void Send(size_t process);
  void Deliver(const Message& m);
  bool Receive(const Message& m);
  void Answer(const Message& m);
  void Refused(const Message& m);
  void Look(size_t process);
  void LookAtMembers();
  std::string Settle();
  bool IsWhole(const Member& m) const;  // what the configuration means is on its disk
  void Broke(std::string what) {
    if (broke_.empty()) broke_ = std::move(what);
  }

  std::mt19937_64 random_;
  const uint32_t replicas_;
  std::vector<Process> processes_;
  Configuration newest_;  // persisted
  std::vector<Message> network_;
  Log committed_[kShards];               // by anybody, ever
  std::set<uint64_t> windows_[kShards];  // of those, and they were made up to `made_`
  uint64_t made_[kShards] = {}, closed_[kShards] = {};
  uint64_t cuts_ = 0, log_ids_ = 0;
  uint64_t commits_ = 0, removals_ = 0, joins_ = 0, late_ = 0;
  bool faults_ = true;
  std::string broke_;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_SIM_CHAIN_SIM_H_
