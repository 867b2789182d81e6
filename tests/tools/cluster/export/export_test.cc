// An export against the checkpoint's own rows, and against a program that knows nothing of Strata.
#include "tools/cluster/export/export.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/job.pb.h"
#include "storage/checkpoint/shard_file.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/skip.h"
#include "tests/small_disk.h"
#include "tests/temp_folder.h"
#include "tools/cluster/embedded/embedded.h"
#include "tools/cluster/embedded/predict.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

// Trains and returns the folder of the last checkpoint.
std::string Train(const TempFolder& folder, const std::string& model, uint32_t servers,
                  const std::string& optimizer = "adam") {
  EmbeddedOptions options;
  options.job = testing::SmallJob(folder.path());
  JobSpec& spec = *options.job.mutable_spec();
  spec.mutable_model()->set_type(model);
  if (model != "deepfm") spec.mutable_model()->clear_hidden();
  spec.mutable_optimizer()->mutable_sparse()->set_type(optimizer);
  spec.mutable_replicas()->set_servers(servers);
  spec.mutable_checkpoint()->set_directory(folder.path() + "/ck" + std::to_string(servers));
  auto status = RunEmbedded(options);
  INFO(status.status());
  REQUIRE(status.ok());
  INFO(status->conditions().rbegin()->message());
  REQUIRE(status->state() == SUCCEEDED);
  return status->checkpoint();
}

std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> Names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

ExportSummary Export(const ExportOptions& options) {
  auto summary = ExportCheckpoint(options);
  INFO(summary.status());
  REQUIRE(summary.ok());
  return *summary;
}

// The bytes behind the header of an npy file.
std::string Npy(const std::string& path) {
  const std::string bytes = Read(path);
  const auto at = [&bytes](size_t i) {
    return static_cast<size_t>(static_cast<uint8_t>(bytes[i]));
  };
  return bytes.substr(10 + at(8) + 256 * at(9));
}

// All rows of a hashed table, by position: keys, and rows as they are in the files.
void ReadRows(const std::string& checkpoint, std::string& keys, std::vector<std::string>& rows) {
  auto manifest = ReadManifest(checkpoint);
  REQUIRE(manifest.ok());
  std::map<uint64_t, std::pair<uint64_t, std::string>> by_position;
  for (const CheckpointFile& file : manifest->files()) {
    auto reader = storage::ShardFileReader::Open(checkpoint + "/" + file.name());
    REQUIRE(reader.ok());
    const storage::TableShape shape = (*reader)->header().tables[0];
    absl::Status read = (*reader)->ReadRows(
        shape.id, (*reader)->header().partitions,
        [&](std::span<const Position> positions, const uint8_t* at) {
          for (size_t i = 0; i < positions.size(); ++i) {
            const auto* row = reinterpret_cast<const char*>(at + i * shape.row_bytes());
            by_position[positions[i].value] = {shape.KeyAt(positions[i]).value,
                                               std::string(row, shape.row_bytes())};
          }
          return absl::OkStatus();
        });
    REQUIRE(read.ok());
  }
  for (const auto& [position, row] : by_position) {
    keys.append(reinterpret_cast<const char*>(&row.first), 8);
    rows.push_back(row.second);
  }
}

std::string Column(const std::vector<std::string>& rows, size_t offset, size_t bytes) {
  std::string out;
  for (const std::string& row : rows) out += row.substr(offset, bytes);
  return out;
}

