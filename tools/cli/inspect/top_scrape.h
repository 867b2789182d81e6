// What a process tells Prometheus, fetched once.
// Tested by tests/tools/cli/inspect/top_test.cc
#ifndef STRATA_TOOLS_CLI_INSPECT_TOP_SCRAPE_H_
#define STRATA_TOOLS_CLI_INSPECT_TOP_SCRAPE_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/runtime/credentials/credential_source.h"

namespace strata {

// By name; the values of one name under several labels are added up.
using MetricValues = std::map<std::string, double, std::less<>>;

// Prometheus' text format, version 0.0.4. Lines that are not understood, and numbers that are not
// finite, are left out.
MetricValues ParseMetrics(absl::string_view text);

// What a process answers to GET /metrics; errors are FetchMetrics'. By TLS with `credentials`.
absl::StatusOr<MetricValues> Scrape(const std::string& address, absl::Duration timeout,
                                    std::shared_ptr<CredentialSource> credentials = nullptr);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_INSPECT_TOP_SCRAPE_H_
