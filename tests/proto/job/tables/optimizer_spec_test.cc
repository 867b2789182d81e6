#include "proto/job/tables/optimizer_spec.h"

#include <google/protobuf/util/message_differencer.h>

#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "proto/core/table_spec.h"
#include "proto/job/tables/make_optimizer.h"
#include "proto/strata/job.pb.h"

namespace strata::spec {
namespace {

ModelSpec Model(const std::string& type) {
  ModelSpec model;
  model.set_type(type);
  return model;
}

std::string Problem(const std::string& model, const std::function<void(OptimizersSpec&)>& change) {
  OptimizersSpec o;
  change(o);
  const absl::Status status = ResolveOptimizers(Model(model), o);
  return status.ok() ? "OK" : std::string(status.message());
}

std::string SparseProblem(const std::string& type,
                          const std::function<void(OptimizerConfig&)>& change) {
  return Problem("fm", [&](OptimizersSpec& o) {
    o.mutable_sparse()->set_type(type);
    change(*o.mutable_sparse());
  });
}

OptimizersSpec Resolved(const std::string& model, OptimizersSpec o = {}) {
  REQUIRE(ResolveOptimizers(Model(model), o).ok());
  return o;
}

const char* const kTypes[] = {"sgd", "momentum", "adagrad", "rowwise_adagrad", "adam", "ftrl"};

TEST_CASE("every type resolves, again to the same, and becomes values", "[job_spec][optimizer]") {
  for (const char* type : kTypes) {
    for (const char* schedule : {"constant", "step", "cosine", "poly"}) {
      INFO(type << " " << schedule);
      OptimizersSpec o;
      o.mutable_sparse()->set_type(type);
      o.mutable_sparse()->mutable_schedule()->set_type(schedule);
      if (std::string(schedule) != "constant") {
        o.mutable_sparse()->mutable_schedule()->set_decay_steps(7);
      }
      const OptimizersSpec once = Resolved("fm", o);
      CHECK(google::protobuf::util::MessageDifferencer::Equals(once, Resolved("fm", once)));
      CHECK(once.linear().type() == type);
      CHECK(MakeOptimizer("f", once.sparse()).ok());
    }
  }
  OptimizerConfig add;
  add.set_type("add");
  CHECK_FALSE(MakeOptimizer("f", add).ok());
  CHECK(SparseProblem("add", [](OptimizerConfig&) {}) ==
        "spec.optimizer.sparse.type: 'add' is not one of: sgd, momentum, adagrad, "
        "rowwise_adagrad, adam, ftrl");
}

TEST_CASE("values reach the rows' optimizer", "[job_spec][optimizer]") {
  OptimizerConfig c;
  c.set_type("ftrl");
  c.set_learning_rate(0.25f);
  c.set_beta(2);
  c.set_l1(3);
  c.set_l2(4);
  c.set_clip_norm(5);
  c.set_clip_value(6);
  c.mutable_schedule()->set_type("poly");
  c.mutable_schedule()->set_warmup_steps(7);
  c.mutable_schedule()->set_decay_steps(8);
  c.mutable_schedule()->set_power(9);
  c.mutable_schedule()->set_final_factor(0.5f);
  OptimizersSpec o;
  *o.mutable_linear() = c;
  const auto made = MakeOptimizer("f", Resolved("deepfm", o).linear());
  REQUIRE(made.ok());
  OptimizerSpec expected;
  expected.type = OptimizerType::kFtrl;
  expected.learning_rate = 0.25f;
  expected.beta = 2;
  expected.l1 = 3;
  expected.l2 = 4;
  expected.clip_norm = 5;
  expected.clip_value = 6;
  expected.schedule = {ScheduleType::kPoly, 7, 8, 0.0f, 9, 0.5f};
  // What the type does not read is 0 in a job.
  expected.epsilon = expected.beta1 = expected.beta2 = expected.momentum = 0.0f;
  CHECK(*made == expected);

  c.Clear();
  c.set_type("momentum");
  c.set_momentum(0.5f);
  c.set_nesterov(true);
  c.set_weight_decay(0.125f);
  c.mutable_schedule()->set_type("step");
  c.mutable_schedule()->set_decay_steps(3);
  c.mutable_schedule()->set_gamma(0.75f);
  o.Clear();
  *o.mutable_sparse() = c;
  const auto sparse = MakeOptimizer("f", Resolved("lr", o).sparse());
  REQUIRE(sparse.ok());
  CHECK(sparse->type == OptimizerType::kMomentum);
  CHECK(sparse->learning_rate == 0.01f);
  CHECK(sparse->momentum == 0.5f);
  CHECK(sparse->nesterov);
  CHECK(sparse->weight_decay == 0.125f);
  CHECK(sparse->schedule.type == ScheduleType::kStep);
  CHECK(sparse->schedule.decay_steps == 3);
  CHECK(sparse->schedule.gamma == 0.75f);
}

TEST_CASE("linear is as sparse but for what it gives", "[job_spec][optimizer]") {
  OptimizersSpec o;
  o.mutable_sparse()->set_learning_rate(0.5f);
  o.mutable_sparse()->set_clip_norm(3);
  OptimizersSpec r = Resolved("fm", o);
  CHECK(google::protobuf::util::MessageDifferencer::Equals(r.linear(), r.sparse()));
  o.mutable_linear()->set_learning_rate(0.25f);
  r = Resolved("fm", o);
  CHECK(r.linear().type() == "adagrad");
  CHECK(r.linear().learning_rate() == 0.25f);
  CHECK(r.linear().clip_norm() == 3);
  o.mutable_linear()->set_type("ftrl");  // its own type: its own defaults
  r = Resolved("wide_deep", o);
  CHECK(r.linear().learning_rate() == 0.25f);
  CHECK(r.linear().clip_norm() == 0);
  CHECK(r.linear().l1() == 1);
  CHECK_FALSE(Resolved("lr").has_linear());
  CHECK_FALSE(Resolved("dlrm").has_linear());
  const auto linear = [](OptimizersSpec& s) { s.mutable_linear()->set_type("ftrl"); };
  CHECK(Problem("lr", linear) ==
        "spec.optimizer.linear: is for the weights that fm, wide_deep and deepfm have beside "
        "embeddings, and spec.model.type is lr; remove it and set spec.optimizer.sparse");
  CHECK(Problem("dcn_v2", linear) != "OK");
  CHECK(Problem("fm", [](OptimizersSpec& s) { s.mutable_linear()->set_l1(1); }) ==
        "spec.optimizer.linear.l1: is for type ftrl, and the type is adagrad; remove it or change "
        "spec.optimizer.linear.type");
}

TEST_CASE("fields of other types are told", "[job_spec][optimizer]") {
  CHECK(SparseProblem("adagrad", [](OptimizerConfig& o) { o.set_l1(0.5f); }) ==
        "spec.optimizer.sparse.l1: is for type ftrl, and the type is adagrad; remove it or change "
        "spec.optimizer.sparse.type");
  CHECK(SparseProblem("sgd", [](OptimizerConfig& o) { o.set_epsilon(0.5f); }) ==
        "spec.optimizer.sparse.epsilon: is for type adagrad, rowwise_adagrad, adam, and the type "
        "is sgd; remove it or change spec.optimizer.sparse.type");
  CHECK(SparseProblem("adam", [](OptimizerConfig& o) { o.set_nesterov(true); }) ==
        "spec.optimizer.sparse.nesterov: is for type momentum, and the type is adam; remove it or "
        "change spec.optimizer.sparse.type");
  CHECK(SparseProblem("ftrl", [](OptimizerConfig& o) { o.set_weight_decay(0.1f); }) ==
        "spec.optimizer.sparse.weightDecay: is not for type ftrl, which has l2 for that; remove it "
        "and set spec.optimizer.sparse.l2");
}

TEST_CASE("limits of optimizers are told", "[job_spec][optimizer]") {
  CHECK(SparseProblem("momentum", [](OptimizerConfig& o) { o.set_momentum(1.0f); }) ==
        "spec.optimizer.sparse.momentum: 1 is outside the limits; give a number of at least 0 and "
        "below 1");
  CHECK(SparseProblem("ftrl", [](OptimizerConfig& o) { o.set_beta(0.0f); }) ==
        "spec.optimizer.sparse.beta: 0 is outside the limits; give a number above 0 and below "
        "1e+06");
  CHECK(SparseProblem("ftrl", [](OptimizerConfig& o) { o.set_l2(-1.0f); }) ==
        "spec.optimizer.sparse.l2: -1 is outside the limits; give a number of at least 0 and below "
        "1e+06");
  for (const float bad : {-1.0f, 1.0f / 0.0f, 0.0f / 0.0f}) {
    CHECK(SparseProblem("sgd", [&](OptimizerConfig& o) { o.set_clip_norm(bad); }) != "OK");
    CHECK(SparseProblem("sgd", [&](OptimizerConfig& o) { o.set_clip_value(bad); }) != "OK");
    CHECK(SparseProblem("sgd", [&](OptimizerConfig& o) { o.set_weight_decay(bad); }) != "OK");
    CHECK(SparseProblem("ftrl", [&](OptimizerConfig& o) { o.set_l1(bad); }) != "OK");
  }
}

TEST_CASE("schedules are checked", "[job_spec][optimizer]") {
  const auto schedule = [](const std::string& type,
                           const std::function<void(ScheduleSpec&)>& change) {
    return SparseProblem("adam", [&](OptimizerConfig& o) {
      o.mutable_schedule()->set_type(type);
      o.mutable_schedule()->set_decay_steps(10);
      change(*o.mutable_schedule());
    });
  };
  CHECK(schedule("linear", [](ScheduleSpec&) {}) ==
        "spec.optimizer.sparse.schedule.type: 'linear' is not one of: constant, step, cosine, "
        "poly");
  CHECK(schedule("cosine", [](ScheduleSpec& s) { s.clear_decay_steps(); }) ==
        "spec.optimizer.sparse.schedule.decaySteps: is missing; type cosine needs the steps that "
        "the descent takes");
  CHECK(schedule("step", [](ScheduleSpec& s) { s.clear_decay_steps(); }) ==
        "spec.optimizer.sparse.schedule.decaySteps: is missing; type step needs the steps between "
        "two falls of the rate");
  CHECK(schedule("poly", [](ScheduleSpec& s) { s.set_decay_steps(0); }) ==
        "spec.optimizer.sparse.schedule.decaySteps: 0 is outside the limits; give a number from 1 "
        "to 1000000000000");
  CHECK(schedule("constant", [](ScheduleSpec&) {}) ==
        "spec.optimizer.sparse.schedule.decaySteps: is for type step, cosine, poly, and the type "
        "is constant; remove it or change spec.optimizer.sparse.schedule.type");
  CHECK(schedule("cosine", [](ScheduleSpec& s) { s.set_power(2); }) ==
        "spec.optimizer.sparse.schedule.power: is for type poly, and the type is cosine; remove it "
        "or change spec.optimizer.sparse.schedule.type");
  CHECK(schedule("step", [](ScheduleSpec& s) { s.set_gamma(1.5f); }) ==
        "spec.optimizer.sparse.schedule.gamma: 1.5 is outside the limits; give a number above 0 "
        "and at most 1");
  CHECK(schedule("step", [](ScheduleSpec& s) { s.set_gamma(1.0f); }) == "OK");
  CHECK(schedule("poly", [](ScheduleSpec& s) { s.set_final_factor(-0.5f); }) ==
        "spec.optimizer.sparse.schedule.finalFactor: -0.5 is outside the limits; give a number "
        "from 0 to 1");
  CHECK(schedule("poly", [](ScheduleSpec& s) { s.set_final_factor(0.0f / 0.0f); }) != "OK");
  CHECK(schedule("poly", [](ScheduleSpec& s) { s.set_power(0.0f); }) ==
        "spec.optimizer.sparse.schedule.power: 0 is outside the limits; give a number above 0 and "
        "below 100");
  CHECK(schedule("poly", [](ScheduleSpec& s) { s.set_warmup_steps(~uint64_t{0}); }) != "OK");
}

}  // namespace
}  // namespace strata::spec