TEST_CASE("arrays are the checkpoint's rows, bit for bit", "[export]") {
  TempFolder folder;
  const std::string checkpoint = Train(folder, "fm", 1);
  const std::string out = folder.path() + "/out";
  const ExportSummary summary =
      Export({.checkpoint_dir = checkpoint, .output = out, .plan = {.with_state = true}});
  std::string keys;
  std::vector<std::string> rows;
  ReadRows(checkpoint, keys, rows);
  REQUIRE(rows.size() > 100);
  CHECK(summary.rows == rows.size());
  CHECK(summary.checkpoint == checkpoint);
  CHECK(Npy(out + "/features.keys.npy") == keys);
  // 8 + 1 weights, m and v of the embedding, m and v of the weight, two numbers.
  CHECK(Npy(out + "/features.embedding.npy") == Column(rows, 0, 32));
  CHECK(Npy(out + "/features.weight.npy") == Column(rows, 32, 4));
  CHECK(Npy(out + "/features.embedding.state.m.npy") == Column(rows, 36, 32));
  CHECK(Npy(out + "/features.embedding.state.v.npy") == Column(rows, 68, 32));
  CHECK(Npy(out + "/features.weight.state.m.npy") == Column(rows, 100, 4));
  CHECK(Npy(out + "/features.weight.state.v.npy") == Column(rows, 104, 4));
  CHECK(Npy(out + "/features.last_step.npy") == Column(rows, 108, 4));
  CHECK(Npy(out + "/features.updates.npy") == Column(rows, 112, 4));
  uint64_t bytes = 0;
  for (const std::string& name : Names(out)) bytes += fs::file_size(out + "/" + name);
  CHECK(summary.bytes == bytes - fs::file_size(summary.index));
}

TEST_CASE("the bytes do not depend on how many servers wrote the checkpoint", "[export]") {
  TempFolder folder;
  const std::string one = Train(folder, "deepfm", 1), three = Train(folder, "deepfm", 3);
  for (const ExportFormat format : {ExportFormat::kNpy, ExportFormat::kSafetensors}) {
    const std::string a = folder.path() + "/a", b = folder.path() + "/b";
    const ExportPlanOptions plan = {.format = format, .with_state = true, .shard_bytes = 5000};
    Export({.checkpoint_dir = one, .output = a, .overwrite = true, .plan = plan});
    Export({.checkpoint_dir = three, .output = b, .overwrite = true, .plan = plan});
    REQUIRE(Names(a) == Names(b));
    CHECK(Names(a).size() > 3);
    for (const std::string& name : Names(a)) {
      if (name.find("index.json") != std::string::npos) continue;  // names the checkpoint
      INFO(name);
      CHECK(Read(a + "/" + name) == Read(b + "/" + name));
    }
  }
}

TEST_CASE("another program reads it and predicts the same", "[export]") {
  if (std::system("python3 -c '' >/dev/null 2>&1") != 0) {
    ReportSkipped("another program reads it and predicts the same", "there is no python3");
    return;
  }
  for (const std::string model : {"lr", "fm"}) {
    TempFolder folder;
    const std::string checkpoint = Train(folder, model, 2);
    const std::string npy = folder.path() + "/npy", safetensors = folder.path() + "/st";
    const std::string data = folder.path() + "/train.libfm";  // whose keys all have rows
    const std::string scores = folder.path() + "/scores.csv";
    Export({.checkpoint_dir = checkpoint, .output = npy});
    Export({.checkpoint_dir = checkpoint,
            .output = safetensors,
            .plan = {.format = ExportFormat::kSafetensors, .shard_bytes = 3000}});
    auto predicted = RunPredict({.checkpoint_dir = checkpoint, .inputs = {data}, .output = scores});
    REQUIRE(predicted.ok());
    const std::string command = "python3 tests/tools/cluster/export/oracle.py " + npy + " " +
                                safetensors + " " + data + " " + scores + " >" + folder.path() +
                                "/said 2>&1";
    const int code = std::system(command.c_str());
    INFO(Read(folder.path() + "/said"));
    CHECK(code == 0);
  }
}

