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
#include "tests/proto/job/din_job.h"

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
  TrainingJob job = DinJob({"user", "item"},
                           {{"user", "categorical", "user"},
                            {"item", "categorical", "item"},
                            {"clicks", "sequence", "item"}},
                           200);
  for (TableConfig& table : *job.mutable_spec()->mutable_tables()) table.set_dim(16);
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

TEST_CASE("a step counts all values that a sequence has room for", "[memory_need]") {
  const JobSpec spec = VisitsSpec();
  const DataSize data = {
      .lines = 1'000'000, .bytes = 1'000'000'000, .fields = 3, .rows = 100'000'000};
  CHECK(FeaturesOfFields(spec, 3, 1000).most == std::vector<uint64_t>{1, 1, 200});
  const ServerNeed need = NeedOfServer(spec, data, 4);
  // Of a batch of each of eight lanes 202 features a line, each with its key and 16 floats.
  const uint64_t keys =
      uint64_t{spec.training().batch_size()} * spec.training().lanes() * (200 + 2);
  CHECK(PartBytes(need, "sums and pre-images") >= keys * (8 + 4 * 16));
  CHECK(PartBytes(need, "sums and pre-images") < keys * (8 + 4 * 16) + 4 * kMiB);
}

TEST_CASE("rows are guessed by what text is likely to hold", "[memory_need]") {
  JobSpec spec = VisitsSpec();
  // User, item and label have a value of 8 bytes each.
  const DataSize data = {.lines = 1'000'000, .bytes = 1'000'000 * 8 * 23, .fields = 3};
  CHECK(NeedOfServer(spec, data, 4).rows == GuessRows(data.lines * (2 + 20)));
  // A sequence has no more than it keeps, however long lines are.
  DataSize wide = data;
  wide.bytes = data.lines * 100'000;
  CHECK(NeedOfServer(spec, wide, 4).rows == GuessRows(data.lines * (2 + 200)));
  spec.mutable_fields(2)->set_kind("multiValued");
  CHECK(NeedOfServer(spec, data, 4).rows == GuessRows(data.lines * (2 + 20)));
}

// Many columns of one value, and one that may have several: nearly all of the text is the others'.
TEST_CASE("the text of other columns holds no values of a field of several", "[memory_need]") {
  JobSpec spec = VisitsSpec();
  spec.mutable_fields(2)->set_kind("multiValued");
  for (int i = 0; i < 20; ++i) {
    FieldConfig& f = *spec.add_fields();
    f.set_name("c" + std::to_string(i));
    f.set_kind("categorical");
    f.set_table("user");
  }
  const LineFeatures features = FeaturesOfFields(spec, 23, 200);
  CHECK(features.likely[2] == 25 - 23);
  CHECK(features.most == features.likely);
}

TEST_CASE("a field has no more rows than its vocabulary or its buckets", "[memory_need]") {
  JobSpec spec = VisitsSpec();
  for (const int f : {1, 2}) {  // item, clicks
    spec.mutable_fields(f)->mutable_vocabulary()->set_file("/items");
    spec.mutable_fields(f)->mutable_vocabulary()->set_out_of_vocabulary(5);
  }
  FieldConfig& age = *spec.add_fields();
  age.set_name("age");
  age.set_kind("numeric");
  age.set_table("user");
  age.mutable_transform()->set_type("bucketise");
  for (const double bound : {18, 30, 60}) age.mutable_transform()->add_bounds(bound);
  DataSize data = {.lines = 1'000'000, .bytes = 1'000'000 * 8 * 24, .fields = 4};
  // A vocabulary that no index tells of limits nothing; a number has four buckets and is missing.
  CHECK(NeedOfServer(spec, data, 4).rows == GuessRows(data.lines * (2 + 20)) + 5);
  // Item and clicks share its values, five others and a missing one; users are hashed.
  data.vocabularies = {{"/items", 30'000}};
  const ServerNeed need = NeedOfServer(spec, data, 4);
  CHECK(need.rows == GuessRows(data.lines) + 30'006 + 5);
  // So a step pulls no more of them: the table of users has a key of each line and the buckets.
  const uint64_t lines = uint64_t{spec.training().batch_size()} * spec.training().lanes();
  CHECK(PartBytes(need, "sums and pre-images") < (30'006 + 3 * lines) * (8 + 4 * 16) + 4 * kMiB);
  // Fields of other seeds share no rows (a sequence would have no target).
  spec.mutable_fields(2)->set_kind("multiValued");
  spec.mutable_fields(2)->set_hash_seed(77);
  CHECK(NeedOfServer(spec, data, 4).rows == GuessRows(data.lines) + 2 * 30'006 + 5);
  // Few lines have few of its values.
  DataSize few = data;
  few.lines = 10;
  few.bytes = 10 * 8 * 24;
  CHECK(NeedOfServer(spec, few, 4).rows == GuessRows(10) + 10 * (1 + 20) + 5);
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

TEST_CASE("rows that have no room in their table's part of the limit lie on disk",
          "[memory_need]") {
  JobSpec spec = VisitsSpec();
  spec.mutable_storage()->set_durability("memory");
  spec.mutable_storage()->set_dram_bytes_per_server("1GiB");
  const DataSize data = {
      .lines = 1'000'000, .bytes = 1'000'000'000, .fields = 3, .rows = 5'000'000};
  // Nearly all rows are the items', some 800 MB of them. They fit, but not in half of it.
  const auto disk = [&] { return NeedOfServer(spec, data, 4).likely.disk_bytes(); };
  const uint64_t equal = disk();
  CHECK(equal > 100 * kMiB);
  CHECK(PartBytes(NeedOfServer(spec, data, 4), "SSD tier") > 0);
  spec.mutable_tables(1)->set_dram_share(20);
  CHECK(disk() == 0);
  spec.mutable_tables(0)->set_dram_share(20);
  CHECK(disk() == equal);
}

TEST_CASE("lines have no more features than their text has room for", "[memory_need]") {
  using Counts = std::vector<uint64_t>;
  JobSpec spec = VisitsSpec();
  const auto most = [&](uint64_t bytes) { return FeaturesOfFields(spec, 3, bytes).most; };
  const auto likely = [&](uint64_t bytes) { return FeaturesOfFields(spec, 3, bytes).likely; };
  CHECK(most(60) == Counts{1, 1, 31});
  CHECK(likely(60) == Counts{1, 1, 4});
  CHECK(likely(20) == Counts{1, 1, 1});
  CHECK(most(0) == Counts{1, 1, 200});
  CHECK(likely(0) == Counts{1, 1, 200});
  // Two sequences share it; what one does not keep is the other's.
  FieldConfig& views = *spec.add_fields();
  views = spec.fields(2);
  views.set_name("views");
  CHECK(FeaturesOfFields(spec, 4, 800).most == Counts{1, 1, 200, 200});
  CHECK(FeaturesOfFields(spec, 4, 400).most == Counts{1, 1, 101, 101});
  views.set_max_length(10);
  CHECK(FeaturesOfFields(spec, 4, 360).most == Counts{1, 1, 172, 10});
  CHECK(FeaturesOfFields(spec, 4, 360).likely == Counts{1, 1, 32, 10});
  spec.mutable_fields()->RemoveLast();
  // Of several values a text of 800 bytes has a hundred, in all fields that may have them, but for
  // the other fields' and the label.
  spec.mutable_fields(2)->set_kind("multiValued");
  CHECK(likely(800) == Counts{1, 1, 97});
  CHECK(most(800) == Counts{1, 1, 97});
  spec.mutable_fields(0)->set_kind("multiValued");
  CHECK(likely(800) == Counts{49, 1, 49});
  CHECK(likely(0) == Counts{1, 1, 1});
  spec.mutable_data()->set_format("libffm");
  CHECK(likely(360) == Counts{10, 10, 10});
  spec.mutable_data()->set_format("libsvm");
  CHECK(likely(10'000) == Counts{1, 1, 1});
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
