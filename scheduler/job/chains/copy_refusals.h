// Servers that a chain which is short cannot have a copy on now: why, until when, and what people
// can do about it. Pure.
#ifndef STRATA_SCHEDULER_JOB_CHAINS_COPY_REFUSALS_H_
#define STRATA_SCHEDULER_JOB_CHAINS_COPY_REFUSALS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace strata::scheduler {

// Processes that lost a copy of a job: none is asked to have one again at once, as it may lose that
// one as well. Another process of the name begins with a folder that it looked at, and may.
class FailedCopies {
 public:
  // `session`: of the process.
  void Add(const std::string& server, uint64_t session, absl::Time until, absl::Time now);
  // When the process may have a copy again; nothing: it may.
  std::optional<absl::Time> Until(const std::string& server, uint64_t session,
                                  absl::Time now) const;

 private:
  struct Failed {
    uint64_t session = 0;
    absl::Time until;
  };
  std::map<std::string, Failed> failed_;  // by server; bound: the servers that a job had
};

struct CopyRefusal {
  enum Why : uint8_t { kSilent, kEnded, kFailed, kZone, kGpu, kRoom };
  std::string server;
  Why why = kSilent;
  std::string zone = "";  // kZone: the one that has a copy already
  absl::Time until = {};  // kFailed
};

// For people: "no server can take another: s1 is silent; s2 is in zone a, which has one; start a
// server in another zone (...)".
std::string DescribeRefusals(const std::vector<CopyRefusal>& refusals);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_CHAINS_COPY_REFUSALS_H_
