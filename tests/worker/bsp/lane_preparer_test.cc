#include "worker/bsp/lane_preparer.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "proto/core/position.h"

namespace strata {
namespace {

// Step s of lane l has keys made of both; step 7 of lane 2 is bad.
class Source : public BatchSource {
 public:
  absl::Status Read(Step step, LaneId lane, Batch* out) override {
    if (step == Step(7) && lane == LaneId(2)) return absl::InvalidArgumentError("file:7:1: bad");
    out->Clear();
    for (uint64_t i = 0; i < 5; ++i) {
      out->keys.push_back(Mix64(step.value * 1000 + lane.value * 10 + i % 3));
      out->labels.push_back(1);
      out->offsets.push_back(static_cast<uint32_t>(i + 1));
    }
    out->size = 5;
    return absl::OkStatus();
  }
  absl::Status ReadWindow(TaskId, uint64_t, Batch*) override { return absl::OkStatus(); }
  absl::StatusOr<uint64_t> ReadLines(uint64_t, const BatchLimit&, Batch*) override { return 0; }
  std::string first_bad_line() const override { return ""; }
};

ModelTables Tables() {
  ModelTables tables;
  tables.tables.resize(2);
  tables.tables[0].segments = {{"weight", 1, {}, {}}};
  return tables;
}

std::unique_ptr<LanePreparer> MakePreparer(BatchSource* source, uint32_t depth, uint32_t threads) {
  return LanePreparer::Make({source, Tables(), Step(20), depth, threads});
}

std::vector<uint64_t> Expected(uint64_t step, uint32_t lane) {
  Source source;
  Batch batch;
  REQUIRE(source.Read(Step(step), LaneId(lane), &batch).ok());
  return batch.keys;
}

TEST_CASE("what is prepared depends on step and lane alone", "[lane_preparer]") {
  Source source;
  for (uint32_t depth : {1, 4}) {
    for (uint32_t threads : {1, 3}) {
      const auto preparer = MakePreparer(&source, depth, threads);
      for (uint64_t step = 1; step <= 20; ++step) {
        for (uint32_t lane : {0, 1}) {
          const auto got = preparer->Get(Step(step), lane);
          REQUIRE(got.ok());
          CHECK((*got)->batch.keys == Expected(step, lane));
          CHECK((*got)->routed.keys.size() == 3);
          CHECK((*got)->routed.unique_of.size() == 5);
        }
      }
    }
  }
}

TEST_CASE("a lane may jump ahead, step back, be asked twice and be forgotten", "[lane_preparer]") {
  Source source;
  const auto preparer = MakePreparer(&source, 3, 2);
  for (uint64_t step : {1, 15, 4, 4, 20, 2, 3}) {
    const auto got = preparer->Get(Step(step), 1);
    CHECK(preparer->Ready(Step(step), 1));
    CHECK_FALSE(preparer->Ready(Step(step), 99));
    REQUIRE(got.ok());
    CHECK((*got)->batch.keys == Expected(step, 1));
    if (step != 4) continue;
    preparer->Forget(1);
    CHECK_FALSE(preparer->Ready(Step(step), 1));
  }
}

TEST_CASE("an error comes at its own step and stays there", "[lane_preparer]") {
  Source source;
  const auto preparer = MakePreparer(&source, 4, 1);
  CHECK(preparer->Get(Step(5), 2).ok());
  CHECK(preparer->Get(Step(6), 2).ok());
  for (int i = 0; i < 2; ++i) {
    CHECK(preparer->Get(Step(7), 2).status().message() == "file:7:1: bad");
  }
  CHECK(preparer->Get(Step(8), 2).ok());
}

TEST_CASE("a preparer may go at any time", "[lane_preparer]") {
  Source source;
  for (int i = 0; i < 50; ++i) {
    const auto preparer = MakePreparer(&source, 4, 2);
    if (i % 2 == 0) CHECK(preparer->Get(Step(1), 0).ok());
  }
}

}  // namespace
}  // namespace strata
