// What of nodes' troubles is news to users: a pure function.
#ifndef STRATA_SCHEDULER_NODES_TROUBLES_H_
#define STRATA_SCHEDULER_NODES_TROUBLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/strata/control.pb.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

struct TroubleNews {
  std::string reason;  // of the condition; kTroubleOver for an end
  std::string message;
};

inline constexpr char kTroubleOver[] = "Recovered";
// Of lines that a worker leaves out, as it says in its reports: they do not become good, so there
// is no news of an end, and the beginning is told once.
inline constexpr char kLinesAreBad[] = "LinesAreBad";
inline constexpr char kHeldOutLinesAreBad[] = "HeldOutLinesAreBad";
// A node's troubles beyond this many are not looked at.
inline constexpr int kMaxTroubles = 16;

// `reported` is all that troubles `node` now. Returns what began and what ended since it was last
// asked, and keeps `standing`, whose entries are of all nodes, up to date. A trouble that only
// changes its text is no news. How long one stood is counted by the clock of `now_unix_ms` from the
// first report of it: the node's own may be another.
std::vector<TroubleNews> FollowTroubles(
    absl::string_view node, const google::protobuf::RepeatedPtrField<Trouble>& reported,
    int64_t now_unix_ms, google::protobuf::RepeatedPtrField<StandingTrouble>& standing);

// The job is done: every trouble is over. Returns what ended; nothing stands afterwards.
std::vector<TroubleNews> EndTroubles(int64_t now_unix_ms,
                                     google::protobuf::RepeatedPtrField<StandingTrouble>& standing);

// The node has left the job: its troubles are over, and nobody is told.
void ForgetTroubles(absl::string_view node,
                    google::protobuf::RepeatedPtrField<StandingTrouble>& standing);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_NODES_TROUBLES_H_
