// Whose jobs and nodes these are: ids of the cluster and of jobs, terms, and copies that nobody
// knows.
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/cluster_state.h"
#include "tests/scheduler/store/stored_records.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kLease = absl::Seconds(10);
constexpr ClusterId kMine = {0, 1}, kOther = {0, 2};
const absl::Time kStart = absl::FromUnixSeconds(1767225600);

using Store = std::map<std::string, std::string>;

void Save(ClusterState& state, Store& store) { ApplyChanges(state.TakeChanges(), store); }

ClusterState::Submission Job(const std::string& name, JobUid uid) {
  ClusterState::Submission s;
  s.request_id = uid.text();
  s.uid = uid;
  s.job.mutable_metadata()->set_name(name);
  JobSpec& spec = *s.job.mutable_spec();
  spec.mutable_training()->set_mode("bsp");
  spec.mutable_training()->set_lanes(1);
  spec.mutable_replicas()->set_servers(1);
  spec.mutable_replicas()->set_workers(1);
  spec.mutable_storage()->set_directory("/far/away");
  return s;
}

NodeReport ServerReport() {
  NodeReport report;
  report.set_name("s0");
  report.set_role(SERVER);
  report.set_incarnation(1);
  report.set_data_address("s0");
  report.set_cores(1);
  return report;
}

// What the server is told of the only job that it speaks of.
ServerJobDirective AnswerTo(ClusterState& state, const ServerJobReport& job) {
  NodeReport report = ServerReport();
  *report.add_server_jobs() = job;
  const auto session = state.Report(report, kStart);
  REQUIRE(session.ok());
  const auto directive = state.Directive("s0", *session, false);
  REQUIRE(directive.ok());
  REQUIRE(directive->server_jobs_size() == 1);
  return directive->server_jobs(0);
}

ServerJobReport Kept(uint64_t job, JobUid uid) {
  ServerJobReport report;
  report.set_job(job);
  report.set_job_uid(uid.text());
  report.set_state(ServerJobReport::KEPT);
  return report;
}

TEST_CASE("a cluster keeps its id, and its scheduler's term grows", "[scheduler][identity]") {
  Store store;
  uint64_t term = 0;
  for (int start = 1; start <= 3; ++start) {
    ClusterState state(kLease, ClusterId{9, static_cast<uint64_t>(start)});
    REQUIRE(state.Restore(store, kStart).ok());
    const StartId drawn = {8, static_cast<uint64_t>(start)};
    state.Started(kStart, drawn);
    Save(state, store);
    CHECK(state.StartOf(state.term()) == drawn.text());
    CHECK(state.cluster_id() == ClusterId{9, 1}.text());
    CHECK(state.term() > term);
    term = state.term();
    const auto session = state.Report(ServerReport(), kStart);
    const auto directive = state.Directive("s0", *session, false);
    CHECK(directive->cluster_id() == state.cluster_id());
    CHECK(directive->term() == term);
    CHECK(directive->start_id() == drawn.text());
  }
}

TEST_CASE("sessions of two clusters are never the same", "[scheduler][identity]") {
  ClusterState a(kLease, ClusterId{0x1234567800000000, 1}),
      b(kLease, ClusterId{0x2345678900000000, 1});
  const uint64_t in_a = *a.Report(ServerReport(), kStart), in_b = *b.Report(ServerReport(), kStart);
  CHECK((in_a >> 24) != (in_b >> 24));
  NodeReport next = ServerReport();
  next.set_incarnation(2);
  CHECK(*a.Report(next, kStart) == in_a + 1);
}

TEST_CASE("metadata of the format before are refused by their number", "[scheduler][identity]") {
  ClusterRecord old;
  old.set_next_job(2);
  ClusterState state(kLease, kMine);
  const absl::Status s = state.Restore({{"cluster", old.SerializeAsString()}}, kStart);
  CHECK(s.code() == absl::StatusCode::kUnimplemented);
  CHECK(absl::StrContains(s.message(), "format 1;"));
  CHECK(absl::StrContains(s.message(), "format 3;"));
}

