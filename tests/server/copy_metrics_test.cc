#include "server/copy_metrics.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/strata/control.pb.h"
#include "server/server_metric.h"

namespace strata::server {
namespace {

// "name{label,...} value", each on a line.
std::string Text(const std::vector<ServerMetric>& metrics) {
  std::string text;
  for (const ServerMetric& m : metrics) {
    absl::StrAppend(&text, m.name.substr(std::string("strata_server_copy_").size()), "{");
    for (const auto& [name, value] : m.labels) absl::StrAppend(&text, name, "=", value, ",");
    absl::StrAppend(&text, "} ", m.value, "\n");
  }
  return text;
}

TEST_CASE("each copy tells its role, its epoch, how far it is and what the next one lacks",
          "[server][chain]") {
  CopyView head{.job = JobId(7), .server = 0, .role = "head"};
  head.report.set_chain_epoch(9);
  head.report.set_lag_bytes(12345);
  head.report.set_image_bytes(100);
  head.report.set_image_bytes_sent(40);
  for (const uint64_t step : {12, 11}) {
    CopyEnd* end = head.report.add_ends();
    end->set_step(step);
    end->set_committed_step(step - 2);
  }
  CopyView joining{.job = JobId(7), .server = 3, .role = "joining"};
  joining.report.set_chain_epoch(8);
  std::vector<ServerMetric> out;
  AddCopyMetrics(std::vector{head, joining}, out);
  CHECK(Text(out) ==
        "role{job=7,server=0,role=head,} 1\n"
        "role{job=7,server=3,role=joining,} 1\n"
        "chain_epoch{job=7,server=0,} 9\n"
        "chain_epoch{job=7,server=3,} 8\n"
        "committed_step{job=7,server=0,} 9\n"
        "log_end_step{job=7,server=0,} 11\n"
        "lag_bytes{job=7,server=0,} 12345\n"
        "lag_bytes{job=7,server=3,} 0\n"
        "image_sent_bytes{job=7,server=0,} 40\n"
        "image_sent_bytes{job=7,server=3,} 0\n"
        "image_bytes{job=7,server=0,} 100\n"
        "image_bytes{job=7,server=3,} 0\n");
}

}  // namespace
}  // namespace strata::server
