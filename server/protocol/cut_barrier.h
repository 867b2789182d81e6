// The aligned barrier of an asynchronous checkpoint at one shard (DESIGN.md section 6,
// "Checkpoints"; after Chandy and Lamport, TOCS 1985, with the alignment of Carbone et al., 2015).
#ifndef STRATA_SERVER_PROTOCOL_CUT_BARRIER_H_
#define STRATA_SERVER_PROTOCOL_CUT_BARRIER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "proto/core/ids.h"

namespace strata::server {

using CutNumber = uint64_t;
using HeldPush = uint64_t;  // what the caller keeps a held-back push under

// Where a lane stood when it marked.
struct LaneMark {
  TaskId task;
  uint64_t next_window = 0;
  friend bool operator==(const LaneMark&, const LaneMark&) = default;
};

// A push carries the number of the last cut that its lane had marked before (0: none). A push that
// carries a cut which is not taken yet belongs after it, and is held back until it is taken, or
// given up for a later one. A pure machine; one per shard.
//
// Bound: a lane waits for one push at a time, and a push that comes again takes the place of what
// it repeats (server/shard/runner.cc). So of a lane there is one, and one more for each push of a
// window that it was told to leave while that was held; those are answered with the others, whoever
// waits for them. The server's limit of bytes in flight (--request-bytes) holds for all together.
class CutBarrier {
 public:
  // REQUIRES: lanes >= 1. `done`: the newest cut that was taken before.
  CutBarrier(uint32_t lanes, CutNumber done) : lanes_(lanes), done_(done), pending_(done) {}

  // True: apply it now. False: it was held back under `held`.
  bool Push(CutNumber cut, HeldPush held);

  // A push that was held back is not to be released after all.
  void Forget(HeldPush held);

  // A lane's marker. A cut above the pending one aborts it: pushes that only waited for the aborted
  // one come out of Release. Markers of cuts taken or aborted, and of lanes that do not exist,
  // change nothing.
  void Mark(uint32_t lane, CutNumber cut, LaneMark mark);

  // The job wants this cut: an older one that is pending is given up, as by Mark. Without it lanes
  // whose pushes wait for a cut that never comes could not mark the one that replaces it.
  void Begin(CutNumber cut);

  // Every lane has marked the pending cut: take it now, then call Taken.
  bool Ready() const { return pending_ > done_ && marks_.size() == lanes_; }
  // REQUIRES: Ready().
  void Taken() { done_ = pending_; }

  // Held-back pushes that may be applied now, in the order they came in.
  std::vector<HeldPush> Release();

  CutNumber pending() const { return pending_; }
  CutNumber done() const { return done_; }
  size_t held() const { return held_.size(); }
  // By lane: marks of the pending cut.
  const std::map<uint32_t, LaneMark>& marks() const { return marks_; }

 private:
  bool Waits(CutNumber cut) const { return cut > done_ && cut >= pending_; }

  struct Held {
    CutNumber cut;
    HeldPush push;
  };
  uint32_t lanes_;
  CutNumber done_;
  CutNumber pending_;  // == done_: none
  std::map<uint32_t, LaneMark> marks_;
  std::vector<Held> held_;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_PROTOCOL_CUT_BARRIER_H_
