// Imported rows against the values that were written, from the files to a job that starts from
// them.
#include "tools/cluster/import/import.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/job/job_spec.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/job.pb.h"
#include "storage/row/layout.h"
#include "tests/e2e/embedded_training.h"
#include "tests/temp_folder.h"
#include "tests/tools/cluster/import/written_arrays.h"
#include "tools/cluster/checkpoint/rows.h"
#include "tools/cluster/import/key_file.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::BytesOf;
using testing::Npy;
using testing::Safetensors;
using testing::Tensor;

constexpr uint32_t kDim = 4;

// Element c of the embedding of key k; every bit pattern of its kind may come.
float Value(uint64_t key, uint32_t c) {
  return std::ldexp(static_cast<float>(key * 37 + c * 5 + 1), static_cast<int>(key % 60) - 30) *
         (c % 2 == 0 ? 1.0f : -1.0f);
}

std::vector<float> RowOf(uint64_t key) {
  std::vector<float> out;
  for (uint32_t c = 0; c < kDim; ++c) out.push_back(Value(key, c));
  return out;
}

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// libffm of fields 0, 1 and 2, whose tables are item, user and item.
TrainingJob Job(const std::string& folder) {
  std::ofstream data(folder + "/train.libffm");
  for (int i = 0; i < 400; ++i) {
    data << i * 7 % 3 % 2 << " 0:" << i % 50 << ":1 1:" << i % 40 << ":1 2:" << 50 + i % 9
         << ":1\n";
  }
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("imports");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("libffm");
  spec.mutable_data()->add_train(folder + "/train.libffm");
  spec.mutable_data()->add_eval(folder + "/train.libffm");
  spec.mutable_model()->set_type("deepfm");
  spec.mutable_model()->set_embedding_dim(kDim);
  spec.mutable_model()->add_hidden(8);
  spec.add_tables()->set_name("item");
  spec.add_tables()->set_name("user");
  spec.mutable_tables(1)->mutable_optimizer()->set_type("adam");
  for (int f = 0; f < 3; ++f) {
    FieldConfig& field = *spec.add_fields();
    field.set_name(std::to_string(f));
    field.set_kind("multiValued");
    field.set_table(f == 1 ? "user" : "item");
  }
  spec.mutable_training()->set_mode("bsp");
  spec.mutable_training()->set_lanes(2);
  spec.mutable_training()->set_batch_size(16);
  spec.mutable_training()->set_threads(1);
  spec.mutable_storage()->set_partitions(64);
  spec.mutable_output()->set_predictions(folder + "/predictions");
  return job;
}

