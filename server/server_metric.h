// A number of a server for metrics.
// Tested by tests/server/copy_metrics_test.cc
#ifndef STRATA_SERVER_SERVER_METRIC_H_
#define STRATA_SERVER_SERVER_METRIC_H_

#include <string>
#include <utility>
#include <vector>

namespace strata::server {

struct ServerMetric {
  std::string name;  // strata_server_...; counters end in _total
  std::string help;
  double value = 0;
  bool counter = false;
  std::vector<std::pair<std::string, std::string>> labels = {};
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SERVER_METRIC_H_
