#include "worker/async/training_strategy.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace strata {
namespace {

TrainingSpec Downpour(uint32_t n_fetch, uint32_t n_push) {
  TrainingSpec training;
  training.set_mode("downpour");
  training.set_n_fetch(n_fetch);
  training.set_n_push(n_push);
  return training;
}

TrainingSpec Easgd(uint32_t tau) {
  TrainingSpec training;
  training.set_mode("easgd");
  training.set_tau(tau);
  return training;
}

TrainingSpec Async() {
  TrainingSpec training;
  training.set_mode("async");
  return training;
}

std::vector<LaneAction> ActionsOf(TrainingStrategy& strategy, uint64_t batches,
                                  uint64_t first_window) {
  strategy.BeginTask(batches, first_window);
  std::vector<LaneAction> actions;
  do {
    actions.push_back(strategy.Next());
    REQUIRE(actions.size() < 10000);
  } while (actions.back().kind != LaneActionKind::kTaskDone);
  CHECK(strategy.Next().kind == LaneActionKind::kTaskDone);
  return actions;
}

// "P0-4 G0 L0 G1 X0 ...": one word an action.
std::string Words(const TrainingSpec& training, uint64_t batches, uint64_t first_window = 0) {
  const auto strategy = MakeTrainingStrategy(training);
  std::string words;
  for (const LaneAction& a : ActionsOf(*strategy, batches, first_window)) {
    switch (a.kind) {
      case LaneActionKind::kPull:
        absl::StrAppend(&words, "P", a.first, "-", a.end, " ");
        break;
      case LaneActionKind::kGradient:
        absl::StrAppend(&words, "G", a.first, " ");
        break;
      case LaneActionKind::kLocalStep:
        absl::StrAppend(&words, "L", a.first, " ");
        break;
      case LaneActionKind::kPush:
        absl::StrAppend(&words, "U", a.window, " ");
        break;
      case LaneActionKind::kExchange:
        absl::StrAppend(&words, "X", a.window, " ");
        break;
      case LaneActionKind::kWindowDone:
        absl::StrAppend(&words, "W", a.window, " ");
        break;
      case LaneActionKind::kTaskDone:
        absl::StrAppend(&words, ".");
        break;
    }
  }
  return words;
}

TEST_CASE("async and downpour with n = 1 pull and push every batch", "[training_strategy]") {
  const std::string every = "P0-1 G0 U0 W0 P1-2 G1 U1 W1 P2-3 G2 U2 W2 .";
  CHECK(Words(Async(), 3) == every);
  CHECK(Words(Downpour(1, 1), 3) == every);
  CHECK(Words(Async(), 3, 2) == "P2-3 G2 U2 W2 .");
  CHECK(Words(Async(), 3, 3) == ".");
  CHECK(Words(Async(), 0) == ".");
}

TEST_CASE("downpour pulls before every nFetch-th batch and pushes after every nPush-th",
          "[training_strategy]") {
  CHECK(Words(Downpour(2, 2), 5) == "P0-2 G0 L0 G1 U0 W0 P2-4 G2 L2 G3 U1 W1 P4-5 G4 U2 W2 .");
  CHECK(Words(Downpour(3, 1), 4) == "P0-3 G0 L0 U0 W0 G1 L1 U1 W1 G2 U2 W2 P3-4 G3 U3 W3 .");
  CHECK(Words(Downpour(1, 3), 4) == "P0-1 G0 P1-2 G1 P2-3 G2 U0 W0 P3-4 G3 U1 W1 .");
  // Gone on with in the middle: the lane has no copy, so it pulls, and then keeps to the multiples.
  CHECK(Words(Downpour(4, 2), 7, 1) == "P2-4 G2 L2 G3 U1 W1 P4-7 G4 L4 G5 L5 U2 W2 G6 U3 W3 .");
}

TEST_CASE("easgd exchanges before every tau-th local step, and at the end", "[training_strategy]") {
  CHECK(Words(Easgd(2), 4) == "P0-2 G0 L0 G1 L1 P2-4 G2 X0 W0 L2 G3 L3 P4-4 X1 W1 .");
  CHECK(Words(Easgd(2), 3) == "P0-2 G0 L0 G1 L1 P2-3 G2 X0 W0 L2 P3-3 X1 W1 .");
  CHECK(Words(Easgd(1), 2) == "P0-1 G0 L0 P1-2 G1 X0 W0 L1 P2-2 X1 W1 .");
  CHECK(Words(Easgd(4), 2) == "P0-2 G0 L0 G1 L1 P2-2 X0 W0 .");
  // What another lane had exchanged is not exchanged again.
  CHECK(Words(Easgd(2), 4, 1) == "P2-4 G2 L2 G3 L3 P4-4 X1 W1 .");
  CHECK(Words(Easgd(2), 4, 2) == ".");
  CHECK(Words(Easgd(2), 0) == ".");
}

TEST_CASE("each batch has its gradient once, calls are steps / n, windows ascend",
          "[training_strategy]") {
  for (const TrainingSpec& training :
       {Downpour(1, 1), Downpour(4, 4), Downpour(3, 5), Downpour(7, 2), Easgd(1), Easgd(4)}) {
    const bool easgd = training.mode() == "easgd";
    const uint64_t n_pull = easgd ? training.tau() : training.n_fetch();
    const uint64_t n_push = easgd ? training.tau() : training.n_push();
    const auto strategy = MakeTrainingStrategy(training);
    for (uint64_t batches = 1; batches < 40; ++batches) {
      INFO(training.ShortDebugString() << ", " << batches << " batches");
      std::map<LaneActionKind, uint64_t> count;
      uint64_t next_batch = 0, next_window = 0, pulled = 0;
      for (const LaneAction& a : ActionsOf(*strategy, batches, 0)) {
        ++count[a.kind];
        if (a.kind == LaneActionKind::kPull) pulled = a.end;
        if (a.kind == LaneActionKind::kGradient) {
          CHECK(a.first == next_batch++);
          CHECK(a.first < pulled);
        }
        if (a.kind == LaneActionKind::kWindowDone) CHECK(a.window == next_window++);
      }
      CHECK(next_batch == batches);
      CHECK(next_window == (batches + n_push - 1) / n_push);
      CHECK(count[LaneActionKind::kPush] + count[LaneActionKind::kExchange] == next_window);
      CHECK(count[LaneActionKind::kPull] == (batches + n_pull - 1) / n_pull + (easgd ? 1 : 0));
      if (easgd) CHECK(count[LaneActionKind::kLocalStep] == batches);
    }
  }
}

TEST_CASE("a task that was given up leaves nothing behind", "[training_strategy]") {
  const auto strategy = MakeTrainingStrategy(Easgd(2));
  strategy->BeginTask(10, 0);
  for (int i = 0; i < 7; ++i) strategy->Next();
  const auto fresh = MakeTrainingStrategy(Easgd(2));
  CHECK(ActionsOf(*strategy, 6, 1) == ActionsOf(*fresh, 6, 1));
}

TEST_CASE("windows end with their task, whatever number they have", "[training_strategy]") {
  CHECK(BatchesOfWindows(0, 4, 10) == 0);
  CHECK(BatchesOfWindows(2, 4, 10) == 8);
  CHECK(BatchesOfWindows(3, 4, 10) == 10);
  CHECK(BatchesOfWindows(2, 4, 8) == 8);
  CHECK(BatchesOfWindows(1, 4, 0) == 0);
  for (const uint64_t windows : {uint64_t{1} << 62, uint64_t{1} << 63, ~uint64_t{0}}) {
    CHECK(BatchesOfWindows(windows, 4, 10) == 10);
    CHECK(BatchesOfWindows(windows, 1, ~uint64_t{0}) == windows);
  }
}

}  // namespace
}  // namespace strata
