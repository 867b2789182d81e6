// The dlrm bar's input: keys where they belong, skewed as wanted, the same whenever they are asked
// for.
#include "tools/gpu/dlrm/data.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <vector>

#include "ops/parallel.h"
#include "proto/core/ids.h"
#include "worker/data/reading/batch_source.h"

namespace strata::gpu_check {
namespace {

DlrmDataOptions Options(double zipf) {
  DlrmDataOptions options;
  options.batch = 500;
  options.fields = 3;
  options.numeric = 2;
  options.field_rows = 1000;
  options.zipf = zipf;
  options.seed = 7;
  return options;
}

bool Same(const Batch& a, const Batch& b) {
  return a.size == b.size && a.labels == b.labels && a.dense == b.dense && a.keys == b.keys &&
         a.offsets == b.offsets;
}

TEST_CASE("an example has its numbers, and a key of each field", "[gpu_check]") {
  const Batch batch = MakeDlrmBatch(Options(1.05), 3);
  CHECK(batch.size == 500);
  CHECK(batch.numeric == 2);
  REQUIRE(batch.keys.size() == 1500);
  REQUIRE(batch.offsets.size() == 501);
  REQUIRE(batch.dense.size() == 1000);
  REQUIRE(batch.labels.size() == 500);
  for (size_t i = 0; i < batch.keys.size(); ++i) {
    if (batch.keys[i] / 1000 != i % 3) FAIL("key " << batch.keys[i] << " at " << i);
  }
  for (size_t e = 0; e <= 500; ++e) CHECK(batch.offsets[e] == 3 * e);
  for (const float x : batch.dense) CHECK((0 <= x && x < 1));
  const auto positives = std::count(batch.labels.begin(), batch.labels.end(), 1.0f);
  CHECK(positives > 80);
  CHECK(positives < 180);
  CHECK(batch.values.empty());
  CHECK(batch.fields.empty());
}

TEST_CASE("values come by Zipf's law, or all alike", "[gpu_check]") {
  // Of the continuous law with exponent 1.05 over 1000 values the first has a share of 12 %.
  std::map<uint64_t, int> counts;
  for (const uint64_t key : MakeDlrmBatch(Options(1.05), 1).keys) ++counts[key % 1000];
  CHECK(counts[0] > 1500 * 0.09);
  CHECK(counts[0] < 1500 * 0.15);
  CHECK(counts[0] > counts[1]);
  CHECK(counts.rbegin()->first > 500);  // and the last ones come too

  DlrmDataOptions many = Options(0);
  many.batch = 20000;
  std::map<uint64_t, int> alike;
  for (const uint64_t key : MakeDlrmBatch(many, 1).keys) ++alike[key % 1000];
  CHECK(alike.size() == 1000);
  for (const auto& [value, count] : alike) {
    if (count < 20 || count > 110) FAIL("value " << value << " came " << count << " times");
  }
  CHECK(DistinctKeys(MakeDlrmBatch(many, 1)) == 3000);
  CHECK(DistinctKeys(MakeDlrmBatch(Options(1.05), 1)) < 900);
}

TEST_CASE("batches are functions of seed and step", "[gpu_check]") {
  CHECK(Same(MakeDlrmBatch(Options(1.05), 3), MakeDlrmBatch(Options(1.05), 3)));
  CHECK(MakeDlrmBatch(Options(1.05), 3).keys != MakeDlrmBatch(Options(1.05), 4).keys);
  DlrmDataOptions other = Options(1.05);
  other.seed = 8;
  CHECK(MakeDlrmBatch(Options(1.05), 3).keys != MakeDlrmBatch(other, 3).keys);
}

TEST_CASE("a source gives what was made ahead, and makes what was not", "[gpu_check]") {
  const auto parallel = ops::MakeParallel(2);
  const auto data = MakeDlrmData(Options(1.05), 10, 3, parallel.get());
  const auto source = data->Open({}, {}, {});
  REQUIRE(source.ok());
  for (const uint64_t step : {11, 10, 12, 11, 9, 13, 11}) {
    INFO("step " << step);
    Batch batch;
    REQUIRE((*source)->Read(Step(step), LaneId(0), &batch).ok());
    CHECK(Same(batch, MakeDlrmBatch(Options(1.05), step)));
  }
  Batch batch;
  CHECK_FALSE((*source)->ReadWindow(TaskId(0), 0, &batch).ok());
  CHECK_FALSE((*source)->ReadLines(0, {1}, &batch).ok());

  const InputIndex index = DlrmIndex(Options(1.05), (1u << 20) + 5);
  CHECK(index.lines() == (1u << 20) + 5);
  REQUIRE(index.tasks_size() == 2);
  CHECK(index.tasks(1).lines() == 5);
  CHECK(index.shape().fields() == 3);
  CHECK(index.shape().numeric() == 2);
}

}  // namespace
}  // namespace strata::gpu_check