TEST_CASE("a node of another cluster is not let in", "[scheduler][identity]") {
  ClusterState state(kLease, kMine);
  Store store;
  Save(state, store);
  NodeReport report = ServerReport();
  report.set_cluster_id(kOther.text());
  const absl::Status s = state.Report(report, kStart).status();
  CHECK(absl::IsPermissionDenied(s));
  CHECK(absl::StrContains(s.message(), kMine.text()));
  CHECK(absl::StrContains(s.message(), kOther.text()));
  CHECK(state.members().nodes().empty());
  CHECK(state.TakeChanges().empty());
  report.set_cluster_id(kMine.text());
  CHECK(state.Report(report, kStart).ok());
}

TEST_CASE("a node that knows what these records do not is not let in", "[scheduler][identity]") {
  ClusterState state(kLease, kMine);
  state.Started(kStart, {8, 1});
  const uint64_t id = *state.Submit(Job("job", {0, 7}), kStart);
  NodeReport report = ServerReport();
  report.set_cluster_id(kMine.text());
  report.set_term(state.term());
  const uint64_t session = *state.Report(report, kStart);
  report.set_session(session);
  ServerJobReport& job = *report.add_server_jobs();
  job.set_job(id);
  job.set_job_uid(JobUid{0, 7}.text());
  job.set_generation(1);
  CHECK(state.Report(report, kStart).ok());
  std::string what;
  SECTION("a term") {
    report.set_term(state.term() + 1);
    what = "term 2";
  }
  SECTION("a session") {
    report.set_session(session + 1);
    what = absl::StrCat("session ", session + 1);
  }
  SECTION("a generation of a job") {
    job.set_generation(2);
    what = "generation 2 of job " + JobUid{0, 7}.text();
  }
  SECTION("a job") {
    job.set_job(id + 1);
    job.set_job_uid(JobUid{0, 8}.text());
    what = absl::StrCat("job ", id + 1);
  }
  SECTION("but not of another job") {
    job.set_job_uid(JobUid{0, 8}.text());
    job.set_generation(2);
  }
  SECTION("nor what another cluster counted") {
    job.set_job(id + 1);
    job.set_cluster_id(kOther.text());
  }
  const absl::Status s = state.Report(report, kStart).status();
  CHECK(s.ok() == what.empty());
  if (what.empty()) return;
  CHECK(absl::IsPermissionDenied(s));
  CHECK(absl::StrContains(s.message(), what));
  CHECK(absl::StrContains(s.message(), "--restored"));
}

TEST_CASE("a node that heard of a term from another start is not let in, and nothing is done",
          "[scheduler][identity]") {
  const StartId first = {8, 1}, second = {8, 2}, other = {9, 2};
  Store store;
  {
    ClusterState state(kLease, kMine);
    state.Started(kStart, first);
    Save(state, store);
  }
  ClusterState state(kLease, kOther);
  REQUIRE(state.Restore(store, kStart).ok());
  state.Started(kStart, second);
  Save(state, store);
  NodeReport report = ServerReport();
  *report.add_server_jobs() = Kept(0, {5, 5});
  report.set_cluster_id(kMine.text());
  const auto ask = [&](uint64_t term, const std::string& start) {
    report.set_term(term);
    report.set_start_id(start);
    return state.Report(report, kStart).status();
  };
  for (const uint64_t term : {1, 2}) {
    const absl::Status s = ask(term, other.text());
    INFO(s);
    CHECK(absl::IsPermissionDenied(s));
    const std::string own = (term == 1 ? first : second).text();
    for (const std::string& said : {other.text(), own, std::string("--restored")}) {
      CHECK(absl::StrContains(s.message(), said));
    }
    CHECK(state.members().nodes().empty());
    CHECK(state.TakeChanges().empty());
  }
  CHECK(ask(1, first.text()).ok());
  CHECK(ask(2, second.text()).ok());
  CHECK(ask(2, "").ok());  // of a version that knew none
  Save(state, store);
  // With --restored its own terms count no more: nodes may have heard of them from others.
  ClusterState restored(kLease, kOther);
  REQUIRE(restored.Restore(store, kStart).ok());
  restored.Hear(kStart);
  report.set_start_id(other.text());
  CHECK(absl::IsUnavailable(restored.Report(report, kStart).status()));
  restored.GoOn({}, kStart + kLease, {8, 3});
  Save(restored, store);
  CHECK(restored.Report(report, kStart).ok());
  ClusterState again(kLease, kOther);
  REQUIRE(again.Restore(store, kStart).ok());
  CHECK(again.starts() == std::map<uint64_t, std::string>{{3, StartId{8, 3}.text()}});
}

