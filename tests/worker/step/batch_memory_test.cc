#include "worker/step/batch_memory.h"

#include <malloc.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/job/tables/model_tables.h"
#include "tests/heap_bytes.h"
#include "worker/data/formats/libffm_parser.h"
#include "worker/data/formats/line_parser.h"
#include "worker/step/batch.h"
#include "worker/step/router.h"

namespace strata {
namespace {

using testing::HeapBytes;

constexpr uint32_t kFields = 4;

// One hashed table, or two that fields take in turn.
ModelTables Tables(bool several) {
  ModelTables t;
  t.fields = kFields;
  for (uint32_t i = 0; i < (several ? 3u : 2u); ++i) {
    TableSpec& table = t.tables.emplace_back();
    table.id = TableId(i);
    table.kind = i == 1 ? TableKind::kDense : TableKind::kHashed;
    table.segments = {{"embedding", 4, {}, {}}};
  }
  if (several) t.field_tables = {0, 2, 0, 2};
  return t;
}

// Lines of very different lengths: of a hundred one has `most` features, the others up to 40.
std::vector<std::string> RaggedLines(size_t lines, uint64_t most, uint64_t seed) {
  uint64_t x = seed;
  const auto below = [&x](uint64_t n) {
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    return (x >> 33) % n;
  };
  std::vector<std::string> out;
  for (size_t i = 0; i < lines; ++i) {
    std::string line = std::to_string(i % 2);
    for (uint64_t f = i % 100 == 7 ? most : below(40); f > 0; --f) {
      line += " " + std::to_string(below(kFields)) + ":" + std::to_string(below(300'000)) + ":.5";
    }
    out.push_back(line);
  }
  return out;
}

// What batches leave in one batch and in what routes it; `counts` are the most of them.
struct Held {
  uint64_t batch = 0, routed = 0, router = 0;
  BatchCounts counts;
  uint64_t bad = 0;  // lines; checked at the end, as each check takes memory, too
};
Held Hold(const ModelTables& tables, const std::vector<std::vector<std::string>>& batches) {
  const auto parser = MakeLibffmParser(kFields);
  Held held;
  // The first time fills malloc's own lists of free blocks.
  for (int time = 0; time < 2; ++time) {
    const uint64_t before = HeapBytes();
    Batch batch;
    RoutedKeys routed;
    Router router;
    for (const std::vector<std::string>& lines : batches) {
      parser->Start(&batch);
      LineError error;
      for (const std::string& line : lines) {
        held.bad += parser->Parse(line, &batch, &error) != LineOutcome::kExample;
      }
      LineParser::Finish(&batch);
      router.Route(tables, batch, &routed);
      held.counts.examples = std::max<uint64_t>(held.counts.examples, batch.size);
      held.counts.features = std::max<uint64_t>(held.counts.features, batch.keys.size());
      held.counts.keys = std::max<uint64_t>(held.counts.keys, routed.keys.size());
    }
    const uint64_t all = HeapBytes();
    router = Router();
    const uint64_t without_router = HeapBytes();
    routed = RoutedKeys();
    const uint64_t alone = HeapBytes();
    held.router = all - without_router;
    held.routed = without_router - alone;
    held.batch = alone - before;
  }
  return held;
}

void Check(const char* what, uint64_t told, uint64_t taken) {
  constexpr uint64_t kLists = 4096;  // malloc's own of each block, and lists of runs
  INFO(what << ": told " << told << ", taken " << taken);
  CHECK(told + kLists >= taken);
  CHECK(told <= 3 * taken);
}

TEST_CASE("batches of ragged lines take no more than was told", "[step][memory]") {
  // Blocks with a mapping of their own would count by whole pages.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  for (const bool several : {false, true}) {
    const ModelTables tables = Tables(several);
    const std::vector<std::string> shorter = RaggedLines(900, 500, 1),
                                   longer = RaggedLines(901, 620, 2),
                                   longest = RaggedLines(1024, 3000, 3);
    const std::vector<std::vector<std::vector<std::string>>> orders = {
        {longest}, {shorter, longer}, {shorter, longer, longest}, {longest, shorter, longer}};
    for (const auto& batches : orders) {
      INFO("several tables: " << several << ", batches " << batches.size());
      const Held held = Hold(tables, batches);
      CHECK(held.bad == 0);
      Check("batch", MemoryOfBatch(tables, held.counts), held.batch);
      Check("routed keys", MemoryOfRoutedKeys(held.counts), held.routed);
      Check("router", MemoryOfRouter(tables, held.counts), held.router);
    }
  }
}

}  // namespace
}  // namespace strata
