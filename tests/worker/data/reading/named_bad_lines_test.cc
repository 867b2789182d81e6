#include "worker/data/reading/named_bad_lines.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "worker/data/reading/batch_source.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

// The place of a batch is the number of its bad lines; beyond 9 there is none.
class Source : public BatchSource {
 public:
  absl::Status Read(Step step, LaneId, Batch* out) override { return Make(step.value, out); }
  absl::Status ReadWindow(TaskId, uint64_t window, Batch* out) override {
    return Make(window, out);
  }
  absl::StatusOr<uint64_t> ReadLines(uint64_t first, const BatchLimit&, Batch* out) override {
    if (absl::Status s = Make(first, out); !s.ok()) return s;
    return 7;
  }
  std::string first_bad_line() const override { return "a:1:2: bad"; }

 private:
  static absl::Status Make(uint64_t bad_lines, Batch* out) {
    if (bad_lines > 9) return absl::OutOfRangeError("no such batch");
    out->Clear();
    out->bad_lines = bad_lines;
    return absl::OkStatus();
  }
};

TEST_CASE("the first bad line is told once, by whatever way it was met", "[data]") {
  std::vector<std::string> told;
  const auto source = NameBadLines(std::make_unique<Source>(),
                                   [&told](const std::string& line) { told.push_back(line); });
  Batch batch;
  REQUIRE(source->Read(Step(0), LaneId(1), &batch).ok());
  REQUIRE(source->ReadWindow(TaskId(3), 0, &batch).ok());
  CHECK(*source->ReadLines(0, {10}, &batch) == 7);
  CHECK(told.empty());
  SECTION("a step") { REQUIRE(source->Read(Step(2), LaneId(1), &batch).ok()); }
  SECTION("a window") { REQUIRE(source->ReadWindow(TaskId(3), 2, &batch).ok()); }
  SECTION("lines in order") { REQUIRE(source->ReadLines(2, {10}, &batch).ok()); }
  CHECK(batch.bad_lines == 2);
  CHECK(told == std::vector<std::string>{"a:1:2: bad"});
  REQUIRE(source->Read(Step(1), LaneId(1), &batch).ok());
  CHECK(told.size() == 1);
  CHECK(source->first_bad_line() == "a:1:2: bad");
}

TEST_CASE("what is not read is not told", "[data]") {
  bool told = false;
  const auto source =
      NameBadLines(std::make_unique<Source>(), [&told](const std::string&) { told = true; });
  Batch batch;
  batch.bad_lines = 3;  // of an earlier use
  CHECK(absl::IsOutOfRange(source->Read(Step(10), LaneId(1), &batch)));
  CHECK(absl::IsOutOfRange(source->ReadWindow(TaskId(3), 10, &batch)));
  CHECK(absl::IsOutOfRange(source->ReadLines(10, {10}, &batch).status()));
  CHECK_FALSE(told);
}

}  // namespace
}  // namespace strata
