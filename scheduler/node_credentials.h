// What directives carry so that servers know whose calls they answer: session credentials of
// workers, the key to check them by, and which certificates count no more.
#ifndef STRATA_SCHEDULER_NODE_CREDENTIALS_H_
#define STRATA_SCHEDULER_NODE_CREDENTIALS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/session_credential.h"
#include "proto/strata/control.pb.h"

namespace strata::scheduler {

// One caller at a time. As many credentials as workers have unfinished jobs.
class NodeCredentials {
 public:
  // From the moment of signing; renewed when half of it is over. A server takes one for as long
  // again (kClocksDiffer, server/session_gate.h), since machines' clocks differ.
  static constexpr absl::Duration kLife = absl::Hours(1);

  explicit NodeCredentials(SessionSigner signer) : signer_(std::move(signer)) {}

  // Adds to the whole directive of a node. INVALID_ARGUMENT: a job of it has no id.
  absl::Status Fill(const std::string& node, const std::string& revoked, absl::Time wall,
                    NodeDirective& directive);
  // Whether the node is to be told something that its last directive did not have.
  bool Due(const std::string& node, const std::string& revoked, absl::Time wall) const;

 private:
  struct Signed {
    uint64_t generation = 0;
    uint64_t session = 0;
    std::vector<uint32_t> lanes;
    absl::Time at;
    std::string credential;
  };
  struct Told {
    std::map<std::string, Signed> jobs;  // by UID
    std::string revoked;
  };

  static bool IsOld(const Signed& s, absl::Time wall) {
    // A clock that was set back, too: what was signed in its future may be too long for servers.
    return wall - s.at >= kLife / 2 || wall < s.at;
  }
  absl::Status Sign(const std::string& node, const NodeDirective& directive, absl::Time wall,
                    const WorkerJobDirective& job, Signed& out) const;

  const SessionSigner signer_;
  std::map<std::string, Told> told_;  // by node
};

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_NODE_CREDENTIALS_H_
