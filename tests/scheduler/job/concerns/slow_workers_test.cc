// Which of a job's workers are stragglers.
#include "scheduler/job/concerns/slow_workers.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"

namespace strata::scheduler {
namespace {

class Workers {
 public:
  // All report each second for `span`; by name: seconds of work on an example.
  void Pass(absl::Duration span, const std::map<std::string, double>& seconds,
            uint64_t examples = 1000) {
    for (const absl::Time end = now_ + span; now_ < end;) {
      now_ += absl::Seconds(1);
      for (const auto& [name, each] : seconds) {
        examples_[name] += examples;
        worked_[name] += each * static_cast<double>(examples);
        slow_.OnReport(name, examples_[name], worked_[name], now_);
      }
    }
  }
  void Restart(const std::string& name) { examples_[name] = 0, worked_[name] = 0; }
  std::string Names() const {
    std::string names;
    for (const auto& slow : slow_.Find(now_)) names += slow.name + " ";
    return names;
  }
  const SlowWorkers& slow() const { return slow_; }
  absl::Time now() const { return now_; }

 private:
  SlowWorkers slow_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  std::map<std::string, uint64_t> examples_;
  std::map<std::string, double> worked_;
};

TEST_CASE("the worker that works longest on an example is the straggler", "[slow_workers]") {
  Workers workers;
  workers.Pass(absl::Minutes(1), {{"a", .001}, {"b", .001}, {"c", .0012}});
  CHECK(workers.Names().empty());
  workers.Pass(SlowWorkers::kSpan * 2, {{"a", .001}, {"b", .003}, {"c", .0012}});
  REQUIRE(workers.Names() == "b ");
  const auto slow = workers.slow().Find(workers.now());
  CHECK(slow[0].seconds == Approx(.003));
  CHECK(slow[0].others == Approx(.001));
  workers.Pass(SlowWorkers::kSpan * 2, {{"a", .001}, {"b", .001}, {"c", .0012}});
  CHECK(workers.Names().empty());
}

TEST_CASE("of two workers the slower one is told, of one nobody", "[slow_workers]") {
  Workers two;
  two.Pass(absl::Minutes(1), {{"a", .001}, {"b", .0021}});
  CHECK(two.Names() == "b ");
  Workers one;
  one.Pass(absl::Minutes(1), {{"a", .001}});
  CHECK(one.Names().empty());
}

TEST_CASE("a worker that has just begun, or began anew, has no speed yet", "[slow_workers]") {
  Workers workers;
  workers.Pass(absl::Minutes(1), {{"a", .001}, {"b", .001}});
  workers.Restart("b");
  workers.Pass(SlowWorkers::kSpan / 4, {{"a", .001}, {"b", .1}});
  CHECK(workers.Names().empty());
  workers.Pass(SlowWorkers::kSpan, {{"a", .001}, {"b", .1}});
  CHECK(workers.Names() == "b ");
}

TEST_CASE("a worker that stands for an evaluation is no straggler, nor the one that waits for it",
          "[slow_workers]") {
  Workers workers;
  workers.Pass(absl::Minutes(1), {{"a", .001}, {"b", .001}});
  workers.Pass(absl::Minutes(2), {{"a", .001}, {"b", .001}}, 0);
  CHECK(workers.Names().empty());
  workers.Pass(absl::Minutes(1), {{"a", .001}, {"b", .001}});
  CHECK(workers.Names().empty());
}

TEST_CASE("who is not heard any more has no speed", "[slow_workers]") {
  Workers workers;
  workers.Pass(absl::Minutes(1), {{"a", .001}, {"b", .01}});
  CHECK(workers.Names() == "b ");
  workers.Pass(absl::Minutes(1), {{"a", .001}});
  CHECK(workers.Names().empty());
}

}  // namespace
}  // namespace strata::scheduler