TEST_CASE("what is said of another job of the same number is not said of this one",
          "[scheduler][identity]") {
  ClusterState state(kLease, kMine);
  const uint64_t id = *state.Submit(Job("job", {0, 7}), kStart);
  ServerJobReport other = Kept(id, {0, 8});
  other.set_state(ServerJobReport::FAILED);
  other.set_message("of another one");
  const ServerJobDirective d = AnswerTo(state, other);
  CHECK_FALSE(state.jobs().at(id)->over());
  CHECK(d.close());
  CHECK(d.quarantine());
  CHECK(d.job_uid() == JobUid{0, 8}.text());
}

TEST_CASE("a late copy of an ended job is removed, one of a job that nobody knows is kept",
          "[scheduler][identity]") {
  ClusterState state(kLease, kMine);
  Store store;
  const uint64_t first = *state.Submit(Job("first", {0, 1}), kStart);
  REQUIRE(state.Cancel(first, kStart).ok());
  const auto check = [first](ClusterState& of) {
    const ServerJobDirective ended = AnswerTo(of, Kept(first, {0, 1}));
    CHECK(ended.close());
    CHECK_FALSE(ended.quarantine());
    CHECK(ended.cluster_id() == kMine.text());
    CHECK(ended.job_uid() == JobUid{0, 1}.text());
    const ServerJobDirective unknown = AnswerTo(of, Kept(first, {5, 5}));
    CHECK(unknown.close());
    CHECK(unknown.quarantine());
  };
  check(state);
  CHECK(AnswerTo(state, Kept(first, {0, 1})).storage_directory() == "/far/away");
  // Also when so many ended after it that the job itself is forgotten, and after a restart.
  for (size_t i = 0; i <= ClusterState::kMaxFinishedJobs + 1; ++i) {
    const uint64_t job = *state.Submit(Job("job", {1, i + 1}), kStart);
    REQUIRE(state.Cancel(job, kStart).ok());
  }
  REQUIRE(state.jobs().count(first) == 0);
  check(state);
  Save(state, store);
  ClusterState again(kLease, kOther);
  REQUIRE(again.Restore(store, kStart).ok());
  check(again);
}

TEST_CASE("a copy of another cluster's job is kept, under that cluster's id",
          "[scheduler][identity]") {
  ClusterState state(kLease, kMine);
  const uint64_t id = *state.Submit(Job("job", {0, 7}), kStart);
  ServerJobReport report = Kept(id, {0, 7});  // the same number and UID, if that could be
  report.set_cluster_id(kOther.text());
  const ServerJobDirective d = AnswerTo(state, report);
  CHECK(d.close());
  CHECK(d.quarantine());
  CHECK(d.cluster_id() == kOther.text());
}

TEST_CASE("what a node keeps in quarantine is shown", "[scheduler][identity]") {
  ClusterState state(kLease, kMine);
  ServerJobReport report = Kept(3, {5, 5});
  report.set_state(ServerJobReport::QUARANTINED);
  report.set_cluster_id(kOther.text());
  report.set_name("lost");
  report.set_kept_bytes(1000);
  AnswerTo(state, report);
  const ClusterStatus status = state.Cluster();
  CHECK(status.cluster_id() == kMine.text());
  REQUIRE(status.nodes(0).quarantined_size() == 1);
  const QuarantinedJob& kept = status.nodes(0).quarantined(0);
  CHECK(kept.job_uid() == JobUid{5, 5}.text());
  CHECK(kept.cluster_id() == kOther.text());
  CHECK(kept.name() == "lost");
  CHECK(kept.bytes() == 1000);
  CHECK(state.Report(ServerReport(), kStart).ok());  // it has it no more
  CHECK(state.Cluster().nodes(0).quarantined_size() == 0);
}

