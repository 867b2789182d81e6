// The aligned barrier of an asynchronous checkpoint at one shard (DESIGN.md section 6,
// "Checkpoints"; after Chandy and Lamport, TOCS 1985, with the alignment of Carbone et al., 2015).
#ifndef STRATA_SERVER_PROTOCOL_CUT_BARRIER_H_
#define STRATA_SERVER_PROTOCOL_CUT_BARRIER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"
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

// A push carries the number of the last cut that its lane had marked before (0: none): its tag. A
// push whose cut is not over here belongs after it, and is held back until the cut is taken, failed
// or given up. A pure machine; one per shard.
//
// Rules, of which each has a test:
//   * The scheduler begins a cut when every server has said that all before it are over there. So
//     no cut exists beyond the one after those that are over here (MayExist): marks and pushes that
//     name one are refused. The next one may exist before the shard was told of it.
//   * A cut is over when it was taken here, failed here, was given up by the scheduler, or when
//     pushes have waited for it too long. For good: later orders and marks of it change nothing. So
//     a shard never writes the file of a cut whose pushes it let go.
//   * What is over is all cuts up to a number. It need not outlive the process: the scheduler tells
//     it again with every directive.
//   * A scheduler that dies after it told some lanes and not the others does not stop training: the
//     shard ends the cut itself. It waits longer each time that this happens in a row, so that
//     lanes whose windows take long are in a cut at last.
//
// Bound: a lane waits for one push at a time, and a push that comes again takes the place of what
// it repeats (server/shard/runner.cc). So of a lane there is one, and one more for each push of a
// window that it was told to leave while that was held; those are answered with the others, whoever
// waits for them. The server's limit of bytes in flight (--request-bytes) holds for all together.
// Marks are of one cut: at most one of each lane.
class CutBarrier {
 public:
  // How long pushes wait for a cut; twice as long after each cut in a row that this ended.
  static constexpr absl::Duration kPatience = absl::Seconds(5);
  static constexpr absl::Duration kMostPatience = absl::Minutes(5);

  // REQUIRES: lanes >= 1. `taken`: the newest cut that was taken before.
  CutBarrier(uint32_t lanes, CutNumber taken)
      : lanes_(lanes), taken_(taken), over_(taken), pending_(taken) {}

  // False: nobody can have been told of this cut; whoever names it is wrong, or this barrier has
  // begun again and was not told yet what is over.
  bool MayExist(CutNumber cut) const;

  // True: apply it now. False: it was held back under `held`. REQUIRES: MayExist(cut).
  bool Push(CutNumber cut, HeldPush held, absl::Time now);

  // A push that was held back is not to be released after all.
  void Forget(HeldPush held);

  // A lane's marker. Markers of cuts that are over, and of lanes that do not exist, change nothing.
  // REQUIRES: MayExist(cut).
  void Mark(uint32_t lane, CutNumber cut, LaneMark mark);

  // The scheduler wants this cut: all before it are over, pushes that waited for them come out of
  // Release. Without it lanes whose pushes wait for a cut that never comes could not mark the one
  // that replaces it.
  void Begin(CutNumber cut);

  // All cuts up to this one are over: their marks go, what waited for them comes out of Release.
  void End(CutNumber through);

  // Every lane has marked the pending cut: take it now, then call Taken, or End where it failed.
  bool Ready() const { return pending_ > over_ && marks_.size() == lanes_; }
  // REQUIRES: Ready().
  void Taken();

  // When the push that waits the longest has waited long enough; nullopt: none waits.
  std::optional<absl::Time> Deadline() const;
  // Ends the cuts of all pushes that have waited long enough. False: there is none.
  bool EndOverdue(absl::Time now);

  // Held-back pushes that may be applied now, in the order they came in.
  std::vector<HeldPush> Release();

  CutNumber pending() const { return pending_; }
  CutNumber taken() const { return taken_; }
  CutNumber over() const { return over_; }
  size_t held() const { return held_.size(); }
  absl::Duration patience() const { return patience_; }
  // By lane: marks of the pending cut.
  const std::map<uint32_t, LaneMark>& marks() const { return marks_; }

 private:
  bool Waits(CutNumber cut) const { return cut > over_; }

  struct Held {
    CutNumber cut;
    HeldPush push;
    absl::Time since;
  };
  uint32_t lanes_;
  CutNumber taken_;
  CutNumber over_;     // >= taken_
  CutNumber pending_;  // over_ + 1, or over_: none
  std::map<uint32_t, LaneMark> marks_;
  std::vector<Held> held_;  // the one that waits the longest first
  absl::Duration patience_ = kPatience;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_PROTOCOL_CUT_BARRIER_H_
