// What a server tells the scheduler of a job's shards.
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <string>

#include "proto/core/ids.h"
#include "proto/core/table_spec.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "storage/checkpoint/shard_file.h"
#include "tests/server/job/bench.h"
#include "tests/server/shard/shard_fixture.h"
#include "tests/temp_folder.h"

namespace strata::server {
namespace {

TEST_CASE("a report tells the rows of each table of each shard", "[service]") {
  const TempFolder folder;
  JobBench bench(1);
  bench.Start();
  REQUIRE(bench.OpenSession().ok());
  const auto report = [&] { return bench.service_.Find(JobId(1))->Report(); };
  const ServerJobReport before = report();
  CHECK(before.shards_size() == 3);
  for (const ShardReport& shard : before.shards()) {
    REQUIRE(shard.tables_size() == 2);
    CHECK(shard.tables(0).rows() + shard.tables(1).rows() == 0);
  }
  for (uint64_t step = 1; step <= 5; ++step) REQUIRE(bench.PushStep(8, step, {{0, 1}}).ok());
  // The files of a checkpoint say the same.
  bench.Checkpoint(5, folder.path());
  const ServerJobReport told = report();
  REQUIRE(told.cuts(0).files_size() == told.shards_size());
  std::map<std::string, uint64_t> sums;
  uint64_t rows = 0;
  for (const CheckpointFile& f : told.cuts(0).files()) {
    const auto file = storage::ShardFileReader::Open(folder.path() + "/" + f.name());
    REQUIRE(file.ok());
    const ShardReport& shard = told.shards(static_cast<int>((*file)->header().shard.value));
    REQUIRE(shard.tables_size() == 2);
    uint64_t of_shard = 0;
    for (const TableSpec& table : TestTables()) {
      const TableRows& t = shard.tables(static_cast<int>(table.id.value));
      CHECK(t.table() == table.name);
      CHECK(t.rows() == (*file)->rows(table.id));
      sums[t.table()] += t.rows();
      of_shard += t.rows();
    }
    CHECK(shard.rows() == of_shard);
    rows += of_shard;
  }
  CHECK(told.rows() == rows);
  REQUIRE(sums.size() == 2);
  for (const auto& [table, count] : sums) {
    INFO(table);
    CHECK(count > 0);
  }
}

}  // namespace
}  // namespace strata::server
