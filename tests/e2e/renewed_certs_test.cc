// Certificates that are renewed, and an authority that is changed, while a job trains: the cluster
// stays up, and the model is the same. The processes are real; libfaketime shows them a clock that
// passes the end of each certificate.
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/authority_rollover.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/transport/grpc_scheduler_client.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/strata/control.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/shown_clock.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/skip.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

// Before gRPC looks, and before there are threads: as a main program does it.
[[maybe_unused]] const bool kAllowed = (AllowTls13Alone(), true);

constexpr ClusterId kCluster{7, 8};
constexpr absl::Duration kCall = absl::Seconds(30);
constexpr int kRenewals = 5;
// From one renewal to the next, by the clock that is shown; the first certificates are good for 90
// days, later ones for 40 after the next step.
constexpr int kStepDays = 100, kSpareDays = 40;

class Cluster : public ProcessCluster {
 public:
  Cluster(const std::string& folder, const std::string& certs, const ShownClock& clock)
      : ProcessCluster({.folder = folder,
                        .lease_ms = 60'000,
                        .variables = clock.variables(),
                        .certs = certs}) {}
  ~Cluster() {
    for (const char* name : {"scheduler", "server-0", "server-1", "worker-0", "worker-1"}) {
      RemoveFakeTimeOf(process(name).pid());
    }
  }
  void KillAndForget(const std::string& name) {
    Kill(name);
    RemoveFakeTimeOf(process(name).pid());
  }
  void Restart(const std::string& name) {
    KillAndForget(name);
    Start(name);
  }
};

// Of the certificate that processes have by now, of a running process as its peers see it.
std::string SerialOf(const ProcessCluster& cluster, const std::string& name) {
  const auto mine = LoadCredentials(cluster.CertificateOf(name));
  REQUIRE(mine.ok());
  return mine->certificate.facts.serial;
}

// By a connection of its own, which shows the operator's newest certificate.
JobStatus AwaitEndAnew(const ProcessCluster& cluster, uint64_t job) {
  JobRef ref;
  ref.set_job(job);
  JobStatus last;
  AwaitThat(
      "the job's end",
      [&] {
        const auto tls = ProcessTls::Open({.folder = cluster.CertificateOf("tester")});
        REQUIRE(tls.ok());
        const auto status = MakeGrpcSchedulerClient(cluster.address(), *tls)->GetJob(ref, kCall);
        if (!status.ok()) return false;
        last = *status;
        return last.state() != PENDING && last.state() != RUNNING;
      },
      absl::Minutes(4));
  return last;
}

// What is done to the authority before the certificates are renewed for the n-th time.
absl::Status ChangeAuthority(const std::string& certs, int renewal) {
  switch (renewal) {
    case 2:
      return BeginRollover(certs, 3650, absl::Now()).status();
    case 3:
      return SwitchAuthority(certs, absl::Now()).status();
    case 4:
      return EndRollover(certs, absl::Now()).status();
    default:
      return absl::OkStatus();
  }
}

TEST_CASE(
    "a job trains through five renewals and a change of the CA, each old certificate expired "
    "before a new handshake, and while the scheduler is away for a day",
    "[tls][clock]") {
  if (!std::filesystem::exists(kFakeTimeLibrary)) STRATA_SKIP("libfaketime is not installed");
  auto scratch = ScratchFolder::Make("strata-renewed");
  REQUIRE(scratch.ok());
  TrainingJob job = SmallJob(scratch->path());
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_training()->set_epochs(30);
  spec.mutable_replicas()->set_servers(2);
  spec.mutable_replicas()->set_workers(2);
  const JobStatus reference = Train(job);
  const std::string certs = scratch->path() + "/certs";
  const auto first = InitAuthority(certs, kCluster, 3650, absl::Now());
  REQUIRE(first.ok());
  ShownClock clock(scratch->path() + "/clock");
  Cluster cluster(scratch->path() + "/cluster", certs, clock);
  cluster.KillAndForget("server-1");
  // In the midst of the job, as often as it is needed.
  const uint64_t id = cluster.SubmitAndStop(
      job, "server-1", absl::StrCat("server.commit.append=stop@25*", kRenewals + 2, "/25"));
  const auto go_on_to_next_stop = [&] {
    cluster.process("server-1").Signal(SIGCONT);
    cluster.AwaitStopped("server-1");
  };
  for (int renewal = 1; renewal <= kRenewals; ++renewal) {
    INFO("renewal " << renewal);
    const std::string serial = SerialOf(cluster, "worker-0");
    const absl::Status changed = ChangeAuthority(certs, renewal);
    INFO(changed);
    REQUIRE(changed.ok());
    const auto all = RenewAll(certs, renewal * kStepDays + kSpareDays, absl::Now());
    INFO(all.status());
    REQUIRE(all.ok());
    CHECK(all->renewed.size() == 6);
    CHECK(SerialOf(cluster, "worker-0") != serial);
    clock.Set(24 * kStepDays * renewal);
    // All connections that there are have one of these at an end.
    for (const char* name : {"scheduler", "worker-0", "worker-1"}) cluster.Restart(name);
    go_on_to_next_stop();
  }
  // A day and a bit in which nobody hears a scheduler.
  cluster.KillAndForget("scheduler");
  clock.Set(24 * kStepDays * kRenewals + 25);
  go_on_to_next_stop();
  cluster.Start("scheduler");
  cluster.process("server-1").Signal(SIGCONT);
  const JobStatus end = AwaitEndAnew(cluster, id);
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(end.model_hash() == reference.model_hash());
  CHECK(end.rollbacks() == 0);
  CHECK_FALSE(HasCondition(end, "ServerLost"));
  // Nobody has anything of the first authority any more.
  const auto last = ReadAuthority(certs);
  REQUIRE(last.ok());
  CHECK(last->trusted.size() == 1);
  CHECK(last->facts.serial != first->facts.serial);
}

}  // namespace
}  // namespace strata::testing
