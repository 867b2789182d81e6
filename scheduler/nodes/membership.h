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
  absl::Time last_seen;
  bool alive = false;  // heard of within a lease
};

// A pure state machine: one thread, no clock. Rules:
//   * A session lasts until a new incarnation registers under its name. Then it is fenced: its
//   calls
//     are UNAUTHENTICATED, and the old incarnation may not register again (two live processes under
//     one name would otherwise throw each other out for ever).
//   * A lapsed lease alone fences nobody: the node is not `alive` until it is heard of again.
class Membership {
 public:
  // Nodes known at a time, dead ones included.
  static constexpr size_t kMaxNodes = 4096;
  static constexpr size_t kMaxReplaced = 16;
  static constexpr size_t kMaxNameBytes = 253;
  // A node that lost its scheduler looks for it with pauses of up to two seconds (its own and the
  // channel's), however short the lease: silence soon after a restart says nothing.
  static constexpr absl::Duration kReturnTime = absl::Seconds(5);

  explicit Membership(absl::Duration lease) : lease_(lease) {}

  // Takes back what was recorded; nobody's lease lapses before the longer of a full lease and
  // kReturnTime after `now`.
  void Restore(const NodeRecord& record, absl::Time now);

  struct Admission {
    uint64_t session = 0;
    bool registered = false;  // a session began
    bool replaced = false;    // and another one of this name ended
    bool revived = false;     // was not alive before
  };
  // A node's call. `next_session` is used up when a session begins. INVALID_ARGUMENT (a field),
  // UNAUTHENTICATED (fenced or unknown session), FAILED_PRECONDITION (a replaced incarnation),
  // ALREADY_EXISTS (the name is a live node's of another role), RESOURCE_EXHAUSTED (kMaxNodes).
  absl::StatusOr<Admission> Report(const NodeReport& report, absl::Time now,
                                   uint64_t& next_session);

  // Nodes whose lease has just lapsed, by name.
  std::vector<std::string> Expire(absl::Time now);

  // nullptr: unknown.
  const Node* Find(absl::string_view name) const;
  // Forgets a node that is not alive.
  void Forget(absl::string_view name);

  // By name.
  const std::map<std::string, Node, std::less<>>& nodes() const { return nodes_; }
  absl::Duration lease() const { return lease_; }

 private:
  absl::Duration lease_;
  std::map<std::string, Node, std::less<>> nodes_;
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_NODES_MEMBERSHIP_H_
