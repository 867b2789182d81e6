// What users do with checkpoints: increments, verify, compare, repair, quantise, and going on from
// one on another number of servers.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/small_job.h"
#include "tests/temp_folder.h"
#include "tests/tools/cluster/checkpoint/made_checkpoints.h"
#include "tools/cluster/checkpoint/diff.h"
#include "tools/cluster/checkpoint/quantise.h"
#include "tools/cluster/checkpoint/quantised_copy.h"
#include "tools/cluster/checkpoint/repair.h"
#include "tools/cluster/checkpoint/rows.h"
#include "tools/cluster/checkpoint/verify.h"
#include "tools/cluster/embedded/embedded.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using Rows = std::map<std::pair<uint32_t, uint64_t>, std::vector<uint8_t>>;

Rows RowsOf(const std::string& folder) {
  const auto rows = CheckpointRows::Open(folder);
  INFO(rows.status());
  REQUIRE(rows.ok());
  Rows out;
  for (uint32_t t = 0; t < rows->tables().tables.size(); ++t) {
    uint64_t n = 0;
    REQUIRE(rows->ReadAll(t,
                          [&](Position position, const uint8_t* row) {
                            out[{t, position.value}].assign(row, row + rows->layout(t).row_bytes());
                            ++n;
                            return absl::OkStatus();
                          })
                .ok());
    REQUIRE(n == rows->rows(t));
  }
  return out;
}

uint32_t Increments(const std::string& folder) {
  const auto manifest = ReadManifest(folder);
  REQUIRE(manifest.ok());
  uint32_t most = 0;
  for (const CheckpointFile& file : manifest->files()) most = std::max(most, file.sequence());
  return most;
}

