#include "tools/cli/job/clean_command.h"

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "tools/cluster/embedded/leftovers.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

// What becomes of it; empty: it goes.
std::string WhyKept(const Leftover& left, const CleanOptions& options) {
  if (left.in_use) return "in use";
  if (left.abandoned || options.all) return "";
  return "its cluster may come back for it; --all removes it too";
}

}  // namespace

ExitCode RunClean(const CleanOptions& options) {
  Json json{{"dryRun", options.dry_run}, {"folders", Json::array()}, {"bytes", 0}};
  uint64_t bytes = 0, removed = 0;
  absl::Status failure;
  for (const std::string& folder : options.folders) {
    const auto found = FindLeftovers(folder);
    if (!found.ok()) return ReportError(found.status());
    for (const Leftover& left : *found) {
      std::string kept = WhyKept(left, options);
      if (kept.empty() && !options.dry_run) {
        const absl::Status s = RemoveLeftover(left);
        if (!s.ok()) kept = std::string(s.message());
        failure.Update(s);
      }
      if (kept.empty()) {
        bytes += left.bytes;
        ++removed;
      }
      json["folders"].push_back(Json{{"folder", left.folder},
                                     {"bytes", left.bytes},
                                     {"whose", left.whose},
                                     {"removed", kept.empty() && !options.dry_run},
                                     {"kept", kept.empty() ? Json(nullptr) : Json(kept)}});
      if (options.json) continue;
      const char* const done = !kept.empty()     ? "kept"
                               : options.dry_run ? "would be removed"
                                                 : "removed";
      std::printf("%s: %s (%s, %s)%s%s\n", done, left.folder.c_str(), SizeText(left.bytes).c_str(),
                  left.whose.c_str(), kept.empty() ? "" : ": ", kept.c_str());
    }
  }
  json["bytes"] = bytes;
  if (options.json) {
    std::printf("%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    std::printf("%llu folders, %s\n", static_cast<unsigned long long>(removed),
                SizeText(bytes).c_str());
  }
  return failure.ok() ? kExitOk : ReportError(failure);
}

}  // namespace strata
