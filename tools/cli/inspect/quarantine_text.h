// Copies of jobs that no scheduler knows, as servers keep them: shown, and named by what users
// type.
#ifndef STRATA_TOOLS_CLI_INSPECT_QUARANTINE_TEXT_H_
#define STRATA_TOOLS_CLI_INSPECT_QUARANTINE_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"

namespace strata {

// A table with a header line and a word on what can be done; "nothing is in quarantine" without
// any.
std::string QuarantineTable(const ClusterStatus& cluster, absl::TimeZone zone);
// One line.
std::string QuarantineJson(const ClusterStatus& cluster);

// The kept job that `typed` means: by UID, by the UID's beginning (four digits at least), by number
// or by name; of `node` alone, unless it is empty. NOT_FOUND: none. INVALID_ARGUMENT: several,
// which the text names.
absl::StatusOr<QuarantinedJob> FindQuarantined(const ClusterStatus& cluster,
                                               absl::string_view typed, absl::string_view node);

// What `jobs` say of a job that was adopted. `job` 0: nothing.
struct Adopted {
  uint64_t job = 0;
  std::string how;
};
Adopted AdoptedJob(const ListJobsReply& jobs, absl::string_view uid);
// ALREADY_EXISTS: `typed` means a job of the cluster, in the ways of FindQuarantined, that is not
// over; the text says which.
absl::Status IsKnown(const ListJobsReply& jobs, absl::string_view typed);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_INSPECT_QUARANTINE_TEXT_H_
