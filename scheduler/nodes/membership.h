// Who is in the cluster: names, sessions, incarnations, leases.
#ifndef STRATA_SCHEDULER_NODES_MEMBERSHIP_H_
#define STRATA_SCHEDULER_NODES_MEMBERSHIP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

struct Node {
  NodeRecord record;
  absl::Time last_seen;    // for people; decides nothing
  absl::Duration silence;  // since then, as far as the scheduler heard; below 0: time to return
  // Before the last gap or restart: it counts once a lease is over again.
  absl::Duration silence_before = absl::ZeroDuration();
  bool alive = false;  // heard of within a lease
  // By its last report: processes that it could not reach, and when its certificate expires (0: it
  // has none).
  std::vector<PeerTrouble> peers = {};
  int64_t certificate_not_after_unix_ms = 0;
};

// A pure state machine: one thread, no clock. Rules:
//   * A session lasts until a new incarnation registers under its name. Then it is fenced: its
//   calls
//     are UNAUTHENTICATED, and the old incarnation may not register again (two live processes under
//     one name would otherwise throw each other out for ever).
//   * A lapsed lease alone fences nobody: the node is not `alive` until it is heard of again.
//   * A node's silence is counted by Listen alone, as far as the scheduler itself heard: no call
//     adds more than 1 / kLooks of a lease, so that whoever lapses was looked for that often and
//     had not come. After a gap (half a lease without Listen, or Deaf) all silences begin anew, as
//     after a restart of the scheduler.
//   * Whose lease had lapsed before a gap or a restart is not alive after it, either. It has the
//     same time to return as the others; then its silence goes on from what it was.
class Membership {
 public:
  // Nodes known at a time, dead ones included.
  static constexpr size_t kMaxNodes = 4096;
  static constexpr size_t kMaxReplaced = 16;
  static constexpr size_t kMaxNameBytes = 253;
  // Of a report, as many are remembered: more than one's neighbours in all jobs.
  static constexpr int kMaxPeers = 256;
  // A node that lost its scheduler looks for it with pauses of up to two seconds (its own and the
  // channel's), however short the lease: silence soon after a restart says nothing.
  static constexpr absl::Duration kReturnTime = absl::Seconds(5);
  // A node's call waits this much longer than it asked the scheduler to hold it: after a gap that
  // is shorter no node has to look.
  static constexpr absl::Duration kPatience = absl::Seconds(2);
  // A node comes three times per lease (Scheduler::Sync). Where the scheduler is slow, what holds
  // up a report three times over holds up three looks, and there are five more.
  static constexpr int kLooks = 8;

  explicit Membership(absl::Duration lease) : lease_(lease) {}

  // Takes back what was recorded; nobody's lease lapses before the longer of a full lease and
  // kReturnTime after `now`.
  void Restore(const NodeRecord& record, absl::Time now);
  // The records are of an older copy, and who lapsed then may be alive: silences of theirs count no
  // more.
  void ForgetSilences(absl::Time now);

  struct Admission {
    uint64_t session = 0;
    bool registered = false;  // a session began
    bool replaced = false;    // and another one of this name ended
    bool moved = false;       // whose folder was, or may have been, elsewhere, as disk_id says
    bool revived = false;     // was not alive before
  };
  // A node's call. `next_session` is used up when a session begins. INVALID_ARGUMENT (a field),
  // UNAUTHENTICATED (fenced or unknown session), FAILED_PRECONDITION (a replaced incarnation),
  // ALREADY_EXISTS (the name is a live node's of another role), RESOURCE_EXHAUSTED (kMaxNodes).
  absl::StatusOr<Admission> Report(const NodeReport& report, absl::Time now,
                                   uint64_t& next_session);

  // The scheduler looks who is silent, by the way that reports take: what holds up those holds up
  // this. Returns how long the gap was that is over now; zero: there was none.
  absl::Duration Listen(absl::Time now);
  // Reports are being refused, or were since Listen was called last.
  void Deaf() { deaf_ = true; }
  // Nodes whose lease has just lapsed, by name.
  std::vector<std::string> Expire();

  // nullptr: unknown.
  const Node* Find(absl::string_view name) const;
  // The same of a node of that role: while one of the other role has its name it cannot be here.
  const Node* Find(absl::string_view name, NodeRole role) const;
  // Forgets a node that is not alive.
  void Forget(absl::string_view name);

  // By name.
  const std::map<std::string, Node, std::less<>>& nodes() const { return nodes_; }
  absl::Duration lease() const { return lease_; }

 private:
  // What a silence begins with where nodes may have lost the scheduler.
  absl::Duration TimeToReturn() const;

  absl::Duration lease_;
  absl::Time listened_ = absl::InfinitePast();
  bool deaf_ = false;
  std::map<std::string, Node, std::less<>> nodes_;
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_NODES_MEMBERSHIP_H_
