// FORMAT.md suffices for base images and checkpoints: a program that knows the document alone
// (format_reader.py) reads them, checks every checksum, follows increments, and computes the model
// hash from the rows that it found.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "proto/core/ids.h"
#include "proto/strata/job.pb.h"
#include "storage/log/update_log.h"
#include "tests/server/shard/shard_fixture.h"
#include "tests/skip.h"
#include "tests/temp_folder.h"
#include "tests/tools/cluster/checkpoint/made_checkpoints.h"
#include "tools/cluster/checkpoint/verify.h"

namespace strata::storage {
namespace {

std::string Text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool HavePythonAndXxhash() {
  return std::system("python3 -c 'import ctypes; ctypes.CDLL(\"libxxhash.so.0\")' 2>/dev/null") ==
         0;
}
constexpr char kNeeds[] = "there is no python3, or no libxxhash.so.0";

struct ReadByDocument {
  int code = -1;
  std::vector<std::string> lines;
  std::string complaint;
};

ReadByDocument Read(const std::string& what, const std::string& path) {
  const TempFolder scratch;
  const std::string command =
      absl::StrCat("python3 tests/storage/format_reader.py ", what, " '", path, "' >",
                   scratch.path(), "/out 2>", scratch.path(), "/err");
  ReadByDocument read;
  read.code = std::system(command.c_str());
  read.lines = absl::StrSplit(Text(scratch.path() + "/out"), '\n', absl::SkipEmpty());
  read.complaint = Text(scratch.path() + "/err");
  return read;
}

std::string Hex(const std::vector<float>& floats) {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(floats.data()),
                                                  floats.size() * sizeof(float)));
}

TEST_CASE("a base image is as FORMAT.md says", "[format]") {
  if (!HavePythonAndXxhash()) STRATA_SKIP(kNeeds);
  const bool life_cycle = GENERATE(false, true);
  const auto tables = life_cycle ? server::TestTablesWithLifeCycle() : server::TestTables();
  const auto references = server::References(3, 3, 4, tables);
  TempFolder folder;
  const auto log = server::OpenLog(folder.path() + "/log");
  const auto shard = server::MakeShard(
      {.range = server::Ranges(3)[1], .id = 1, .log = log.get(), .tables = tables});
  const auto root = LaneNode{0, 3};
  for (uint64_t step = 1; step <= 4; ++step) {
    shard->Contribute(Step(step), root,
                      server::UpdateFor(server::NodeWork(3, step, root), shard->first_position(),
                                        shard->last_position()));
    REQUIRE(*shard->TryCommit());
  }
  const std::string path = folder.path() + "/image";
  REQUIRE(shard->WriteImage(path, 7).ok());
  const ReadByDocument read = Read("image", path);
  INFO(read.complaint);
  REQUIRE(read.code == 0);
  const server::Reference& now = references[4];
  const storage::HashSum hash = now.Hash(shard->first_position(), shard->last_position());
  const auto has = [&](const std::string& line) {
    INFO(line);
    CHECK(std::find(read.lines.begin(), read.lines.end(), line) != read.lines.end());
  };
  const PartitionRange range = server::Ranges(3)[1];
  has(absl::StrCat("job ", shard->options().job.value, " generation ",
                   shard->options().generation.value, " shard 1 partitions ", range.first.value,
                   " ", range.last.value, " of ", server::kPartitions));
  has("clock 4 log from 7");
  has("serves from 4");
  has(absl::StrFormat("hash %016x%016x", hash.high, hash.low));
  size_t rows = 0, before = 0, waiting = 0;
  for (const std::string& line : read.lines) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words[0] == "waiting") REQUIRE(absl::SimpleAtoi(words[1], &waiting));
    if (words[0] != "row" && words[0] != "before") continue;
    uint32_t table = 0;
    uint64_t position = 0;
    REQUIRE(absl::SimpleAtoi(words[1], &table));
    REQUIRE(absl::SimpleAtoi(words[2], &position));
    const bool is_row = words[0] == "row";
    const std::string weights =
        Hex((is_row ? now : references[3]).Weights(table, Position(position)));
    CHECK(words[3].substr(0, weights.size()) == weights);
    rows += is_row;
    before += !is_row;
  }
  CHECK(rows > 10);
  CHECK(before > 10);
  CHECK((waiting > 0) == life_cycle);
}

TEST_CASE("checkpoints are as FORMAT.md says, with increments", "[format]") {
  if (!HavePythonAndXxhash()) STRATA_SKIP(kNeeds);
  const std::string mode = GENERATE("bsp", "async");
  INFO(mode);
  const TempFolder folder;
  const std::vector<std::string> made =
      testing::MakeCheckpoints(folder.path(), 3, 3, mode, [](JobSpec& spec) {
        spec.mutable_storage()->set_shards_per_server(2);
        LifeCycleSpec& life = *spec.mutable_life_cycle();
        life.mutable_admission()->set_type("exact");
        life.mutable_admission()->set_min_steps(3);
        life.mutable_removal()->set_ttl_steps(1);
        life.mutable_removal()->set_every_steps(1);
      });
  for (size_t i = 0; i < made.size(); ++i) {
    const ReadByDocument read = Read("checkpoint", made[i]);
    INFO(made[i] << "\n" << read.complaint);
    REQUIRE(read.code == 0);
    REQUIRE(read.lines.size() == 3);
    CHECK(absl::EndsWith(read.lines[0], absl::StrCat("last increment ", i)));
    const auto summary = VerifyFolder(made[i]);  // reads by our own code
    REQUIRE(summary.ok());
    CHECK(read.lines[1] == "model hash " + summary->model_hash);
    CHECK(absl::StartsWith(read.lines[2], absl::StrCat("rows ", summary->rows, " ")));
  }
}

}  // namespace
}  // namespace strata::storage
