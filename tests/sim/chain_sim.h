// Copies of two shards in a chain (server/protocol/replica_chain.h), with a scheduler that removes,
// promotes and joins, over a network that loses, repeats and reorders, and processes that are
// killed, restarted, wiped, or told late. One thread; a seed says all.
#ifndef STRATA_TESTS_SIM_CHAIN_SIM_H_
#define STRATA_TESTS_SIM_CHAIN_SIM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "server/protocol/replica_chain.h"

namespace strata::testing {

class ChainSim {
 public:
  static constexpr size_t kShards = 2;
  static constexpr size_t kProcesses = 4;

  explicit ChainSim(uint64_t seed, uint32_t replicas);
  // Runs `steps` events with faults, then lets all come to an end without. Empty, or the first
  // promise that broke.
  std::string Run(size_t steps);

  // What happened, to know that the run was worth something.
  uint64_t commits() const { return commits_; }
  uint64_t removals() const { return removals_; }
  uint64_t joins() const { return joins_; }

 private:
  struct Entry {
    server::LogEnd end;
    uint64_t value = 0;
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
  };
  struct Process {
    bool alive = true;
    uint64_t incarnation = 1;
    std::string log_id;  // of what lies on its disk
    Log logs[kShards];
    bool empty[kShards] = {};  // joins, and has no image yet
    std::optional<Configuration> told;
    std::unique_ptr<server::ReplicaChain> chain;  // null: it has no copy
    std::vector<uint64_t> calls;                  // not answered
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
    };
    std::vector<Part> parts;
    std::vector<std::optional<server::NextEnd>> ends;
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
  void Kill(size_t process);
  void Restart(size_t process);
  void Wipe(size_t process);
  void Append(size_t process);
  void Send(size_t process);
  void Deliver(const Message& m);
  bool Receive(const Message& m);
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
  Log committed_[kShards];  // by anybody, ever
  uint64_t values_ = 0, log_ids_ = 0;
  uint64_t commits_ = 0, removals_ = 0, joins_ = 0;
  bool faults_ = true;
  std::string broke_;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_SIM_CHAIN_SIM_H_
