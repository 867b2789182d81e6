// What processes that do not stay up said last.
#ifndef STRATA_TOOLS_CLI_CLUSTER_LAST_WORDS_H_
#define STRATA_TOOLS_CLI_CLUSTER_LAST_WORDS_H_

#include <cstdint>
#include <map>
#include <string>

#include "tools/cli/cluster/cluster_dir.h"

namespace strata {

// Bytes of each log, by process. Logs are appended to: taken before a start, what lies beyond is of
// that start.
using LogSizes = std::map<std::string, uint64_t>;
LogSizes SizesOfLogs(const ClusterDir& dir);

// "the end of PATH:" and the last lines of a process's log beyond `before`.
std::string EndOfLog(const ClusterDir& dir, const std::string& process, const LogSizes& before);

// Of the process that ended most often: how often, how, and EndOfLog. "": none has ended.
std::string WhyNotUp(const ClusterDir& dir, const ClusterState& state, const LogSizes& before);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CLUSTER_LAST_WORDS_H_
