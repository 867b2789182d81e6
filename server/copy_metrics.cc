#include "server/copy_metrics.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strata::server {
namespace {

// The lowest over shards.
std::optional<double> Lowest(const CopyReport& report, uint64_t (CopyEnd::*step)() const) {
  std::optional<double> lowest;
  for (const CopyEnd& end : report.ends()) {
    const auto at = static_cast<double>((end.*step)());
    lowest = std::min(lowest.value_or(at), at);
  }
  return lowest;
}

}  // namespace

void AddCopyMetrics(std::span<const CopyView> copies, std::vector<ServerMetric>& out) {
  using Labels = std::vector<std::pair<std::string, std::string>>;
  const auto labels = [](const CopyView& copy) {
    return Labels{{"job", absl::StrCat(copy.job.value)}, {"server", absl::StrCat(copy.server)}};
  };
  const auto gauge = [&](const char* name, const char* help,
                         const std::function<std::optional<double>(const CopyView&)>& value) {
    for (const CopyView& copy : copies) {
      const auto is = value(copy);
      if (!is) continue;
      out.push_back({absl::StrCat("strata_server_copy_", name), help, *is, false, labels(copy)});
    }
  };
  for (const CopyView& copy : copies) {
    Labels all = labels(copy);
    all.emplace_back("role", copy.role);
    out.push_back({"strata_server_copy_role",
                   "1: what the copy is in its chain (head, middle, tail, joining).", 1, false,
                   std::move(all)});
  }
  gauge("chain_epoch", "The newest configuration of its chain that the copy knows.",
        [](const CopyView& c) { return static_cast<double>(c.report.chain_epoch()); });
  gauge("committed_step", "Last step (async: window) that is committed; the lowest of its shards.",
        [](const CopyView& c) { return Lowest(c.report, &CopyEnd::committed_step); });
  gauge("log_end_step", "Last step (async: window) in the copy's log; the lowest of its shards.",
        [](const CopyView& c) { return Lowest(c.report, &CopyEnd::step); });
  gauge("lag_bytes", "Bytes of log that the copy after this one lacks.",
        [](const CopyView& c) { return static_cast<double>(c.report.lag_bytes()); });
  gauge("image_sent_bytes", "Bytes of images that the copy after this one has of those it gets.",
        [](const CopyView& c) { return static_cast<double>(c.report.image_bytes_sent()); });
  gauge("image_bytes", "Bytes of those images.",
        [](const CopyView& c) { return static_cast<double>(c.report.image_bytes()); });
}

}  // namespace strata::server
