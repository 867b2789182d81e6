// What a process tells Prometheus, fetched once.
// Tested by tests/tools/cli/inspect/top_test.cc
#ifndef STRATA_TOOLS_CLI_INSPECT_TOP_SCRAPE_H_
#define STRATA_TOOLS_CLI_INSPECT_TOP_SCRAPE_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace strata {

// By name; the values of one name under several labels are added up.
using MetricValues = std::map<std::string, double, std::less<>>;

// Prometheus' text format, version 0.0.4. Lines that are not understood, and numbers that are not
// finite, are left out.
MetricValues ParseMetrics(absl::string_view text);

// GET http://`address`/metrics. UNAVAILABLE: nothing listens there, or it closed too early;
// DEADLINE_EXCEEDED; INVALID_ARGUMENT: no host:port; RESOURCE_EXHAUSTED: more than kMaxScrapeBytes;
// INTERNAL: an answer other than 200.
inline constexpr size_t kMaxScrapeBytes = size_t{4} << 20;
absl::StatusOr<MetricValues> Scrape(const std::string& address, absl::Duration timeout);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_INSPECT_TOP_SCRAPE_H_
