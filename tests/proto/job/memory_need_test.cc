#include "proto/job/memory_need.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/core/memory_part.h"
#include "proto/job/dram_limit.h"
#include "proto/job/fields/line_features.h"
#include "proto/job/job_spec.h"
#include "proto/job/tables/model_tables.h"
#include "proto/strata/job.pb.h"
#include "server/memory_estimate.h"
#include "storage/row/layout.h"

namespace strata {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

JobSpec Spec(const std::string& mode, const std::string& dram, uint32_t servers) {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("j");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("criteo");
  spec.mutable_data()->add_train("/x");
  spec.mutable_model()->set_type("deepfm");
  spec.mutable_training()->set_mode(mode);
  spec.mutable_storage()->set_dram_bytes_per_server(dram);
  spec.mutable_replicas()->set_servers(servers);
  spec.mutable_replicas()->set_workers(2);
  spec.mutable_checkpoint()->set_directory("/ck");
  const absl::Status resolved = ResolveJob(job);
  INFO(resolved);
  REQUIRE(resolved.ok());
  return job.spec();
}

// What the server's own parts say, with the same rows and keys.
uint64_t ServerSays(const JobSpec& spec, const DataSize& data, uint32_t shards) {
  const auto model = MakeModelTables(spec, data.fields, data.numeric);
  REQUIRE(model.ok());
  const uint64_t batch = uint64_t{spec.training().batch_size()} * data.fields;
  server::ServerLoad load;
  load.tables = model->tables;
  load.rows = data.rows;
  load.servers = spec.replicas().servers();
  load.shards_here = shards;
  load.workers = spec.replicas().workers();
  load.partitions = spec.storage().partitions();
  load.dram_bytes = *ParseBytes(spec.storage().dram_bytes_per_server());
  load.row_file = spec.storage().ssd() == "rowfile";
  load.checkpoints = true;
  load.increments = spec.checkpoint().full_every() > 1;
  load.threads = 4;
  load.synchronous = spec.training().mode() == "bsp";
  load.keys_per_push = load.synchronous ? batch * spec.training().lanes() / load.workers : batch;
  load.keys_per_step = batch * spec.training().lanes();
  return TotalBytes(server::EstimateServer(load)) + TotalBytes(server::EstimateSnapshots(load)) +
         server::EstimateConnections(load);
}

TEST_CASE("what is reserved is what servers say they take, and little more", "[memory_need]") {
  for (const char* mode : {"bsp", "async"}) {
    for (const char* limit : {"0", "256MiB", "4GiB"}) {
      for (const uint32_t servers : {1, 4}) {
        for (const uint64_t rows : {1'000'000, 40'000'000}) {
          const JobSpec spec = Spec(mode, limit, servers);
          const DataSize data = {.lines = 10'000'000, .fields = 26, .numeric = 13, .rows = rows};
          const uint64_t said = ServerSays(spec, data, 4);
          const ServerNeed need = NeedOfServer(spec, data, 4);
          std::string parts;
          for (const MemoryPart& p : need.parts) parts += p.name + " " + BinarySize(p.bytes) + "; ";
          INFO(mode << " limit " << limit << " servers " << servers << " rows " << rows << ": "
                    << BinarySize(need.likely.dram_bytes()) << " of " << BinarySize(said) << ": "
                    << parts);
          CHECK(need.likely.dram_bytes() * 10 >= said * 9);
          // A limit that the rows do not need is kept for them all the same.
          const uint64_t kept = need.guessed ? said : said + need.least.dram_bytes();
          CHECK(need.likely.dram_bytes() * 10 <= kept * 13);
        }
      }
    }
  }
}

TEST_CASE("a row has the bytes that its layout says", "[memory_need]") {
  for (const char* type : {"sgd", "adagrad", "adam", "ftrl", "rowwise_adagrad", "momentum"}) {
    JobSpec spec = Spec("bsp", "0", 1);
    spec.mutable_optimizer()->mutable_sparse()->set_type(type);
    const auto model = MakeModelTables(spec, 26, 13);
    REQUIRE(model.ok());
    for (const TableSpec& table : model->tables) {
      CHECK(RowBytes(table) == storage::RowLayout::For(table).row_bytes());
      TableSpec scored = table;
      scored.life_cycle.removal.scored = true;
      CHECK(RowBytes(scored) == storage::RowLayout::For(scored).row_bytes());
    }
  }
}

TEST_CASE("before the input is known a job needs what its file asks for", "[memory_need]") {
  JobSpec spec = Spec("bsp", "3GiB", 1);
  spec.mutable_storage()->set_gpu_bytes_per_server("2GiB");
  spec.mutable_storage()->set_gpu_backend("cuda");
  ServerNeed need = NeedOfServer(spec, {}, 4);
  CHECK(need.least.dram_bytes() == 3 * kGiB);
  CHECK(need.least.gpu_bytes() == 2 * kGiB);
  CHECK(need.likely.dram_bytes() == 3 * kGiB);
  CHECK_FALSE(need.guessed);
  spec.mutable_storage()->set_gpu_backend("host");
  need = NeedOfServer(spec, {}, 4);
  CHECK(need.least.dram_bytes() == 5 * kGiB);
  CHECK(need.least.gpu_bytes() == 0);
  CHECK(NeedOfServer(Spec("bsp", "0", 1), {}, 4).least.dram_bytes() == 0);
}

TEST_CASE("disk is counted for logs and images, and for rows below the limit", "[memory_need]") {
  JobSpec spec = Spec("bsp", "0", 1);
  const DataSize data = {.lines = 1'000'000, .fields = 26, .numeric = 13, .rows = 10'000'000};
  const uint64_t row = RowBytes(MakeModelTables(spec, 26, 13)->tables[0]) + 8;
  const uint64_t logged = NeedOfServer(spec, data, 4).likely.disk_bytes();
  CHECK(logged > kGiB + data.rows * row);
  CHECK(logged < kGiB + data.rows * row * 3 / 2);
  spec.mutable_storage()->set_durability("memory");
  CHECK(NeedOfServer(spec, data, 4).likely.disk_bytes() == 0);
  spec.mutable_storage()->set_dram_bytes_per_server("256MiB");
  const uint64_t below = NeedOfServer(spec, data, 4).likely.disk_bytes();
  CHECK(below > data.rows * row);
  CHECK(below < 2 * data.rows * row);
}

TEST_CASE("of a little data every feature may be a row, of much a sixteenth is", "[memory_need]") {
  CHECK(GuessRows(0) == 0);
  CHECK(GuessRows(26'000) == 26'000);
  const uint64_t criteo = uint64_t{45'840'617} * 26;
  CHECK(GuessRows(criteo) > 33'762'577);
  CHECK(GuessRows(criteo) < 3 * uint64_t{33'762'577});
}

// Users and items; a sequence of items; tags, of which a line may have several.
JobSpec VisitsSpec() {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("j");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("csv");
  spec.mutable_data()->add_train("/x");
  spec.mutable_data()->mutable_columns()->set_label("y");
  spec.mutable_model()->set_type("din");
  for (const char* name : {"user", "item"}) {
    TableConfig& table = *spec.add_tables();
    table.set_name(name);
    table.set_dim(16);
  }
  const auto field = [&](const char* name, const char* kind, const char* table) {
    FieldConfig& f = *spec.add_fields();
    f.set_name(name);
    f.set_kind(kind);
    f.set_table(table);
    return &f;
  };
  field("user", "categorical", "user");
  field("item", "categorical", "item");
  field("clicks", "sequence", "item")->set_max_length(200);
  const absl::Status resolved = ResolveJob(job);
  INFO(resolved);
  REQUIRE(resolved.ok());
  return job.spec();
}

uint64_t PartBytes(const ServerNeed& need, const std::string& name) {
  for (const MemoryPart& part : need.parts) {
    if (part.name == name) return part.bytes;
  }
  FAIL("no part " << name);
  return 0;
}

TEST_CASE("a sequence counts with all of its values", "[memory_need]") {
  const JobSpec spec = VisitsSpec();
  const DataSize data = {
      .lines = 1'000'000, .bytes = 1'000'000'000, .fields = 3, .rows = 100'000'000};
  CHECK(FeaturesOfFields(spec, 3, 1000) == std::vector<uint64_t>{1, 1, 200});
  const ServerNeed need = NeedOfServer(spec, data, 4);
  // Of a batch of each of eight lanes 202 features a line, each with its key and 16 floats.
  const uint64_t keys =
      uint64_t{spec.training().batch_size()} * spec.training().lanes() * (200 + 2);
  CHECK(PartBytes(need, "sums and pre-images") >= keys * (8 + 4 * 16));
  CHECK(PartBytes(need, "sums and pre-images") < keys * (8 + 4 * 16) + 4 * kMiB);
  // Without limits and rows, those of the sequence count, too.
  DataSize unknown = data;
  unknown.rows = 0;
  CHECK(NeedOfServer(spec, unknown, 4).rows == GuessRows(data.lines * 202));
}

TEST_CASE("tables have the rows and keys of their fields' features", "[memory_need]") {
  JobSpec narrow = VisitsSpec(), wide = VisitsSpec();
  narrow.mutable_tables(0)->set_dim(1);
  wide.mutable_tables(1)->set_dim(1);
  const DataSize data = {
      .lines = 1'000'000, .bytes = 1'000'000'000, .fields = 3, .rows = 10'000'000};
  // Nearly all rows are the items'.
  CHECK(NeedOfServer(narrow, data, 4).row_bytes > 4 * NeedOfServer(wide, data, 4).row_bytes);
}

TEST_CASE("lines have no more features than their text has room for", "[memory_need]") {
  JobSpec spec = VisitsSpec();
  CHECK(FeaturesOfFields(spec, 3, 60) == std::vector<uint64_t>{1, 1, 31});
  CHECK(FeaturesOfFields(spec, 3, 0) == std::vector<uint64_t>{1, 1, 200});
  // Of several values a text of 800 bytes has a hundred, in all fields that may have them.
  spec.mutable_fields(2)->set_kind("multiValued");
  CHECK(FeaturesOfFields(spec, 3, 800) == std::vector<uint64_t>{1, 1, 100});
  spec.mutable_fields(0)->set_kind("multiValued");
  CHECK(FeaturesOfFields(spec, 3, 800) == std::vector<uint64_t>{50, 1, 50});
  CHECK(FeaturesOfFields(spec, 3, 0) == std::vector<uint64_t>{1, 1, 1});
  spec.mutable_data()->set_format("libffm");
  CHECK(FeaturesOfFields(spec, 3, 360) == std::vector<uint64_t>{10, 10, 10});
  spec.mutable_data()->set_format("libsvm");
  CHECK(FeaturesOfFields(spec, 3, 10'000) == std::vector<uint64_t>{1, 1, 1});
}

TEST_CASE("shards of a server", "[memory_need]") {
  JobSpec spec = Spec("bsp", "0", 1);
  CHECK(ShardsOfServer(spec, 1, 2) == 4);
  CHECK(ShardsOfServer(spec, 1, 16) == 16);
  CHECK(ShardsOfServer(spec, spec.storage().partitions(), 16) == 1);
  spec.mutable_storage()->set_shards_per_server(3);
  CHECK(ShardsOfServer(spec, 1, 16) == 3);
}

TEST_CASE("sizes as people read them", "[memory_need]") {
  CHECK(BinarySize(0) == "0 B");
  CHECK(BinarySize(1023) == "1023 B");
  CHECK(BinarySize(3 * kMiB / 2) == "1.5 MiB");
  CHECK(BinarySize(2048 * kGiB) == "2.0 TiB");
  MemoryNeed need;
  CHECK(NeedText(need) == "nothing");
  need.set_dram_bytes(kGiB);
  need.set_gpu_bytes(kMiB);
  CHECK(NeedText(need) == "1.0 GiB of memory, 1.0 MiB of GPU memory");
}

}  // namespace
}  // namespace strata
