#include "tools/cli/cluster/last_words.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "tools/cli/cluster/tail.h"

namespace strata {

LogSizes SizesOfLogs(const ClusterDir& dir) {
  LogSizes sizes;
  const auto names = LogNames(dir.path() + "/logs");
  if (!names.ok()) return sizes;  // there are none yet
  for (const std::string& name : *names) {
    std::error_code error;
    const uint64_t bytes = std::filesystem::file_size(dir.LogPath(name), error);
    if (!error) sizes[name] = bytes;
  }
  return sizes;
}

std::string EndOfLog(const ClusterDir& dir, const std::string& process, const LogSizes& before) {
  constexpr uint32_t kLines = 10;
  const std::string path = dir.LogPath(process);
  const auto begin = before.find(process);
  return absl::StrCat("the end of ", path, ":\n",
                      LastLines(path, kLines, begin == before.end() ? 0 : begin->second));
}

std::string WhyNotUp(const ClusterDir& dir, const ClusterState& state, const LogSizes& before) {
  const ProcessState* worst = nullptr;
  for (const ProcessState& p : state.processes) {
    if (p.restarts > (worst == nullptr ? 0 : worst->restarts)) worst = &p;
  }
  if (worst == nullptr) return "";
  return absl::StrCat(worst->name, " did not stay up: it ended ", worst->restarts, " times",
                      worst->trouble.empty() ? "" : absl::StrCat(" (", worst->trouble, ")"), "; ",
                      EndOfLog(dir, worst->name, before));
}

}  // namespace strata
