// Lines that are scored at a time follow from who computes.
#include "worker/train/model_source.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/worker/models/problem.h"
#include "worker/models/model_memory.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

bool Same(const BatchLimit& a, const BatchLimit& b) {
  return a.lines == b.lines && a.features == b.features && a.least == b.least;
}

BatchLimit Scored(const ModelTables& tables, const std::string& device, uint32_t batch_size) {
  ModelSourceOptions options;
  options.tables = &tables;
  options.worker.set_device(device);
  options.worker.set_precision("fp32");
  options.batch_size = batch_size;
  options.evaluates = true;
  const auto models = ModelSource::Make(options);
  INFO(models.status());
  REQUIRE(models.ok());
  return (*models)->scored();
}

TEST_CASE("a device scores whole batches, the CPU what its memory takes", "[models][device]") {
  testing::Shape shape = {"din", 4, 0, 8, {8}, 10, 10, false};
  shape.sequences = 1;
  shape.attention_hidden = {8};
  testing::Problem p(shape, 1);
  p.tables.sequences[0].max_length = 1000;
  const uint64_t lines = ScoredAtATime(p.tables).lines;
  CHECK(lines < 400);
  for (const uint32_t batch : {16u, 400u}) {
    CHECK(Same(Scored(p.tables, "cpu", batch), ScoredAtATime(p.tables)));
    const BatchLimit host = Scored(p.tables, "host", batch);
    CHECK(Same(host, ScoredOnDevice(p.tables, batch)));
    CHECK(host.lines % batch == 0);
    CHECK(host.least == batch);
  }
}

}  // namespace
}  // namespace strata
