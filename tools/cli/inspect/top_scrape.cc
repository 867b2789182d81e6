#include "tools/cli/inspect/top_scrape.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/metrics/metrics_client.h"

namespace strata {
MetricValues ParseMetrics(absl::string_view text) {
  MetricValues values;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const size_t name_end = line.find_first_of("{ ");
    if (name_end == absl::string_view::npos || name_end == 0) continue;
    absl::string_view rest = line.substr(name_end);
    if (rest[0] == '{') {
      const size_t labels_end = rest.rfind('}');
      if (labels_end == absl::string_view::npos) continue;
      rest = rest.substr(labels_end + 1);
    }
    // The value; a timestamp may follow.
    const std::vector<absl::string_view> words = absl::StrSplit(rest, ' ', absl::SkipEmpty());
    double value = 0;
    if (words.empty() || !absl::SimpleAtod(words[0], &value) || !std::isfinite(value)) continue;
    values[std::string(line.substr(0, name_end))] += value;
  }
  return values;
}

absl::StatusOr<MetricValues> Scrape(const std::string& address, absl::Duration timeout,
                                    std::shared_ptr<CredentialSource> credentials) {
  const auto text = FetchMetrics({.address = address,
                                  .timeout = timeout,
                                  .clock = Clock::Real(),
                                  .credentials = std::move(credentials)});
  if (!text.ok()) return text.status();
  return ParseMetrics(*text);
}

}  // namespace strata
