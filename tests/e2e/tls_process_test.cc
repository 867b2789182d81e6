// A cluster of real processes whose ports ask everybody who he is.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/credentials/authority_files.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/transport/grpc_scheduler_client.h"
#include "proto/runtime/transport/process_tls.h"
#include "tests/e2e/cluster/files_below.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/small_job.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata::testing {
namespace {

// Before gRPC looks, and before there are threads: as a main program does it.
[[maybe_unused]] const bool kAllowed = (AllowTls13Alone(), true);

constexpr ClusterId kCluster{7, 8};
constexpr absl::Duration kCall = absl::Seconds(30);

void MakeAuthorityIn(const std::string& folder, const ClusterId& cluster = kCluster) {
  REQUIRE(InitAuthority(folder, cluster, 300, absl::Now()).ok());
}

TEST_CASE("a worker trains where everybody is asked who he is, and a stranger is not answered",
          "[tls]") {
  auto scratch = ScratchFolder::Make("strata-e2e");
  REQUIRE(scratch.ok());
  const std::string certs = scratch->path() + "/certs";
  MakeAuthorityIn(certs);
  ProcessCluster cluster(
      {.servers = 2, .workers = 2, .folder = scratch->path() + "/cluster", .certs = certs});
  const TrainingJob job = SmallJob(scratch->path());
  const JobStatus end = cluster.AwaitEnd(cluster.Submit(job));
  INFO(Conditions(end));
  CHECK(end.state() == SUCCEEDED);
  CHECK(cluster.scheduler().GetCluster(kCall)->cluster_id() == kCluster.text());
  CHECK(absl::IsUnavailable(
      MakeGrpcSchedulerClient(cluster.address(), nullptr)->ListJobs(absl::Seconds(2)).status()));
}

std::unique_ptr<SchedulerClient> AsOperator(const ProcessCluster& cluster,
                                            const std::string& name) {
  const auto tls = ProcessTls::Open({.folder = cluster.CertificateOf(name)});
  REQUIRE(tls.ok());
  return MakeGrpcSchedulerClient(cluster.address(), *tls);
}

TEST_CASE("an operator decides about his own jobs, and admins about all", "[tls]") {
  auto scratch = ScratchFolder::Make("strata-e2e");
  REQUIRE(scratch.ok());
  const std::string certs = scratch->path() + "/certs";
  MakeAuthorityIn(certs);
  // Jobs wait for servers, and so go on.
  ProcessCluster cluster({.servers = 0,
                          .workers = 0,
                          .folder = scratch->path() + "/cluster",
                          .certs = certs,
                          .scheduler_flags = {"--admins=root,other"}});
  TrainingJob job = SmallJob(scratch->path());
  job.mutable_metadata()->set_name("mine");
  job.mutable_metadata()->add_owners("friend");
  const auto submit = [&] {
    SubmitRequest request;
    *request.mutable_job() = job;
    const auto reply = AsOperator(cluster, "owner")->Submit(request, kCall);
    INFO(reply.status());
    REQUIRE(reply.ok());
    JobRef ref;
    ref.set_job(reply->job());
    return ref;
  };
  const JobRef first = submit();
  const auto status = AsOperator(cluster, "tester")->GetJob(first, kCall);
  REQUIRE(status.ok());
  REQUIRE(status->owners_size() == 2);
  CHECK(status->owners(0) == "friend");
  CHECK(status->owners(1) == "owner");
  const absl::Status refused = AsOperator(cluster, "tester")->CancelJob(first, kCall).status();
  INFO(refused);
  CHECK(absl::IsPermissionDenied(refused));
  CHECK(absl::StrContains(refused.message(), "its owners are friend, owner"));
  CreateCheckpointRequest checkpoint;
  *checkpoint.mutable_job() = first;
  CHECK(absl::IsPermissionDenied(
      AsOperator(cluster, "tester")->CreateCheckpoint(checkpoint, kCall).status()));
  CHECK(AsOperator(cluster, "friend")->CancelJob(first, kCall).ok());
  CHECK(AsOperator(cluster, "root")->CancelJob(submit(), kCall).ok());
  CHECK(AsOperator(cluster, "owner")->CancelJob(submit(), kCall).ok());
}

// What a daemon that is given these flags says, and its exit code.
CommandResult Daemon(const std::string& folder, const std::string& program,
                     std::vector<std::string> flags) {
  static int runs = 0;
  const std::string log = absl::StrCat(folder, "/daemon-", runs++);
  flags.insert(flags.begin(), {Program(program), "--dir=" + log + ".d"});
  ChildProcess child(flags, log, folder);
  CommandResult result;
  result.exit_code = child.Wait();
  result.err = ReadFile(log + ".err");
  return result;
}

// Everything that a daemon said.
std::string Said(const std::string& log) {
  std::string said = ReadFile(log + ".err");
  for (const std::string& path : FilesBelow(log + ".d")) {
    if (absl::StrContains(path, "log")) said += ReadFile(path);
  }
  return said;
}

TEST_CASE(
    "a process with certificates and a scheduler without, or the other way round, is told why "
    "it is not answered",
    "[tls]") {
  auto scratch = ScratchFolder::Make("strata-e2e");
  REQUIRE(scratch.ok());
  const std::string certs = scratch->path() + "/certs";
  MakeAuthorityIn(certs);
  REQUIRE(IssueIdentity(certs, {.role = Role::kServer, .name = "s"}, absl::Now()).ok());
  REQUIRE(IssueIdentity(certs, {.role = Role::kWorker, .name = "w"}, absl::Now()).ok());
  const bool asks = GENERATE(true, false);
  const ProcessCluster cluster({.servers = 0,
                                .workers = 0,
                                .folder = scratch->path() + "/cluster",
                                .certs = asks ? certs : ""});
  for (const bool server : {true, false}) {
    const std::string name = server ? "s" : "w";
    const std::string log = scratch->path() + "/" + name;
    std::vector<std::string> argv = {
        Program(server ? "server/strata-server" : "worker/strata-worker"), "--name=" + name,
        "--scheduler=" + cluster.address(), "--dir=" + log + ".d"};
    if (!asks) {
      argv.push_back("--certs=" +
                     CurrentFolder(certs, server ? Role::kServer : Role::kWorker, name));
    }
    ChildProcess child(argv, log, scratch->path());
    const std::string says =
        asks ? absl::StrCat("the scheduler at ", cluster.address(),
                            " asks who calls, and this process has no certificate; start it with "
                            "--certs DIR; where the CA is, DIR is made by: strata certs issue ",
                            server ? "server s" : "worker w")
             : absl::StrCat("the scheduler at ", cluster.address(), " speaks no TLS");
    AwaitThat("the reason in its log", [&] {
      REQUIRE_FALSE(child.Ended());  // it tries again
      return absl::StrContains(Said(log), says);
    });
  }
}

TEST_CASE("a process whose certificate is no good ends with 4, and says which and why", "[tls]") {
  auto scratch = ScratchFolder::Make("strata-e2e");
  REQUIRE(scratch.ok());
  const std::string certs = scratch->path() + "/certs";
  const absl::Time then = absl::Now() - absl::Hours(24 * 40);
  REQUIRE(InitAuthority(certs, kCluster, 300, then).ok());
  for (const Role role : {Role::kScheduler, Role::kServer, Role::kWorker}) {
    REQUIRE(IssueIdentity(certs, {.role = role, .name = "late", .days = 10}, then).ok());
    REQUIRE(IssueIdentity(certs, {.role = role, .name = "good"}, absl::Now()).ok());
  }
  struct Case {
    std::string program;
    Role role;
    Role other;
  };
  for (const Case& c : {Case{"scheduler/strata-scheduler", Role::kScheduler, Role::kWorker},
                        Case{"server/strata-server", Role::kServer, Role::kScheduler},
                        Case{"worker/strata-worker", Role::kWorker, Role::kServer}}) {
    INFO(c.program);
    const std::string expired = CurrentFolder(certs, c.role, "late");
    const CommandResult late = Daemon(scratch->path(), c.program, {"--certs=" + expired});
    INFO(late.err);
    CHECK(late.exit_code == 4);
    CHECK(absl::StrContains(late.err, IdentityFolder(certs, c.role, "late")));
    CHECK(absl::StrContains(late.err, "/tls.crt: "));
    CHECK(absl::StrContains(late.err, "CN=late, expires 2"));
    CHECK(absl::StrContains(late.err, "expired"));
    const std::string other = CurrentFolder(certs, c.other, "good");
    const CommandResult strange = Daemon(scratch->path(), c.program, {"--certs=" + other});
    INFO(strange.err);
    CHECK(strange.exit_code == 4);
    CHECK(absl::StrContains(strange.err, "CN=good, expires 2"));
    const CommandResult both =
        Daemon(scratch->path(), c.program,
               {"--certs=" + CurrentFolder(certs, c.role, "good"), "--insecure"});
    INFO(both.err);
    CHECK(both.exit_code == 2);
    CHECK(absl::StrContains(both.err, "exclude each other"));
    CHECK(std::count(both.err.begin(), both.err.end(), '\n') == 1);
  }
}

}  // namespace
}  // namespace strata::testing
