#include "scheduler/job/events.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "scheduler/state/state.pb.h"

namespace strata::scheduler {
namespace {

std::vector<std::string> Reasons(const std::vector<JobEvent>& events) {
  std::vector<std::string> reasons;
  for (const JobEvent& e : events) reasons.push_back(e.reason);
  return reasons;
}

using Texts = std::vector<std::string>;

JobStateRecord Pending() {
  JobStateRecord record;
  record.set_state(PENDING);
  record.set_generation(1);
  return record;
}

void Place(JobStateRecord& record, const std::string& name) {
  record.add_servers()->set_name(name);
  record.add_shards();
}

TEST_CASE("nothing new is no event", "[job_events]") {
  JobEvents events;
  const JobStateRecord record = Pending();
  CHECK(events.Take(record, record.cuts()).empty());
  CHECK(events.Take(record, record.cuts()).empty());
}

TEST_CASE("placement, conditions, cuts and states, each once and in this order", "[job_events]") {
  JobEvents events;
  JobStateRecord record = Pending();
  Place(record, "s0");
  Place(record, "s1");
  record.set_state(RUNNING);
  CutRecord* cut = record.mutable_cuts()->add_pending();
  cut->set_cut(4);
  cut->set_step(100);
  cut->set_folder("/c/step");
  events.Condition("Training", "generation 1");
  const std::vector<JobEvent> told = events.Take(record, record.cuts());
  REQUIRE(Reasons(told) == Texts{"Placed", "Training", "CutStarted", "JobState"});
  CHECK(told[0].message == "2 shards on s0, s1, map epoch 0");
  CHECK(told[2].message == "cut 4 at step 100, to /c/step");
  CHECK(told[3].message == "PENDING -> RUNNING");
  CHECK(events.Take(record, record.cuts()).empty());
  // A server in another's place, and a cut that only wants the hash.
  record.mutable_servers(1)->set_name("s2");
  record.mutable_cuts()->add_pending()->set_cut(5);
  CHECK(Reasons(events.Take(record, record.cuts())) == Texts{"Placed", "CutStarted"});
}

TEST_CASE("a server that opens again in its generation", "[job_events]") {
  JobEvents events;
  JobStateRecord record = Pending();
  Place(record, "s0");
  record.mutable_servers(0)->set_opened_generation(1);
  record.mutable_servers(0)->set_opened_session(7);
  events.Take(record, record.cuts());
  record.mutable_servers(0)->set_opened_session(8);
  const std::vector<JobEvent> again = events.Take(record, record.cuts());
  REQUIRE(Reasons(again) == Texts{"ServerReopened"});
  CHECK(again[0].node == "s0");
  // In a new generation it is no recovery of this one.
  record.mutable_servers(0)->set_opened_generation(2);
  record.mutable_servers(0)->set_opened_session(9);
  CHECK(events.Take(record, record.cuts()).empty());
}

TEST_CASE("what a record says was told before its process began", "[job_events]") {
  JobStateRecord record = Pending();
  record.set_state(RUNNING);
  Place(record, "s0");
  record.mutable_servers(0)->set_opened_generation(1);
  record.mutable_servers(0)->set_opened_session(7);
  record.mutable_cuts()->set_next_cut(5);
  record.mutable_cuts()->add_pending()->set_cut(4);
  JobEvents events;
  events.Begin(record);
  CHECK(events.Take(record, record.cuts()).empty());
  record.mutable_cuts()->add_pending()->set_cut(5);
  record.mutable_servers(0)->set_opened_session(8);
  CHECK(Reasons(events.Take(record, record.cuts())) == Texts{"ServerReopened", "CutStarted"});
}

}  // namespace
}  // namespace strata::scheduler
