#include "proto/job/dram_limit.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "proto/job/job_spec.h"
#include "storage/row/layout.h"
#include "storage/tiered/table.h"
#include "tests/proto/job/din_job.h"

namespace strata {
namespace {

TableSpec Table(OptimizerType type, uint32_t dim) {
  TableSpec table;
  SegmentSpec wide, one;
  wide.dim = dim;
  one.dim = 1;
  wide.optimizer.type = one.optimizer.type = type;
  table.segments = {wide, one};
  return table;
}

TEST_CASE("the bound is below what servers admit, and near it", "[dram_limit]") {
  for (const OptimizerType type :
       {OptimizerType::kSgd, OptimizerType::kAdagrad, OptimizerType::kAdam,
        OptimizerType::kMomentum, OptimizerType::kRowwiseAdagrad, OptimizerType::kFtrl,
        OptimizerType::kAdd}) {
    for (const uint32_t dim : {1, 7, 16, 64, 256}) {
      INFO("optimizer " << static_cast<int>(type) << " dim " << dim);
      const TableSpec table = Table(type, dim);
      const uint64_t admitted =
          storage::MinimumDramBytes(storage::RowLayout::For(table).row_bytes());
      CHECK(LeastTableBytes(table) <= admitted);
      CHECK(LeastTableBytes(table) >= admitted * 9 / 10);
    }
  }
}

JobSpec Spec(const std::string& limit, uint32_t shards, uint32_t servers) {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("j");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("libfm");
  spec.mutable_data()->add_train("/x");
  spec.mutable_model()->set_type("lr");
  spec.mutable_storage()->set_dram_bytes_per_server(limit);
  if (shards > 0) spec.mutable_storage()->set_shards_per_server(shards);
  spec.mutable_storage()->set_partitions(16);
  spec.mutable_replicas()->set_servers(servers);
  const absl::Status resolved = ResolveJob(job);
  INFO(resolved);
  REQUIRE(resolved.ok());
  return job.spec();
}

TEST_CASE("a limit that no server would admit is told at once", "[dram_limit]") {
  CHECK(CheckDramLimit(Spec("0", 0, 1)).ok());
  CHECK(CheckDramLimit(Spec("1GiB", 0, 1)).ok());
  // lr with adagrad: 16 rows of 2 floats and 16 bytes, and two pages: 8576 bytes a shard.
  CHECK(CheckDramLimit(Spec("8576", 1, 1)).ok());
  const absl::Status s = CheckDramLimit(Spec("8575", 1, 1));
  CHECK(absl::IsInvalidArgument(s));
  for (const char* says :
       {"spec.storage.dramBytesPerServer: 8575 is too small", "1 shards", "8576 bytes",
        "`strata estimate`", "spec.storage.shardsPerServer lower"}) {
    CHECK(absl::StrContains(s.message(), says));
  }
  CHECK(CheckDramLimit(Spec("34304", 0, 1)).ok());  // four shards by default
  CHECK(!CheckDramLimit(Spec("34303", 0, 1)).ok());
  CHECK(CheckDramLimit(Spec("17152", 0, 8)).ok());  // but no more than a server has partitions
  CHECK(!CheckDramLimit(Spec("17151", 0, 8)).ok());
}

// A wide table beside a narrow one: each needs its own least, whatever their shares.
TEST_CASE("tables need what each of them needs", "[dram_limit]") {
  TrainingJob job = DinJob({"item", "user"},
                           {{"item", "categorical", "item"}, {"user", "categorical", "user"}}, 1);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_tables(0)->set_dim(256);
  spec.mutable_tables(1)->set_dim(1);
  spec.mutable_storage()->set_shards_per_server(2);
  // Adagrad: 16 rows of 2 x 4 dim and 16 bytes, and two pages: 41216 and 8576 bytes a shard.
  const auto check = [&](const char* limit) {
    spec.mutable_storage()->set_dram_bytes_per_server(limit);
    TrainingJob resolved = job;
    const absl::Status s = ResolveJob(resolved);
    INFO(s);
    REQUIRE(s.ok());
    return CheckDramLimit(resolved.spec());
  };
  for (const uint32_t share : {1, 1000}) {
    spec.mutable_tables(1)->set_dram_share(share);
    CHECK(check("99584").ok());
    CHECK(absl::StrContains(check("99583").message(), "each needs at least 49792 bytes"));
  }
}

}  // namespace
}  // namespace strata
