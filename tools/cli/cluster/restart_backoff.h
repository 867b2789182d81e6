// How long a process that ended stays down: exponential, bounded, pure.
#ifndef STRATA_TOOLS_CLI_CLUSTER_RESTART_BACKOFF_H_
#define STRATA_TOOLS_CLI_CLUSTER_RESTART_BACKOFF_H_

#include <algorithm>

#include "absl/time/time.h"

namespace strata {

// One process. One thread at a time.
class RestartBackoff {
 public:
  struct Options {
    absl::Duration first;          // the first pause; doubled by each end
    absl::Duration most;           // no pause is longer
    absl::Duration healthy_after;  // a process that lived this long starts over at `first`
  };
  explicit RestartBackoff(const Options& options) : o_(options), next_(options.first) {}

  // The pause after an end, of a process that lived for `lived` (0: it did not even start).
  absl::Duration OnEnd(absl::Duration lived) {
    if (lived >= o_.healthy_after) next_ = o_.first;
    const absl::Duration pause = std::min(next_, o_.most);
    next_ = std::min(2 * pause, o_.most);
    return pause;
  }

 private:
  Options o_;
  absl::Duration next_;
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CLUSTER_RESTART_BACKOFF_H_
