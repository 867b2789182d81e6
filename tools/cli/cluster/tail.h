// The ends of log files, as they grow.
#ifndef STRATA_TOOLS_CLI_CLUSTER_TAIL_H_
#define STRATA_TOOLS_CLI_CLUSTER_TAIL_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace strata {

// NAME of every NAME.log in the folder, sorted.
absl::StatusOr<std::vector<std::string>> LogNames(const std::string& folder);

std::string JoinNames(const std::vector<std::string>& names);

// The last `lines` lines of a file (of its last 64 KiB), none before byte `from`; "" when it cannot
// be read.
std::string LastLines(const std::string& path, uint32_t lines, uint64_t from = 0);

// Prints lines of several logs, each after its name. One thread.
class Tail {
 public:
  // kText: the name, padded, and the line. kJson: {"process": name, "line": line}, where bytes that
  // are no UTF-8 are replaced.
  enum class Format { kText, kJson };

  // Begins `lines` lines before the present end of each.
  Tail(const std::string& folder, const std::vector<std::string>& names, uint32_t lines,
       Format format);

  // Whole lines that are new since the last call.
  void Print(std::FILE* out);

 private:
  struct Log {
    std::string name;
    std::string path;
    uint64_t offset = 0;
  };
  void PrintLine(const Log& log, absl::string_view line, std::FILE* out) const;

  const Format format_;
  std::vector<Log> logs_;
  size_t width_ = 0;  // of the longest name
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CLUSTER_TAIL_H_
