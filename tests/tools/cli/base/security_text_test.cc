#include "tools/cli/base/security_text.h"

#include <catch2/catch.hpp>

#include "absl/time/time.h"
#include "proto/strata/control.pb.h"

namespace strata {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1767225600);

int64_t InDays(int days) { return absl::ToUnixMillis(kNow + days * absl::Hours(24)); }

TEST_CASE("an insecure cluster is called that, and no other", "[status]") {
  ClusterStatus cluster;
  CHECK(SecurityText(cluster, kNow, "").empty());
  cluster.set_insecure(true);
  CHECK(SecurityText(cluster, kNow, "") ==
        "This cluster is insecure: it has no certificates, and nobody is asked who he is.\n");
}

TEST_CASE("certificates are warned of from 30 days on", "[status]") {
  ClusterStatus cluster;
  cluster.set_certificate_not_after_unix_ms(InDays(31));
  CHECK(SecurityText(cluster, kNow, "").empty());
  cluster.set_certificate_not_after_unix_ms(InDays(30));
  NodeStatus& node = *cluster.add_nodes();
  node.set_name("server-0");
  node.set_certificate_not_after_unix_ms(InDays(0));
  NodeStatus& other = *cluster.add_nodes();
  other.set_name("worker-0");
  other.set_certificate_not_after_unix_ms(InDays(1));
  cluster.add_nodes()->set_name("none");
  CHECK(SecurityText(cluster, kNow, "") ==
        "The certificate of the scheduler expires in 30 days.\n"
        "The certificate of server-0 has expired.\n"
        "The certificate of worker-0 expires in 1 day.\n"
        "Renew all that there are: strata certs renew --all, where its CA is\n");
}

}  // namespace
}  // namespace strata