TEST_CASE("a copy in quarantine goes when a user says so, and no other does",
          "[scheduler][identity]") {
  ClusterState state(kLease, kMine);
  const JobUid lost = {5, 5}, known = {0, 7};
  ServerJobReport kept = Kept(3, lost);
  kept.set_state(ServerJobReport::QUARANTINED);
  kept.set_name("lost");
  CHECK(AnswerTo(state, kept).quarantine());
  SettleQuarantineRequest request;
  const auto settle = [&](SettleQuarantineRequest::Action action, const std::string& uid,
                          const std::string& node) {
    request.set_action(action);
    request.set_job_uid(uid);
    request.set_node(node);
    return state.SettleQuarantine(request, kStart);
  };
  constexpr auto kPurge = SettleQuarantineRequest::PURGE;
  for (const std::string& uid : {std::string(), std::string("x"), JobUid().text()}) {
    CHECK(absl::IsInvalidArgument(settle(kPurge, uid, "s0").status()));
  }
  CHECK(absl::IsInvalidArgument(
      settle(SettleQuarantineRequest::ACTION_UNSPECIFIED, lost.text(), "s0").status()));
  CHECK(absl::IsNotFound(settle(kPurge, lost.text(), "s1").status()));
  CHECK(absl::IsNotFound(settle(kPurge, known.text(), "s0").status()));
  CHECK(absl::IsNotFound(state.CheckAdopt(known.text()).status()));
  // Without a note there is nothing to go on with, and that is said.
  const absl::Status adopted = state.Adopt(lost.text(), {}, kStart).status();
  CHECK(absl::IsFailedPrecondition(adopted));
  for (const std::string& part : {lost.text(), std::string("s0"), std::string("lost")}) {
    CHECK(absl::StrContains(adopted.message(), part));
  }
  CHECK(AnswerTo(state, kept).quarantine());

  // What is kept for a job that is known, or not in quarantine, is no user's to purge.
  const uint64_t id = *state.Submit(Job("job", known), kStart);
  ServerJobReport of_job = Kept(id, known);
  AnswerTo(state, of_job);
  CHECK(absl::IsNotFound(settle(kPurge, known.text(), "s0").status()));

  AnswerTo(state, kept);
  REQUIRE(settle(kPurge, lost.text(), "s0").ok());
  CHECK(state.Purging("s0", lost.text()));
  for (int i = 0; i < 2; ++i) {  // until it is gone
    const ServerJobDirective d = AnswerTo(state, kept);
    CHECK(d.close());
    CHECK_FALSE(d.quarantine());
    CHECK(d.job_uid() == lost.text());
  }
  CHECK(state.quarantined() == 1);
  // Also where the scheduler begins again meanwhile.
  Store store;
  Save(state, store);
  const std::string record = "purge/" + lost.text() + "/s0";
  CHECK(store.count(record) == 1);
  const Store copy = store;
  {
    ClusterState next(kLease, kMine);
    REQUIRE(next.Restore(store, kStart).ok());
    next.Started(kStart, {8, 9});
    CHECK_FALSE(AnswerTo(next, kept).quarantine());
    Save(next, store);
    CHECK(store.count(record) == 1);
    CHECK(next.Report(ServerReport(), kStart).ok());
    Save(next, store);
    CHECK(store.count(record) == 0);
    CHECK(AnswerTo(next, kept).quarantine());
  }
  {  // not where it is only an older copy that says so
    ClusterState next(kLease, kMine);
    REQUIRE(next.Restore(copy, kStart).ok());
    next.Hear(kStart);
    next.GoOn({}, kStart + kLease, {8, 9});
    CHECK(AnswerTo(next, kept).quarantine());
  }
  CHECK(state.Report(ServerReport(), kStart).ok());
  CHECK_FALSE(state.Purging("s0", lost.text()));
  CHECK(state.quarantined() == 0);
  CHECK(AnswerTo(state, kept).quarantine());  // another copy is another decision
}

}  // namespace
}  // namespace strata::scheduler
