#include "scheduler/node_credentials.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/credentials/session_credential.h"

namespace strata::scheduler {
namespace {

constexpr JobIdentity kJob = {{1, 2}, {3, 4}};
const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

NodeDirective Directive(const std::vector<uint32_t>& lanes, uint64_t generation = 1) {
  NodeDirective d;
  d.set_cluster_id(kJob.cluster.text());
  d.set_session(7);
  WorkerJobDirective* job = d.add_worker_jobs();
  job->set_job(1);
  job->set_job_uid(kJob.job.text());
  job->set_generation(generation);
  job->mutable_lanes()->Assign(lanes.begin(), lanes.end());
  return d;
}

TEST_CASE("a directive's credential says whose session it is, and servers can check it",
          "[credentials]") {
  NodeCredentials credentials(*SessionSigner::New());
  NodeDirective d = Directive({2, 3});
  REQUIRE(credentials.Fill("w", "", kStart, d).ok());
  REQUIRE(d.session_keys_size() == 1);
  const std::vector<std::string> keys = {d.session_keys(0)};
  const auto session = VerifySession(d.worker_jobs(0).session_credential(), keys);
  REQUIRE(session.ok());
  CHECK(session->cluster == kJob.cluster);
  CHECK(session->job == kJob.job);
  CHECK(session->generation == Generation(1));
  CHECK(session->session == SessionId(7));
  CHECK(session->worker == "w");
  CHECK(session->lanes == std::vector<uint32_t>{2, 3});
  CHECK(session->expires == kStart + NodeCredentials::kLife);
}

TEST_CASE("a credential is renewed at half its life, and where its host changes", "[credentials]") {
  NodeCredentials credentials(*SessionSigner::New());
  const auto filled = [&](NodeDirective d, absl::Time now) {
    REQUIRE(credentials.Fill("w", "", now, d).ok());
    return d.worker_jobs(0).session_credential();
  };
  CHECK(credentials.Due("w", "", kStart));
  const std::string first = filled(Directive({0}), kStart);
  CHECK_FALSE(credentials.Due("w", "", kStart));
  const absl::Time before_half = kStart + NodeCredentials::kLife / 2 - absl::Seconds(1);
  CHECK_FALSE(credentials.Due("w", "", before_half));
  CHECK(filled(Directive({0}), before_half) == first);
  const absl::Time half = before_half + absl::Seconds(1);
  CHECK(credentials.Due("w", "", half));
  const std::string second = filled(Directive({0}), half);
  CHECK(second != first);
  CHECK_FALSE(credentials.Due("w", "", half));
  CHECK(filled(Directive({0, 1}), half) != second);
  CHECK(filled(Directive({0, 1}, 2), half) != filled(Directive({0, 1}), half));
  // A clock that was set back: no credential is good for longer than its life.
  CHECK(credentials.Due("w", "", half - absl::Seconds(1)));
}

TEST_CASE("a changed list of revoked certificates is told at once", "[credentials]") {
  NodeCredentials credentials(*SessionSigner::New());
  NodeDirective d = Directive({0});
  REQUIRE(credentials.Fill("w", "old", kStart, d).ok());
  CHECK(d.revoked() == "old");
  CHECK_FALSE(credentials.Due("w", "old", kStart));
  CHECK(credentials.Due("w", "new", kStart));
}

TEST_CASE("jobs that end or are indexed have no credential", "[credentials]") {
  NodeCredentials credentials(*SessionSigner::New());
  NodeDirective d = Directive({});
  d.mutable_worker_jobs(0)->set_close(true);
  NodeDirective indexing = Directive({});
  indexing.mutable_worker_jobs(0)->set_make_index(true);
  for (NodeDirective* of : {&d, &indexing}) {
    REQUIRE(credentials.Fill("w", "", kStart, *of).ok());
    CHECK(of->worker_jobs(0).session_credential().empty());
  }
}

}  // namespace
}  // namespace strata::scheduler
