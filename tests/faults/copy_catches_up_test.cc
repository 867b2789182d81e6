// A copy is lost while a job trains as fast as it can: another one gets an image and the log, and
// is full while training goes on. Then it leads.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

// 4000 steps of some 50 KB of log each, on one server.
TrainingJob FastJob(const std::string& folder, const std::string& name) {
  TrainingJob job = ManyFeaturesJob(folder, 32, 200);
  job.mutable_metadata()->set_name(name);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_replicas()->set_servers(1);
  spec.mutable_replicas()->set_workers(2);
  spec.mutable_checkpoint()->set_directory(absl::StrCat(folder, "/ckpt-", name));
  return job;
}

// Of the job's server 0.
ShardServer ChainOf(ProcessCluster& cluster, uint64_t job) {
  JobRef ref;
  ref.set_job(job);
  const auto shards = cluster.scheduler().GetShards(ref, absl::Seconds(10));
  INFO(shards.status());
  REQUIRE(shards.ok());
  REQUIRE(shards->servers_size() == 1);
  return shards->servers(0);
}

bool IsFull(const ShardServer& chain) {
  return chain.copies_size() == 2 && chain.copies(0).role() == CopyStatus::HEAD &&
         chain.copies(1).role() == CopyStatus::BACKUP && chain.copies(0).has_report() &&
         chain.copies(1).report().chain_epoch() == chain.chain_epoch() &&
         chain.copies(0).report().chain_epoch() == chain.chain_epoch();
}

double CopyMetric(ProcessCluster& cluster, const std::string& server, const std::string& name,
                  uint64_t job, const std::string& more = "") {
  return cluster.MetricOf(server, absl::StrCat("strata_server_copy_", name, "{job=\"", job,
                                               "\",server=\"0\"", more, "}"));
}

TEST_CASE("a copy that is lost is made anew while the job trains at full speed",
          "[faults][chain][p3]") {
  auto folder = ScratchFolder::Make("strata-fault");
  REQUIRE(folder.ok());
  ProcessCluster cluster({.servers = 3,
                          .folder = folder->path() + "/cluster",
                          .server_flags = {"--metrics-listen=127.0.0.1:0"}});
  const JobStatus reference = Train(FastJob(folder->path(), "reference"));
  TrainingJob copied = FastJob(folder->path(), "copies");
  copied.mutable_spec()->mutable_storage()->set_durability("replicated");
  copied.mutable_spec()->mutable_storage()->set_replicas(2);
  const uint64_t job = cluster.Submit(copied);
  cluster.AwaitStep(job, 100);
  ShardServer chain = ChainOf(cluster, job);
  REQUIRE(chain.copies_size() == 2);
  const std::string head = chain.copies(0).server(), lost = chain.copies(1).server();
  cluster.Kill(lost);

  // Full again, with the job still at it.
  const JobStatus full = cluster.Await(job, [&](const JobStatus& status) {
    REQUIRE(status.state() == RUNNING);
    chain = ChainOf(cluster, job);
    return HasCondition(status, "CopyComplete") && IsFull(chain) &&
           chain.copies(1).server() != lost;
  });
  INFO(Conditions(full));
  CHECK(HasCondition(full, "CopyJoined"));
  CHECK(chain.copies(0).server() == head);
  const std::string copy = chain.copies(1).server();
  CHECK(CopyMetric(cluster, head, "role", job, ",role=\"head\"") == 1);
  CHECK(CopyMetric(cluster, copy, "role", job, ",role=\"tail\"") == 1);
  CHECK(CopyMetric(cluster, head, "chain_epoch", job) == static_cast<double>(chain.chain_epoch()));
  const double before = CopyMetric(cluster, copy, "log_end_step", job);
  CHECK(before > 100);
  cluster.Await(job, [&](const JobStatus&) {
    return CopyMetric(cluster, copy, "committed_step", job) > before + 20;
  });
  CHECK(CopyMetric(cluster, head, "lag_bytes", job) >= 0);
  CHECK(CopyMetric(cluster, head, "image_bytes", job) == 0);

  cluster.Kill(head);
  const JobStatus end = cluster.AwaitEnd(job);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.rollbacks() == 0);
  CHECK(HasCondition(end, "Promoted"));
  CHECK(end.model_hash() == reference.model_hash());
}

}  // namespace
}  // namespace strata::testing
