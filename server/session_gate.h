// Whether a call's session credential is the one that the call needs: of its job, generation,
// session and lanes.
#ifndef STRATA_SERVER_SESSION_GATE_H_
#define STRATA_SERVER_SESSION_GATE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/core/lane_tree.h"
#include "proto/core/mutex.h"
#include "proto/core/uid.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/credentials/caller.h"
#include "proto/runtime/credentials/rpc_policy.h"
#include "proto/runtime/credentials/session_credential.h"
#include "proto/wire/message.h"

namespace strata::server {

// Thread-safe. Verifies each distinct credential once: at most kMostVerified are remembered, some
// 1 KiB each.
//
// The lists of sessions (server/protocol/lane_sessions.h) stay beside it. A credential says for an
// hour what was true when it was signed; the list says what is true now, to each shard in the order
// of its queue, and a host that lost its lanes is out before they are given to others.
//
// What expires does so by the time at which the scheduler was last heard here. While it is away
// nobody can sign a new credential, and nothing can have changed that one says: generations,
// sessions and lanes are the scheduler's alone.
class SessionGate {
 public:
  static constexpr size_t kMostVerified = 4096;
  // A credential is taken for so long after it expires: the scheduler's clock may be behind.
  static constexpr absl::Duration kClocksDiffer = absl::Hours(1);

  explicit SessionGate(Clock* clock) : clock_(clock) {}

  // The scheduler speaks to this server: what has expired by now is not taken from here on.
  void Hear();
  // Public keys, as a directive has them; Hear as well.
  void SetKeys(std::vector<std::string> keys);

  struct Asked {
    Rpc rpc;
    const JobIdentity* job;
    const wire::Header* header;
    std::span<const LaneNode> lanes = {};  // that the call speaks for
    bool as_host = false;                  // it asks for what hosts of lanes alone are given
  };
  // OK for whom nobody asked. UNAUTHENTICATED: the call needs a credential, and has none, one that
  // had expired when the scheduler was last heard, or one that it has not signed.
  // PERMISSION_DENIED: it is another job's, generation's, session's or worker's, or the caller is
  // no worker. FAILED_PRECONDITION: it has never had these lanes; the scheduler says which it has.
  // UNAVAILABLE: the scheduler has not told its key yet.
  absl::Status Check(const Caller& caller, const Asked& asked);

 private:
  using Verified = std::shared_ptr<const SessionCredential>;
  // Cluster, job, generation and session.
  using Host = std::tuple<ClusterId, JobUid, Generation, SessionId>;

  absl::StatusOr<Verified> Verify(const std::string& credential);
  absl::Status CheckTime(const Caller& caller, Rpc rpc, const SessionCredential& session);
  // What a session hosted once it may still say: its pushes are on their way when lanes leave it.
  absl::Status CheckLanes(const SessionCredential& session, std::span<const LaneNode> lanes);

  Clock* const clock_;
  Mutex mu_;
  std::vector<std::string> keys_ ABSL_GUARDED_BY(mu_);
  // By the wall clock as it was set then.
  absl::Time heard_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  std::map<std::string, Verified> verified_ ABSL_GUARDED_BY(mu_);
  std::map<Host, std::set<uint32_t>> lanes_ ABSL_GUARDED_BY(mu_);  // of those verified
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SESSION_GATE_H_