TEST_CASE("a folder with something in it is refused, or only its export is replaced", "[export]") {
  TempFolder folder;
  const std::string checkpoint = Train(folder, "lr", 1);
  const std::string out = folder.path() + "/out";
  ExportOptions options = {.checkpoint_dir = checkpoint, .output = out};
  Export(options);
  const std::vector<std::string> npy = Names(out);
  std::ofstream(out + "/notes.txt") << "mine";
  CHECK(absl::IsFailedPrecondition(ExportCheckpoint(options).status()));
  options.overwrite = true;
  options.plan.format = ExportFormat::kSafetensors;
  Export(options);
  CHECK(Names(out) == std::vector<std::string>{"model-00001-of-00001.safetensors",
                                               "model.safetensors.index.json", "notes.txt"});
  options.plan.format = ExportFormat::kNpy;
  Export(options);
  std::vector<std::string> expected = npy;
  expected.push_back("notes.txt");
  std::sort(expected.begin(), expected.end());
  CHECK(Names(out) == expected);
  CHECK(Read(out + "/notes.txt") == "mine");
  // A file of somebody else with a name that is needed.
  const std::string other = folder.path() + "/other";
  fs::create_directories(other);
  std::ofstream(other + "/bias.npy") << "mine";
  options.output = other;
  const absl::Status taken = ExportCheckpoint(options).status();
  CHECK(absl::IsFailedPrecondition(taken));
  CHECK(std::string(taken.message()).find("bias.npy") != std::string::npos);
  CHECK(Names(other) == std::vector<std::string>{"bias.npy"});
  // An index that names what lies elsewhere removes nothing there.
  const std::string evil = folder.path() + "/evil";
  fs::create_directories(evil);
  std::ofstream(evil + "/index.json")
      << R"({"format":"strata-export","files":[{"name":"../other/bias.npy"},{"name":"bias.npy"}]})";
  options.output = evil;
  Export(options);
  CHECK(Read(other + "/bias.npy") == "mine");
}

TEST_CASE("what a killed export left is replaced", "[export]") {
  TempFolder folder;
  const std::string checkpoint = Train(folder, "lr", 1);
  const std::string out = folder.path() + "/out";
  fs::create_directories(out);
  std::ofstream(out + "/.strata-export.json")
      << R"({"format":"strata-export","files":[{"name":"bias.npy"},{"name":"old.npy"}]})";
  std::ofstream(out + "/bias.npy.partial") << "half";
  std::ofstream(out + "/old.npy") << "complete, but no index names it";
  ExportOptions options = {.checkpoint_dir = checkpoint, .output = out};
  CHECK(absl::IsFailedPrecondition(ExportCheckpoint(options).status()));
  options.overwrite = true;
  Export(options);
  CHECK(Names(out) == std::vector<std::string>{"bias.npy", "features.keys.npy",
                                               "features.weight.npy", "index.json"});
}

TEST_CASE("damage is found, and nothing of the export stays", "[export]") {
  TempFolder folder;
  const std::string checkpoint = Train(folder, "lr", 1);
  const std::string out = folder.path() + "/out";
  ExportOptions options = {.checkpoint_dir = checkpoint, .output = out};
  auto manifest = ReadManifest(checkpoint);
  REQUIRE(manifest.ok());
  const std::string file = checkpoint + "/" + manifest->files(0).name();
  std::string bytes = Read(file);
  bytes[300] = static_cast<char>(bytes[300] ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
  const absl::Status damaged = ExportCheckpoint(options).status();
  CHECK(absl::IsDataLoss(damaged));
  CHECK(std::string(damaged.message()).find(manifest->files(0).name()) != std::string::npos);
  CHECK(!fs::exists(out));
  options.checkpoint_dir = folder.path() + "/gone";
  CHECK(absl::IsNotFound(ExportCheckpoint(options).status()));
}

TEST_CASE("a full disk is told, and an earlier export stays", "[export]") {
  TempFolder folder;
  SmallDisk disk(folder.path() + "/disk", 256 << 10);
  if (!disk.mounted()) {
    ReportSkipped("a full disk is told, and an earlier export stays", disk.reason());
    return;
  }
  const std::string checkpoint = Train(folder, "fm", 1);
  const std::string out = disk.path() + "/out";
  ExportOptions options = {.checkpoint_dir = checkpoint, .output = out};
  Export(options);
  const std::vector<std::string> before = Names(out);
  disk.Fill();
  options.overwrite = true;
  const absl::Status full = ExportCheckpoint(options).status();
  CHECK(absl::IsResourceExhausted(full));
  CHECK(std::string(full.message()).find("free disk space") != std::string::npos);
  CHECK(Names(out) == before);
  disk.Free();
  Export(options);
  CHECK(Names(out) == before);
}

}  // namespace
}  // namespace strata