void Damage(const std::string& path, size_t at) {
  std::string bytes;
  {
    std::ifstream in(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  REQUIRE(at < bytes.size());
  bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
  // A file of its own: other checkpoints may share this one's.
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST_CASE("increments: each checkpoint is whole by itself", "[checkpoint]") {
  const std::string mode = GENERATE("bsp", "async");
  TempFolder folder;
  const std::vector<std::string> made = testing::MakeCheckpoints(folder.path(), 3, 4, mode);
  const uint32_t expected[] = {0, 1, 2, 0};
  for (size_t i = 0; i < made.size(); ++i) {
    INFO(made[i]);
    CHECK(Increments(made[i]) == expected[i]);
    const auto summary = VerifyFolder(made[i]);
    INFO(summary.status());
    REQUIRE(summary.ok());
    CHECK(summary->rows == RowsOf(made[i]).size());
  }
  // What an increment follows may go.
  const Rows third = RowsOf(made[2]);
  REQUIRE(RemoveCheckpoint(made[0]).ok());
  REQUIRE(RemoveCheckpoint(made[1]).ok());
  REQUIRE(VerifyFolder(made[2]).ok());
  REQUIRE(RowsOf(made[2]) == third);
}

TEST_CASE("a comparison counts what the rows say", "[checkpoint]") {
  TempFolder folder;
  const std::vector<std::string> made = testing::MakeCheckpoints(folder.path(), 4, 3);
  const auto same = DiffCheckpoints(made[1], made[1], 5);
  REQUIRE(same.ok());
  for (const TableDifference& t : same->tables) CHECK(t.added + t.removed + t.changed == 0);
  for (const auto& [x, y] : {std::pair(0, 2), std::pair(2, 1)}) {
    const Rows a = RowsOf(made[x]), b = RowsOf(made[y]);
    const auto diff = DiffCheckpoints(made[x], made[y], 5);
    INFO(diff.status());
    REQUIRE(diff.ok());
    std::vector<TableDifference> expected(diff->tables.size());
    for (const auto& [at, row] : a) {
      ++expected[at.first].rows_a;
      expected[at.first].removed += !b.contains(at);
      expected[at.first].changed += b.contains(at) && b.at(at) != row;
    }
    for (const auto& [at, row] : b) {
      ++expected[at.first].rows_b;
      expected[at.first].added += !a.contains(at);
    }
    for (size_t t = 0; t < expected.size(); ++t) {
      const TableDifference& found = diff->tables[t];
      CHECK(found.rows_a == expected[t].rows_a);
      CHECK(found.rows_b == expected[t].rows_b);
      CHECK(found.added == expected[t].added);
      CHECK(found.removed == expected[t].removed);
      CHECK(found.changed == expected[t].changed);
      REQUIRE(found.top.size() == std::min<size_t>(5, found.changed));
      CHECK(std::is_sorted(found.top.begin(), found.top.end(),
                           [](const auto& p, const auto& q) { return p.distance > q.distance; }));
    }
  }
}

TEST_CASE("damage is found and named; repair goes back to the last whole one", "[checkpoint]") {
  TempFolder folder;
  const std::vector<std::string> made = testing::MakeCheckpoints(folder.path(), 1, 3);
  const std::string directory = folder.path() + "/checkpoints";
  const std::string manifest = made[2] + "/" + kManifestName;
  std::string whole;
  {
    std::ifstream in(manifest, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (size_t bit = 0; bit < whole.size() * 8; bit += 53) {
    std::string bad = whole;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    std::ofstream(manifest, std::ios::binary | std::ios::trunc) << bad;
    const absl::Status s = ReadManifest(made[2]).status();
    INFO("bit " << bit << ": " << s);
    REQUIRE(absl::IsDataLoss(s));
    REQUIRE(std::string(s.message()).find(manifest) != std::string::npos);
  }
  std::ofstream(manifest, std::ios::binary | std::ios::trunc) << whole;
  REQUIRE(VerifyFolder(made[2]).ok());

  const auto parsed = ReadManifest(made[1]);
  REQUIRE(parsed.ok());
  std::mt19937_64 random(3);
  const std::string file = made[1] + "/" + parsed->files(1).name();
  const size_t at = random() % parsed->files(1).bytes();
  Damage(file, at);
  const absl::Status found = VerifyFolder(made[1]).status();
  REQUIRE(absl::IsDataLoss(found));
  REQUIRE(std::string(found.message()).find(file) != std::string::npos);
  const auto other = ReadManifest(made[2]);
  REQUIRE(other.ok());
  fs::resize_file(made[2] + "/" + other->files(0).name(), 100);
  const std::string begun = directory + "/step-999999999999";
  fs::create_directories(begun);

  auto report = RepairCheckpoints(directory, RepairMode::kOnlyLook);
  REQUIRE(report.ok());
  CHECK(report->damaged.size() == 2);
  CHECK(fs::exists(made[2]));
  report = RepairCheckpoints(directory, RepairMode::kMoveDamaged);
  REQUIRE(report.ok());
  REQUIRE(report->damaged.size() == 2);
  CHECK(report->damaged[0].folder == made[2]);
  CHECK(report->damaged[1].folder == made[1]);
  REQUIRE(report->newest.has_value());
  CHECK(report->newest->directory == made[0]);
  // Perhaps beside one that the job was writing when it was cancelled.
  CHECK(std::count(report->incomplete.begin(), report->incomplete.end(), begun) == 1);
  for (const std::string& f : report->incomplete) CHECK_FALSE(fs::exists(f + "/" + kManifestName));
  for (const DamagedFolder& d : report->damaged) {
    CHECK_FALSE(fs::exists(d.folder));
    CHECK(fs::exists(d.moved_to + "/" + kManifestName));
  }
  const auto newest = NewestCheckpoint(directory);
  REQUIRE(newest.ok());
  CHECK((*newest)->folder == made[0]);
  CHECK(RepairCheckpoints(directory, RepairMode::kMoveDamaged)->damaged.empty());
}

// Every pair of numbers: shard_test, and here with STRATA_LONG.
TEST_CASE("N servers' checkpoint goes on on M, to one model", "[checkpoint]") {
  std::string expected;
  for (uint32_t from = 1; from <= 5; ++from) {
    TempFolder folder;
    EmbeddedOptions options;
    options.job = testing::SmallJob(folder.path());
    JobSpec& spec = *options.job.mutable_spec();
    spec.mutable_data()->clear_eval();
    spec.mutable_replicas()->set_servers(from);
    spec.mutable_training()->set_epochs(1);
    spec.mutable_storage()->set_shards_per_server(2);
    spec.mutable_checkpoint()->set_directory(folder.path() + "/one");
    const auto first = RunEmbedded(options);
    REQUIRE(first.ok());
    REQUIRE(first->state() == SUCCEEDED);
    for (uint32_t to = 1; to <= 5; ++to) {
      if (std::getenv("STRATA_LONG") == nullptr && to != 6 - from && to != 1 + from % 5) continue;
      const std::string copy = folder.path() + "/to" + std::to_string(to);
      fs::copy(folder.path() + "/one", copy, fs::copy_options::recursive);
      spec.mutable_replicas()->set_servers(to);
      spec.mutable_training()->set_epochs(2);
      spec.mutable_checkpoint()->set_directory(copy);
      options.resume = true;
      const auto second = RunEmbedded(options);
      options.resume = false;
      INFO(from << " to " << to << ": " << second.status());
      REQUIRE(second.ok());
      INFO(second->conditions().rbegin()->message());
      REQUIRE(second->state() == SUCCEEDED);
      if (expected.empty()) expected = second->model_hash();
      REQUIRE(second->model_hash() == expected);
    }
  }
}

TEST_CASE("halves: every one, and the nearest of every float", "[checkpoint]") {
  for (uint32_t h = 0; h < 65536; ++h) {
    const float x = FromHalf(static_cast<uint16_t>(h));
    if (!std::isnan(x)) REQUIRE(ToHalf(x) == h);
  }
  std::mt19937_64 random(5);
  for (int i = 0; i < 200000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    float x;
    std::memcpy(&x, &bits, 4);
    if (!(std::abs(x) < 65504)) continue;
    const uint16_t h = ToHalf(x);
    const double error = std::abs(static_cast<double>(FromHalf(h)) - x);
    for (const int step : {-1, 1}) {
      const auto beside = static_cast<uint16_t>(h + step);
      if ((beside & 0x7c00) == 0x7c00 || ((beside ^ h) & 0x8000) != 0) continue;
      const double other = std::abs(static_cast<double>(FromHalf(beside)) - x);
      REQUIRE((error < other || (error == other && h % 2 == 0)));
    }
  }
}

TEST_CASE("quantised copies have the rows, and the error that they state", "[checkpoint]") {
  TempFolder folder;
  const std::vector<std::string> made = testing::MakeCheckpoints(folder.path(), 2, 2);
  const auto rows = CheckpointRows::Open(made[1]);
  REQUIRE(rows.ok());
  for (const QuantisedType type : {QuantisedType::kFp16, QuantisedType::kInt8}) {
    const std::string out = folder.path() + "/" + std::to_string(static_cast<int>(type));
    const auto summary = QuantiseCheckpoint({made[1], out, type});
    INFO(summary.status());
    REQUIRE(summary.ok());
    const auto payload = [&](const std::string& name) {
      std::ifstream in(out + "/" + name, std::ios::binary);
      const std::string bytes(std::istreambuf_iterator<char>(in), {});
      REQUIRE(bytes.size() > 64);
      const auto header = static_cast<uint8_t>(bytes[8]) + 256u * static_cast<uint8_t>(bytes[9]);
      REQUIRE((10 + header) % 64 == 0);
      return bytes.substr(10 + header);
    };
    const std::string keys = payload("features.keys.npy");
    const std::string elements = payload("features.embedding.npy");
    const std::string scales =
        type == QuantisedType::kInt8 ? payload("features.embedding.scale.npy") : "";
    size_t i = 0;
    double largest = 0;
    REQUIRE(rows->ReadAll(0,
                          [&](Position position, const uint8_t* row) {
                            uint64_t key;
                            std::memcpy(&key, keys.data() + 8 * i, 8);
                            CHECK(Key(key) == rows->tables().tables[0].KeyAtPosition(position));
                            for (size_t k = 0; k < 8; ++k) {
                              float x, y;
                              std::memcpy(&x, row + 4 * k, 4);
                              if (type == QuantisedType::kFp16) {
                                uint16_t half;
                                std::memcpy(&half, elements.data() + 2 * (8 * i + k), 2);
                                y = FromHalf(half);
                              } else {
                                std::memcpy(&y, scales.data() + 4 * i, 4);
                                y *= static_cast<float>(static_cast<int8_t>(elements[8 * i + k]));
                              }
                              largest = std::max(largest, std::abs(static_cast<double>(x) - y));
                            }
                            ++i;
                            return absl::OkStatus();
                          })
                .ok());
    CHECK(i == rows->rows(0));
    CHECK(elements.size() == i * 8 * (type == QuantisedType::kFp16 ? 2 : 1));
    const auto embedding =
        std::find_if(summary->arrays.begin(), summary->arrays.end(),
                     [](const auto& a) { return a.name == "features.embedding"; });
    REQUIRE(embedding != summary->arrays.end());
    CHECK(embedding->largest_error == largest);
    CHECK(largest > 0);
    CHECK(embedding->rms_error < 0.01 * embedding->rms);
    CHECK(absl::IsFailedPrecondition(QuantiseCheckpoint({made[1], out, type}).status()));
  }
}

std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("a flipped bit in any file of a quantised copy is found", "[checkpoint]") {
  TempFolder folder;
  const std::string checkpoint = testing::MakeCheckpoints(folder.path(), 1, 1).front();
  const std::string out = folder.path() + "/copy", index = out + "/index.json";
  const auto made = QuantiseCheckpoint({checkpoint, out, QuantisedType::kInt8});
  REQUIRE(made.ok());
  const auto whole = VerifyQuantised(out);
  INFO(whole.status());
  REQUIRE(whole.ok());
  CHECK(whole->step == made->step);
  CHECK(whole->bytes == made->bytes);
  CHECK(whole->type == "int8");
  CHECK(IsQuantisedCopy(out));
  CHECK_FALSE(IsQuantisedCopy(checkpoint));
  std::vector<std::string> names = {"index.json"};
  for (const QuantisedFile& f : made->files) names.push_back(f.name);
  CHECK(whole->files + 1 == names.size());
  size_t there = 0;
  for (const auto& entry : std::filesystem::directory_iterator(out)) {
    there += std::find(names.begin(), names.end(), entry.path().filename()) != names.end();
  }
  CHECK(there == names.size());
  for (const std::string& name : names) {
    const std::string path = out + "/" + name, text = ReadText(path);
    const auto found = [&](const std::string& damaged) {
      std::ofstream(path, std::ios::binary) << damaged;
      const absl::Status s = VerifyQuantised(out).status();
      INFO(name << ": " << s);
      REQUIRE(absl::IsDataLoss(s));
      REQUIRE(std::string(s.message()).find(path) != std::string::npos);
    };
    // Every byte of the index, some of the arrays.
    const size_t step = name == "index.json" ? 1 : 1 + text.size() / 100;
    for (size_t at = 0; at < text.size(); at += step) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
      found(damaged);
    }
    for (const size_t size : {size_t{0}, text.size() / 2, text.size() - 1}) {
      found(text.substr(0, size));
    }
    found(text + "x");
    if (name != "index.json") {
      std::filesystem::remove(path);
      CHECK(absl::IsDataLoss(VerifyQuantised(out).status()));
    }
    std::ofstream(path, std::ios::binary) << text;
  }
  REQUIRE(VerifyQuantised(out).ok());
  std::ofstream(index, std::ios::binary) << R"({"format": "strata-quantised", "version": 1})";
  CHECK(absl::IsUnimplemented(VerifyQuantised(out).status()));
  std::filesystem::remove(index);
  CHECK(absl::IsNotFound(VerifyQuantised(out).status()));
  CHECK_FALSE(IsQuantisedCopy(out));
}

}  // namespace
}  // namespace strata
