// Imported rows against the values that were written, from the files to a job that starts from
// them.
#include "tools/cluster/import/import.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "proto/core/ids.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/job.pb.h"
#include "storage/row/layout.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/temp_folder.h"
#include "tests/tools/cluster/import/import_job.h"
#include "tests/tools/cluster/import/written_arrays.h"
#include "tests/worker/data/files/compressed.h"
#include "tools/cluster/checkpoint/rows.h"
#include "tools/cluster/import/key_file.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::BytesOf;
using testing::Import;
using testing::Job;
using testing::kDim;
using testing::Npy;
using testing::Options;
using testing::Raw;
using testing::RowOf;
using testing::Rows;
using testing::Safetensors;
using testing::Tensor;
using testing::Write;

std::string Predictions(const TrainingJob& job) {
  std::ifstream in(job.spec().output().predictions(), std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  REQUIRE(!text.str().empty());
  return text.str();
}

// All rows of a table by key: weights, state and metadata as they lie in the file.
std::map<uint64_t, std::vector<float>> RowsOf(const std::string& checkpoint,
                                              const std::string& table) {
  const auto rows = CheckpointRows::Open(checkpoint);
  INFO(rows.status());
  REQUIRE(rows.ok());
  std::map<uint64_t, std::vector<float>> out;
  for (uint32_t t = 0; t < rows->tables().tables.size(); ++t) {
    const TableSpec& spec = rows->tables().tables[t];
    if (spec.name != table) continue;
    REQUIRE(rows->ReadAll(t,
                          [&](Position p, const uint8_t* row) {
                            std::vector<float>& floats = out[spec.KeyAtPosition(p).value];
                            floats.resize(rows->layout(t).row_bytes() / 4);
                            std::memcpy(floats.data(), row, floats.size() * 4);
                            return absl::OkStatus();
                          })
                .ok());
  }
  return out;
}

bool HasEmbedding(const std::vector<float>& row, uint64_t key) {
  return std::memcmp(row.data(), RowOf(key).data(), kDim * 4) == 0;
}

TEST_CASE("rows have their embedding, and all else as new rows have it", "[import]") {
  const TempFolder folder;
  const TrainingJob job = Job(folder.path());
  const std::string out = folder.path() + "/out";
  // Two lists of one table, and one of another.
  const ImportSummary done =
      Import(Options(job, out,
                     {Rows(folder.path(), "user", 3, 20), Rows(folder.path(), "item", 0, 30),
                      Rows(folder.path(), "item", 1000, 5)}));
  REQUIRE(done.tables.size() == 2);
  CHECK((done.tables[0].name == "item" && done.tables[0].rows == 35));
  CHECK((done.tables[1].name == "user" && done.tables[1].rows == 20));
  const auto manifest = ReadManifest(out);
  REQUIRE(manifest.ok());
  CHECK(VerifyCheckpointFiles(out, *manifest).ok());
  CHECK(manifest->model_hash() == done.model_hash);

  const auto whole = CheckpointRows::Open(out);
  REQUIRE(whole.ok());
  const std::map<std::string, uint32_t> numbers = {{"item", 0}, {"user", 2}};
  for (const auto& [table, number] : numbers) {
    const auto rows = RowsOf(out, table);
    CHECK(rows.size() == (table == "item" ? 35 : 20));
    for (const auto& [key, row] : rows) {
      INFO(table << " " << key);
      CHECK(HasEmbedding(row, key));
      const std::vector<uint8_t> fresh = whole->InitialRow(number, Key(key));
      CHECK(std::memcmp(row.data() + kDim, fresh.data() + kDim * 4, fresh.size() - kDim * 4) == 0);
    }
  }
}

TEST_CASE("a job starts from imported rows, on any servers and tiers", "[import]") {
  const TempFolder folder;
  TrainingJob job = Job(folder.path());
  const std::string out = folder.path() + "/out";
  // Half of the keys come in the data; items 1000 to 3999 are no part of them.
  Import(Options(job, out,
                 {Rows(folder.path(), "item", 0, 25), Rows(folder.path(), "item", 1000, 3000)}));
  job.mutable_spec()->mutable_checkpoint()->set_directory(folder.path() + "/fresh");
  Train(job);
  const std::string fresh = Predictions(job);

  InitFromSpec& init = *job.mutable_spec()->mutable_model()->mutable_init_from();
  init.set_checkpoint(out);
  std::string refused;
  {
    EmbeddedOptions options;
    options.job = job;
    options.overwrite = true;
    refused = std::string(RunEmbedded(options).status().message());
  }
  CHECK_THAT(refused, Catch::Contains("spec.model.type deepfm: the checkpoint has none") &&
                          Catch::Contains("table user") &&
                          Catch::Contains("spec.model.initFrom.newTensors: allow"));
  init.set_new_tensors("allow");

  std::string hash, predictions;
  for (const uint32_t servers : {1, 3}) {
    for (const bool tiers : {false, true}) {
      INFO(servers << " servers, tiers " << tiers);
      JobSpec& spec = *job.mutable_spec();
      spec.mutable_replicas()->set_servers(servers);
      spec.mutable_replicas()->set_workers(servers == 1 ? 1 : 2);
      spec.mutable_storage()->set_shards_per_server(2);
      if (tiers) spec.mutable_storage()->set_dram_bytes_per_server("64KiB");
      if (!tiers) spec.mutable_storage()->clear_dram_bytes_per_server();
      const std::string to = folder.path() + "/" + std::to_string(servers) + (tiers ? "t" : "");
      spec.mutable_checkpoint()->set_directory(to);
      const JobStatus status = tiers ? TrainBelowDram(job) : Train(job);
      if (hash.empty()) hash = status.model_hash();
      CHECK(status.model_hash() == hash);
      if (predictions.empty()) predictions = Predictions(job);
      CHECK(Predictions(job) == predictions);
      CHECK(predictions != fresh);
      const auto rows = RowsOf(status.checkpoint(), "item");
      size_t untouched = 0;
      for (const auto& [key, row] : rows) {
        if (key < 1000) continue;
        INFO(key);
        CHECK(HasEmbedding(row, key));
        ++untouched;
      }
      CHECK(untouched == 3000);
    }
  }
}

TEST_CASE("elements of every dtype, in npy and safetensors", "[import]") {
  const TempFolder folder;
  const TrainingJob job = Job(folder.path());
  const auto import = [&](const std::string& name, const std::string& tensor) {
    const std::string out = folder.path() + "/out-" + name + tensor;
    Import(Options(job, out,
                   {{.table = "item",
                     .keys = folder.path() + "/keys.npy",
                     .rows = folder.path() + "/" + name,
                     .tensor = tensor,
                     .key_of = Raw}}));
    return RowsOf(out, "item");
  };
  Write(folder.path() + "/keys.npy", Npy("<u8", "(2,)", BytesOf<uint64_t>({~uint64_t{0}, 7})));
  const std::vector<float> first = {1, -2.5f, 65504, 0x1p-24f}, second = {0, -0.0f, 0.5f, 3};
  const auto check = [&](const std::map<uint64_t, std::vector<float>>& rows) {
    REQUIRE(rows.size() == 2);
    CHECK(std::memcmp(rows.at(~uint64_t{0}).data(), first.data(), 16) == 0);
    CHECK(std::memcmp(rows.at(7).data(), second.data(), 16) == 0);
  };
  // Numbers that every dtype has but bfloat16, where 65504 is 65536 and so rounded by the writer.
  const std::string half =
      BytesOf<uint16_t>({0x3c00, 0xc100, 0x7bff, 0x0001, 0x0000, 0x8000, 0x3800, 0x4200});
  std::vector<double> wide(first.begin(), first.end());
  wide.insert(wide.end(), second.begin(), second.end());
  std::vector<float> single = first;
  single.insert(single.end(), second.begin(), second.end());
  Write(folder.path() + "/f2.npy", Npy("<f2", "(2, 4)", half));
  Write(folder.path() + "/f4.npy", Npy("<f4", "(2, 4)", BytesOf(single)));
  Write(folder.path() + "/f8.npy", Npy("<f8", "(2, 4)", BytesOf(wide)));
  for (const char* name : {"f2.npy", "f4.npy", "f8.npy"}) {
    INFO(name);
    check(import(name, ""));
  }
  std::string brain;
  for (const float v : single)
    brain += BytesOf<uint16_t>({static_cast<uint16_t>(std::bit_cast<uint32_t>(v) >> 16)});
  Write(folder.path() + "/all.safetensors",
        Safetensors("{" + Tensor("F64", "F64", "[2, 4]", 16, 80) + ", " +
                        Tensor("F16", "F16", "[2, 4]", 0, 16) + ", " +
                        Tensor("BF16", "BF16", "[2, 4]", 80, 96) + "}",
                    half + BytesOf(wide) + brain));
  check(import("all.safetensors", "F16"));
  check(import("all.safetensors", "F64"));
  const auto of_brain = import("all.safetensors", "BF16");
  CHECK(of_brain.at(~uint64_t{0})[1] == -2.5f);
  CHECK(of_brain.at(~uint64_t{0})[2] == 65280);  // the upper half of 65504's bits
  Write(folder.path() + "/one.safetensors",
        Safetensors("{" + Tensor("only", "F32", "[2, 4]", 0, 32) + "}", BytesOf(single)));
  check(import("one.safetensors", ""));
  // To nearest even, as a cast does.
  wide[0] = 1 + 0x1p-24 + 0x1p-40;
  wide[1] = 1 + 0x1p-24;
  Write(folder.path() + "/rounded.npy", Npy("<f8", "(2, 4)", BytesOf(wide)));
  const auto rounded = import("rounded.npy", "");
  CHECK(rounded.at(~uint64_t{0})[0] == 1 + 0x1p-23f);
  CHECK(rounded.at(~uint64_t{0})[1] == 1);
}

TEST_CASE("rows of more than a block", "[import]") {
  const TempFolder folder;
  const TrainingJob job = Job(folder.path());
  const std::string out = folder.path() + "/out";
  constexpr uint64_t kMany = 70000;  // 280000 elements
  Import(Options(job, out, {Rows(folder.path(), "item", 5, kMany)}));
  const auto rows = RowsOf(out, "item");
  CHECK(rows.size() == kMany);
  size_t right = 0;
  for (const auto& [key, row] : rows) right += HasEmbedding(row, key) ? 1 : 0;
  CHECK(right == kMany);
}

TEST_CASE("a byte order mark is no part of the first key", "[import]") {
  const TempFolder folder;
  Write(folder.path() + "/keys",
        "\xEF\xBB\xBFred\r\n\xEF\xBB\xBF"
        "blue\n");
  auto keys = KeyFile::Open(folder.path() + "/keys");
  REQUIRE(keys.ok());
  std::string value;
  REQUIRE((*keys)->Next(&value).ok());
  CHECK(value == "red");
  REQUIRE((*keys)->Next(&value).ok());
  CHECK(value ==
        "\xEF\xBB\xBF"
        "blue");
}

TEST_CASE("a compressed text file of keys has the values of its text", "[import]") {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919) + "\n";
  text.pop_back();
  for (const bool gzip : {true, false}) {
    INFO("gzip " << gzip);
    const std::string path = folder.path() + (gzip ? "/keys.gz" : "/keys.zst");
    Write(path, gzip ? Gzip(text) : Zstd(text));
    auto keys = KeyFile::Open(path);
    REQUIRE(keys.ok());
    CHECK((*keys)->Where(41) == path + ":42");
    std::string value;
    for (int i = 0; i < 100'000; ++i) {
      const auto more = (*keys)->Next(&value);
      REQUIRE((more.ok() && *more && value == std::to_string(i * 7919)));
    }
    const auto more = (*keys)->Next(&value);
    CHECK((more.ok() && !*more));
  }
}

}  // namespace
}  // namespace strata
