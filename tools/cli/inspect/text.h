// How nodes, shards and events are shown: JSON for programs, text for people.
#ifndef STRATA_TOOLS_CLI_INSPECT_TEXT_H_
#define STRATA_TOOLS_CLI_INSPECT_TEXT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"

namespace strata {

// A table with a header line; "no servers or workers" without any. `now`: for how long ago.
std::string NodesTable(const ClusterStatus& cluster, absl::Time now);
// One line. 64-bit identities are hexadecimal text: many readers of JSON round large numbers.
std::string NodesJson(const ClusterStatus& cluster);

// A table with a header line, and one of the rows of each table of the job, with a line that says
// how many shards are not in it; or one line that says why there are no shards.
std::string ShardsTable(const JobShards& shards);
// `shardsNotCounted`: how many shards have null as `tables`.
std::string ShardsJson(const JobShards& shards);

// One line, without its end: time in `zone`, whom it is about, reason, message.
std::string EventLine(const Event& event, absl::TimeZone zone);
std::string EventJson(const Event& event);

// Asks for events since `text`: "15m", "1h30m" ago by the scheduler's clock, or a time as events
// show theirs, as in "2026-01-31T12:00:00Z", whose zone is `zone` where it names none.
// INVALID_ARGUMENT says what is wanted.
absl::Status SetSince(absl::string_view text, absl::TimeZone zone, GetEventsRequest& request);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_INSPECT_TEXT_H_
