#include "tools/cli/inspect/quarantine_text.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"

namespace strata {
namespace {

constexpr char kFirst[] = "abcd0000000000000000000000000001";
constexpr char kSecond[] = "abce0000000000000000000000000002";

void Keep(NodeStatus* node, const char* uid, uint64_t job, const char* name) {
  QuarantinedJob* q = node->add_quarantined();
  q->set_cluster_id("c");
  q->set_job_uid(uid);
  q->set_job(job);
  q->set_name(name);
  q->set_bytes(3 << 20);
  q->set_since_unix_ms(1700000000000);
}

// Two servers keep one job, one of them another job of that name, too.
ClusterStatus Cluster() {
  ClusterStatus cluster;
  for (const char* name : {"server-0", "server-1"}) {
    NodeStatus* const node = cluster.add_nodes();
    node->set_name(name);
    Keep(node, kFirst, 4, "clicks");
  }
  Keep(cluster.mutable_nodes(1), kSecond, 7, "clicks");
  return cluster;
}

TEST_CASE("what is in quarantine is shown with who keeps it", "[inspect]") {
  const std::string table = QuarantineTable(Cluster(), absl::UTCTimeZone());
  INFO(table);
  for (const char* part : {"server-0", "server-1", kFirst, kSecond, "3.00 MiB", "clicks",
                           "2023-11-14 22:13:20", "strata nodes purge"}) {
    CHECK(absl::StrContains(table, part));
  }
  CHECK(QuarantineTable(ClusterStatus(), absl::UTCTimeZone()) == "nothing is in quarantine\n");
  const auto json = nlohmann::json::parse(QuarantineJson(Cluster()))["quarantined"];
  REQUIRE(json.size() == 3);
  CHECK(json[2]["node"] == "server-1");
  CHECK(json[2]["jobUid"] == kSecond);
  CHECK(json[2]["job"] == 7);
  CHECK(nlohmann::json::parse(QuarantineJson(ClusterStatus()))["quarantined"].empty());
}

TEST_CASE("a kept job is meant by UID, its beginning, number or name", "[inspect]") {
  const ClusterStatus cluster = Cluster();
  const auto uid = [&](const char* typed, const char* node) {
    const auto found = FindQuarantined(cluster, typed, node);
    return found.ok() ? found->job_uid() : std::string(found.status().message());
  };
  CHECK(uid(kFirst, "") == kFirst);
  CHECK(uid("abce", "") == kSecond);
  CHECK(uid("4", "") == kFirst);
  CHECK(uid("clicks", "server-0") == kFirst);
  const absl::Status several = FindQuarantined(cluster, "clicks", "").status();
  CHECK(absl::IsInvalidArgument(several));
  CHECK(absl::StrContains(several.message(), kFirst));
  CHECK(absl::StrContains(several.message(), kSecond));
  for (const auto& [typed, node] :
       {std::pair("abc", ""), std::pair("", ""), std::pair("5", ""), std::pair(kSecond, "server-0"),
        std::pair(kFirst, "server-2")}) {
    INFO(typed << " " << node);
    CHECK(absl::IsNotFound(FindQuarantined(cluster, typed, node).status()));
  }
}

TEST_CASE("of an adopted job is told how it goes on, and that it is known", "[inspect]") {
  ListJobsReply jobs;
  JobStatus& job = *jobs.add_jobs();
  job.set_job(9);
  job.set_job_uid(kFirst);
  job.set_name("clicks");
  job.set_state(RUNNING);
  for (const char* reason : {"Adopted", "Indexing"}) {
    JobCondition& c = *job.add_conditions();
    c.set_reason(reason);
    c.set_message(std::string(reason) + " so");
  }
  CHECK(AdoptedJob(jobs, kFirst).job == 9);
  CHECK(AdoptedJob(jobs, kFirst).how == "Adopted so");
  CHECK(AdoptedJob(jobs, kSecond).job == 0);
  for (const char* typed : {kFirst, "abcd", "9", "clicks"}) {
    const absl::Status known = IsKnown(jobs, typed);
    CHECK(absl::IsAlreadyExists(known));
    CHECK(absl::StrContains(known.message(), "job 9"));
  }
  CHECK(IsKnown(jobs, kSecond).ok());
  job.set_state(FAILED);
  CHECK(IsKnown(jobs, kFirst).ok());
}

}  // namespace
}  // namespace strata