std::string Predictions(const TrainingJob& job) {
  std::ifstream in(job.spec().output().predictions(), std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  REQUIRE(!text.str().empty());
  return text.str();
}

absl::StatusOr<Key> Raw(const std::string& value) { return Key(std::stoull(value)); }

// Keys first .. first + count - 1, backwards, and their rows.
ImportSource Rows(const std::string& folder, const std::string& table, uint64_t first,
                  uint64_t count) {
  std::string keys;
  std::vector<float> rows;
  for (uint64_t k = first + count; k > first; --k) {
    keys += std::to_string(k - 1) + "\n";
    for (const float v : RowOf(k - 1)) rows.push_back(v);
  }
  const std::string name = folder + "/" + table + std::to_string(first);
  Write(name + ".txt", keys);
  Write(name + ".npy", Npy("<f4", "(" + std::to_string(count) + ", 4)", BytesOf(rows)));
  return {.table = table, .keys = name + ".txt", .rows = name + ".npy", .key_of = Raw};
}

ImportOptions Options(const TrainingJob& job, const std::string& output,
                      std::vector<ImportSource> sources) {
  ImportOptions options{.job = job, .sources = std::move(sources), .output = output};
  REQUIRE(ResolveJob(options.job).ok());
  return options;
}

ImportSummary Import(const ImportOptions& options) {
  const auto done = ImportRows(options);
  INFO(done.status());
  REQUIRE(done.ok());
  return *done;
}

std::string Refused(const ImportOptions& options) {
  const auto done = ImportRows(options);
  REQUIRE_FALSE(done.ok());
  CHECK_FALSE(fs::exists(options.output));
  const std::string text(done.status().message());
  CHECK(text.find('\n') == std::string::npos);
  return text;
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

TEST_CASE("no row, and rows of more than a block", "[import]") {
  const TempFolder folder;
  const TrainingJob job = Job(folder.path());
  const std::string out = folder.path() + "/out";
  CHECK(Import(Options(job, out + "0", {Rows(folder.path(), "item", 0, 0)})).tables[0].rows == 0);
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

TEST_CASE("what is wrong with rows and keys is named", "[import]") {
  const TempFolder folder;
  const TrainingJob job = Job(folder.path());
  const std::string& at = folder.path();
  const auto refused = [&](ImportSource source) {
    return Refused(Options(job, at + "/out", {std::move(source)}));
  };
  const ImportSource good = Rows(at, "item", 0, 3);
  const auto rows = [&](const std::string& bytes, const std::string& tensor = "") {
    Write(at + "/rows", bytes);
    ImportSource source = good;
    source.rows = at + "/rows";
    source.tensor = tensor;
    return refused(source);
  };
  const auto keys = [&](const std::string& bytes) {
    Write(at + "/keys", bytes);
    ImportSource source = good;
    source.keys = at + "/keys";
    return refused(source);
  };
  const std::vector<float> twelve(12, 1);

  CHECK(rows(Npy("<f4", "(3, 5)", BytesOf(std::vector<float>(15)))) ==
        at +
            "/rows has the shape (3, 5); rows of the table's embeddings are (n, 4): save these, or "
            "give the table that dim");
  CHECK_THAT(rows(Npy("<f4", "(12,)", BytesOf(twelve))), Catch::Contains("the shape (12,)"));
  CHECK_THAT(rows(Npy("<i4", "(3, 4)", BytesOf(twelve))), Catch::Contains("/rows is of <i4; rows"));
  CHECK(rows(Npy("<f4", "(2, 4)", BytesOf(std::vector<float>(8)))) ==
        good.keys + " has 3 keys, and " + at +
            "/rows has 2 rows; give one key for each row, in its order");
  CHECK_THAT(rows(Npy("<f4", "(4, 4)", BytesOf(std::vector<float>(16)))),
             Catch::Contains("has 3 keys") && Catch::Contains("has 4 rows"));
  CHECK_THAT(rows("short"), Catch::Contains(at + "/rows: it is neither an npy nor a safetensors"));
  CHECK_THAT(rows(Npy("<f4", "(3, 4)", BytesOf(twelve)).substr(0, 150)),
             Catch::Contains(at + "/rows: an array (3, 4) of <f4 has 48 bytes, and behind"));
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {inf, -inf, std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> values = twelve;
    values[9] = bad;
    CHECK_THAT(rows(Npy("<f4", "(3, 4)", BytesOf(values))),
               Catch::Contains(at + "/rows, row 2, column 1 (both from 0): ") &&
                   Catch::Contains("is no number; leave the row out"));
  }
  std::vector<double> wide(12, 1);
  wide[4] = 1e39;
  CHECK_THAT(rows(Npy("<f8", "(3, 4)", BytesOf(wide))),
             Catch::Contains("row 1, column 0 (both from 0): 1e+39 is beyond float32"));
  const std::string two = Safetensors(
      "{" + Tensor("a", "F32", "[3, 4]", 0, 48) + ", " + Tensor("b", "F32", "[3, 4]", 48, 96) + "}",
      BytesOf(twelve) + BytesOf(twelve));
  CHECK(rows(two) == at + "/rows: name one of its tensors by --tensor; it has a, b");
  CHECK(rows(two, "c") == at + "/rows: no tensor 'c'; it has a, b");
  CHECK_THAT(rows(Npy("<f4", "(3, 4)", BytesOf(twelve)), "c"),
             Catch::Contains("leave out --tensor"));

  CHECK(keys("5\n6\n5\n") ==
        at + "/keys:1 and " + at + "/keys:3 have the same key, 5; leave one of the rows out");
  CHECK_THAT(keys(Npy("<i4", "(3,)", BytesOf<int32_t>({9, 8, 8}))),
             Catch::Contains("/keys, row 1 and ") && Catch::Contains("/keys, row 2 have the same"));
  CHECK(keys("5\n\n6\n") ==
        at + "/keys:2: the line is empty; give a value a line, and as many as there are rows");
  CHECK_THAT(keys(std::string(2 << 20, '7')), Catch::Contains("/keys:1: the line is longer than"));
  CHECK_THAT(keys(Npy("<f4", "(3,)", BytesOf<float>({1, 2, 3}))),
             Catch::Contains("/keys is an array (3,) of <f4; keys are (n,) of integers"));
  CHECK_THAT(keys("5\r\n6\r\n7\r\n8"), Catch::Contains("has 4 keys"));

  ImportSource other = good;
  other.table = "dense";
  CHECK(refused(other) == "--table 'dense' is no table of features; the job has item, user");
  other.table = "";
  CHECK(refused(other) == "name the table of the rows by --table; the job has item, user");
  other = good;
  other.key_of = [](const std::string& value) -> absl::StatusOr<Key> {
    if (value == "1") return absl::InvalidArgumentError("no such thing");
    return Key(7);
  };
  CHECK(refused(other) == good.keys + ":2: no such thing");
  other.rows = at + "/none";
  CHECK_THAT(refused(other), Catch::Contains(at + "/none"));
}

TEST_CASE("an output with something in it stays as it is", "[import]") {
  const TempFolder folder;
  const TrainingJob job = Job(folder.path());
  const std::string out = folder.path() + "/out";
  fs::create_directory(out);
  Write(out + "/mine", "x");
  const ImportSource rows = Rows(folder.path(), "item", 0, 3);
  const auto done = ImportRows(Options(job, out, {rows}));
  CHECK(absl::IsFailedPrecondition(done.status()));
  CHECK(done.status().message() == out + " has something in it; name an empty or new folder");
  fs::remove(out + "/mine");
  Import(Options(job, out, {rows}));
  // A job does not resume from it.
  TrainingJob resumes = job;
  resumes.mutable_spec()->mutable_checkpoint()->set_directory(folder.path() + "/ck");
  fs::create_directory(folder.path() + "/ck");
  fs::rename(out, folder.path() + "/ck/step-000000000000");
  EmbeddedOptions options;
  options.job = resumes;
  options.resume = true;
  CHECK_THAT(std::string(RunEmbedded(options).status().message()),
             Catch::Contains("the checkpoint to resume from is of another model"));
}

}  // namespace
}  // namespace strata
