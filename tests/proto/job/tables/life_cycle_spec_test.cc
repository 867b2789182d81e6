#include "proto/job/tables/life_cycle_spec.h"

#include <google/protobuf/util/message_differencer.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"

namespace strata::spec {
namespace {

absl::Status Resolve(LifeCycleSpec& l, const std::string& mode = "bsp") {
  TrainingSpec training;
  training.set_mode(mode);
  StorageSpec storage;
  storage.set_partitions(64);
  return ResolveLifeCycle(training, storage, l);
}

std::string Problem(const std::function<void(AdmissionSpec&, RemovalSpec&)>& change,
                    const std::string& mode = "bsp") {
  LifeCycleSpec l;
  change(*l.mutable_admission(), *l.mutable_removal());
  const absl::Status s = Resolve(l, mode);
  if (!s.ok()) CHECK(absl::IsInvalidArgument(s));
  return s.ok() ? "OK" : std::string(s.message());
}

TEST_CASE("an empty life cycle does nothing", "[job_spec][life_cycle]") {
  LifeCycleSpec l;
  CHECK(MakeLifeCycleRules(l, 64).value() == LifeCycleRules{});  // not given at all
  REQUIRE(Resolve(l).ok());
  const auto rules = MakeLifeCycleRules(l, 64);
  REQUIRE(rules.ok());
  CHECK(rules->admission.type == AdmissionType::kAlways);
  CHECK_FALSE(rules->removal.any());
  CHECK_FALSE(rules->scored());
}

TEST_CASE("what is given becomes rules, and resolves again to the same", "[job_spec][life_cycle]") {
  LifeCycleSpec l;
  l.mutable_admission()->set_type("counting");
  l.mutable_admission()->set_min_steps(5);
  l.mutable_admission()->set_filter_bytes("1MiB");
  RemovalSpec& r = *l.mutable_removal();
  r.set_every_steps(10);
  r.set_ttl_steps(100);
  r.mutable_count()->set_below(3);
  r.mutable_count()->set_idle_steps(50);
  r.mutable_score()->set_below(0.8f);
  r.mutable_norm()->set_below(0.25f);
  r.set_bytes_per_partition("2KiB");
  REQUIRE(Resolve(l).ok());
  LifeCycleSpec again = l;
  REQUIRE(Resolve(again).ok());
  CHECK(google::protobuf::util::MessageDifferencer::Equals(l, again));
  const auto rules = MakeLifeCycleRules(l, 64);
  REQUIRE(rules.ok());
  CHECK(rules->admission == AdmissionRules{AdmissionType::kCounting, 5, 1.0f, (1 << 20) / 64});
  const RemovalRules& removal = rules->removal;
  CHECK(removal.every_steps == 10);
  CHECK(removal.ttl_steps == 100);
  CHECK(removal.count_below == 3);
  CHECK(removal.count_idle_steps == 50);
  CHECK(removal.scored);
  CHECK(removal.score_below == 0.8f);
  CHECK(removal.show_weight == 0.1f);
  CHECK(removal.click_weight == 1.0f);
  CHECK(removal.decay == 0.98f);
  CHECK(removal.decay_steps == 1000);
  CHECK(removal.norm_below == 0.25f);
  CHECK(removal.partition_bytes == 2048);
}

TEST_CASE("mistakes are named with the field, the value and what to do", "[job_spec][life_cycle]") {
  CHECK(Problem([](auto& a, auto&) { a.set_type("bloom"); }) ==
        "spec.lifeCycle.admission.type: 'bloom' is not one of: always, exact, counting, "
        "probability");
  CHECK(Problem([](auto& a, auto&) { a.set_type("exact"); }) ==
        "spec.lifeCycle.admission.minSteps: is missing; give the steps that must touch a feature, "
        "2 to 255");
  CHECK(Problem([](auto& a, auto&) { a.set_min_steps(3); }) ==
        "spec.lifeCycle.admission.minSteps: is for type exact, counting, and the type is always; "
        "remove it or change spec.lifeCycle.admission.type");
  const auto counting = [](AdmissionSpec& a) {
    a.set_type("counting");
    a.set_min_steps(3);
  };
  CHECK(Problem([&](auto& a, auto&) { counting(a); }) == "OK");
  for (const uint32_t steps : {0u, 1u, 256u}) {
    CHECK(Problem([&](auto& a, auto&) {
            counting(a);
            a.set_min_steps(steps);
          }) != "OK");
  }
  CHECK(Problem([&](auto& a, auto&) {
          counting(a);
          a.set_filter_bytes("63KiB");
        }) != "OK");  // 64 partitions
  CHECK(Problem([&](auto& a, auto&) {
          counting(a);
          a.set_filter_bytes("64KiB");
        }) == "OK");
  for (const float p : {0.0f, -1.0f, 1.5f, NAN}) {
    CHECK(Problem([&](auto& a, auto&) {
            a.set_type("probability");
            a.set_probability(p);
          }) != "OK");
  }
  CHECK(Problem([](auto&, auto& r) { r.mutable_count()->set_below(3); }) ==
        "spec.lifeCycle.removal.count.idleSteps: is missing; give a number of steps");
  CHECK(Problem([](auto&, auto& r) { r.mutable_norm(); }) ==
        "spec.lifeCycle.removal.norm.below: is missing; give the least norm of a row");
  CHECK(Problem([](auto&, auto& r) { r.set_every_steps(0); }) != "OK");
  CHECK(Problem([](auto&, auto& r) { r.set_bytes_per_partition("many"); }) != "OK");
  const auto scored = [](auto&, RemovalSpec& r) { r.mutable_score()->set_below(1); };
  CHECK(Problem(scored) == "OK");
  CHECK(Problem(scored, "downpour") == "OK");
  CHECK(Problem(scored, "easgd").find("spec.training.mode easgd") != std::string::npos);
  CHECK(Problem([](auto&, auto& r) {
          r.mutable_score()->set_below(1);
          r.mutable_score()->set_decay(0);
        }) != "OK");
}

TEST_CASE("clicks are of a binary label", "[job_spec][life_cycle]") {
  JobSpec job;
  job.mutable_life_cycle()->mutable_removal()->mutable_score()->set_below(1);
  REQUIRE(Resolve(*job.mutable_life_cycle()).ok());
  CHECK(CheckClicks(job).ok());  // without spec.labels it is binary
  for (const char* kind : {"binary", "real"}) {
    LabelConfig& label = *job.add_labels();
    label.set_name(kind);
    label.set_kind(kind);
  }
  CHECK(CheckClicks(job).ok());
  job.mutable_labels()->SwapElements(0, 1);
  CHECK(CheckClicks(job).message() ==
        "spec.lifeCycle.removal.score.clickWeight: clicks are lines whose first label is 1, and "
        "label 'real' is of kind real; put a binary label first, or set clickWeight to 0");
  *job.add_tables()->mutable_life_cycle() = job.life_cycle();
  job.mutable_life_cycle()->mutable_removal()->mutable_score()->set_click_weight(0);
  CHECK(std::string(CheckClicks(job).message()).find("spec.tables[0].lifeCycle.removal.score") ==
        0);
  *job.mutable_tables(0)->mutable_life_cycle() = job.life_cycle();
  CHECK(CheckClicks(job).ok());
}

}  // namespace
}  // namespace strata::spec
