// One metric of a process, as Prometheus would read it.
#ifndef STRATA_TESTS_E2E_CLUSTER_METRICS_H_
#define STRATA_TESTS_E2E_CLUSTER_METRICS_H_

#include <string>

namespace strata::testing {

// The metric at http://127.0.0.1:PORT/metrics, where `address` ends with ":PORT"; -1 when nothing
// answers there, or has no such metric.
double ScrapeOne(const std::string& address, const std::string& metric);

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_CLUSTER_METRICS_H_
