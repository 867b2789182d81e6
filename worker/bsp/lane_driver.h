// What a worker's lanes do next in synchronous training: the pure half of DESIGN.md section 6,
// "Bsp, to the bit", seen from the worker. No clock, no sockets, no floats: it is told what
// happened and answers with what to do.
#ifndef STRATA_WORKER_BSP_LANE_DRIVER_H_
#define STRATA_WORKER_BSP_LANE_DRIVER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "proto/core/ids.h"

namespace strata {

// What a server said of itself; an OK holds only for the pair that gave it.
struct ServerIdentity {
  uint64_t incarnation = 0;
  uint64_t map_epoch = 0;
  friend bool operator==(const ServerIdentity&, const ServerIdentity&) = default;
};

// Drives the lanes that one worker hosts for one generation of a job.
//
// Lanes at the same step form a cohort: they pull together (one request per server) and compute
// when every server has answered. Cohorts differ by at most a step or so, only after a lane was
// adopted. A computed contribution is kept until every server has answered the pull of the next
// step, and is pushed again to a server whose identity changed or to which any call broke.
//
// One thread at a time. All sizes are bounded by lanes x servers: at most two steps are kept.
class LaneDriver {
 public:
  enum class Kind : uint8_t {
    kPull,     // ask `server` for Pull(step), for the keys of `lanes` (none when step > last_step)
    kPush,     // send contributions of `lanes` at `step` to `server`, in any grouping
    kCompute,  // every server answered Pull(step): compute `lanes`, then call OnComputed
    kDrop,     // contributions of `step` are committed everywhere: forget them
    kDone,     // the last step is committed everywhere
  };
  struct Action {
    Kind kind;
    uint32_t server = 0;
    Step step;
    std::vector<uint32_t> lanes;  // ascending
    uint64_t ticket = 0;          // kPull, kPush: names the call in the event that answers it
    friend bool operator==(const Action&, const Action&) = default;
  };

  // REQUIRES: servers >= 1. Steps run from 1 to last_step.
  LaneDriver(uint32_t servers, Step last_step);

  // Starts hosting a lane at `step`: 1 + the smallest clock of the generation's shards, or less.
  void Host(uint32_t lane, Step step);
  // Stops hosting a lane; what it has in flight is forgotten when answered.
  void Unhost(uint32_t lane);

  // Everything there is to do now; each action is given once. Deterministic.
  std::vector<Action> Next();

  // Answers to kPull. `identity` as in the reply. Stale tickets are ignored.
  void OnServed(uint64_t ticket, ServerIdentity identity);
  void OnNotYet(uint64_t ticket, ServerIdentity identity);
  // The server's shards are at `clock` and keep nothing older: the lanes continue at step `clock`.
  void OnTooOld(uint64_t ticket, ServerIdentity identity, Step clock);
  // Answer to kPush.
  void OnAccepted(uint64_t ticket, ServerIdentity identity);
  // A pull or push that broke, timed out or was refused as stale: nothing is known of it. The
  // caller decides when to call Next again (backoff).
  void OnBroken(uint64_t ticket);
  // For a call that was put off: whether its answer is still of use. If not it is forgotten, and
  // must not be made: what it would send or ask for may be gone.
  bool StillWanted(uint64_t ticket);
  // The lanes of a kCompute action are computed, and their contributions are kept by the caller.
  void OnComputed(Step step, const std::vector<uint32_t>& lanes);

  // Smallest step that a hosted lane is at; last_step + 1 at the end.
  Step step() const;
  bool done() const { return done_; }
  // Lanes hosted, ascending.
  std::vector<uint32_t> lanes() const;

 private:
  // Lanes that pull and compute one step together.
  struct Cohort {
    std::set<uint32_t> lanes;
    std::vector<bool> served;                        // by server
    std::vector<std::optional<uint64_t>> in_flight;  // pull ticket by server
    bool computing = false;
  };
  // A contribution that may be needed again.
  struct Kept {
    std::vector<std::optional<ServerIdentity>> accepted;  // by server
  };
  struct Call {
    Kind kind;
    uint32_t server;
    Step step;
    std::vector<uint32_t> lanes;
  };

  Cohort& CohortAt(Step step);
  void Learn(uint32_t server, ServerIdentity identity);
  void PushActions(std::vector<Action>& out);
  void DropCommitted(Step served, std::vector<Action>& out);
  std::optional<Call> Take(uint64_t ticket, Kind kind);

  const uint32_t servers_;
  const Step last_step_;
  std::map<Step, Cohort> cohorts_;
  // kept_[step][lane]
  std::map<Step, std::map<uint32_t, Kept>> kept_;
  std::vector<ServerIdentity> identity_;              // by server, the newest learnt
  std::vector<std::optional<uint64_t>> push_flight_;  // by server: at most one push at a time
  std::map<uint64_t, Call> calls_;
  uint64_t next_ticket_ = 1;
  bool done_ = false;
};

}  // namespace strata

#endif  // STRATA_WORKER_BSP_LANE_DRIVER_H_
