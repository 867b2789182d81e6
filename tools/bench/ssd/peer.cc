#include "tools/bench/ssd/peer.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/bench/base/figure.h"

namespace strata::bench {

SsdPeer::SsdPeer(const std::string& baselines, const std::string& scratch, uint64_t rows)
    : folder_(scratch + "/rb"), common_(absl::StrCat(" n=", rows, " bs=1024 cache=256 ")) {
  if (baselines.empty()) return;
  const std::string binary = scratch + "/rb-peer";
  const std::string build = absl::StrCat("g++ -O2 -std=c++17 -o ", binary, " ", baselines,
                                         "/rocks/rb.cc -lrocksdb -lpthread 2>/dev/null && ", binary,
                                         " ", folder_, " ingest", common_, ">/dev/null");
  if (std::system(build.c_str()) == 0) binary_ = binary;
}

std::optional<double> SsdPeer::Reads(double seconds) const {
  return Rate(absl::StrCat("read", common_, "dist=zipf thr=16 warm=8 secs=", seconds), " kkeys/s",
              1e3);
}

std::optional<double> SsdPeer::Updates(double seconds) const {
  return Rate(absl::StrCat("update", common_, "thr=2 secs=", seconds), " Mkeys/s", 1e6);
}

std::optional<double> SsdPeer::Rate(const std::string& arguments, const std::string& unit,
                                    double scale) const {
  if (binary_.empty()) return std::nullopt;
  const std::string command = absl::StrCat(binary_, " ", folder_, " ", arguments, " 2>&1");
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::vector<double> rates;
  char line[512];
  while (fgets(line, sizeof(line), pipe) != nullptr) {
    const char* at = std::strstr(line, ": ");
    const char* end = std::strstr(line, unit.c_str());
    if (at != nullptr && end != nullptr) rates.push_back(std::strtod(at + 2, nullptr));
  }
  pclose(pipe);
  if (rates.empty()) return std::nullopt;
  return Median(rates) * scale;
}

}  // namespace strata::bench
