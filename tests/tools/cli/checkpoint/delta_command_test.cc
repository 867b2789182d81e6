// `strata delta` on files that the servers' and the exporter's own writers made.
#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/core/ids.h"
#include "proto/core/position.h"
#include "storage/delta/file.h"
#include "storage/delta/format.h"
#include "storage/delta/removed_stream.h"
#include "tests/temp_folder.h"
#include "tools/cli/checkpoint/delta_report.h"

namespace strata {
namespace {

using storage::DeltaHeader;
using storage::DeltaWriter;
using storage::RemovedWriter;
using Json = nlohmann::json;
using Lines = std::vector<std::string>;

std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

struct Result {
  int exit_code = -1;
  std::string out, err;
};

// Runs `strata delta` in a folder.
Result Run(const TempFolder& folder, const std::string& arguments, const std::string& out = "out") {
  const std::string program = std::string(std::getenv("TEST_SRCDIR")) + "/strata/tools/cli/strata";
  const int status = std::system(absl::StrCat("cd '", folder.path(), "' && '", program, "' delta ",
                                              arguments, " >", out, " 2>err </dev/null")
                                     .c_str());
  Result result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
  if (out == "out") result.out = Read(folder.path() + "/out");
  result.err = Read(folder.path() + "/err");
  return result;
}

Lines LinesOf(const std::string& text) { return absl::StrSplit(text, '\n', absl::SkipEmpty()); }

// Two weights, a float of state: keys 7 and 8 have rows, key 9 is gone; the dense row 3 as well.
void WriteDelta(const std::string& path, bool with_state) {
  DeltaHeader header;
  header.with_state = with_state;
  header.all_tables = true;
  header.from = {1000, {.low = 0xabc, .high = 0}};
  header.to = {2000, {.low = 0xdef, .high = 1}};
  header.tables = {{TableId(0), TableKind::kHashed, 2, 1}, {TableId(1), TableKind::kDense, 1, 0}};
  auto writer = DeltaWriter::Create(path, header);
  REQUIRE(writer.ok());
  const auto row = [&](std::vector<float> weights, std::vector<float> state, uint32_t last_step,
                       uint32_t updates) {
    if (with_state) weights.insert(weights.end(), state.begin(), state.end());
    std::vector<uint8_t> bytes(weights.size() * 4);
    std::memcpy(bytes.data(), weights.data(), bytes.size());
    if (!with_state) return bytes;
    bytes.resize(bytes.size() + 8);
    std::memcpy(bytes.data() + bytes.size() - 8, &last_step, 4);
    std::memcpy(bytes.data() + bytes.size() - 4, &updates, 4);
    return bytes;
  };
  std::map<uint64_t, uint64_t> keys;  // by position
  for (const uint64_t key : {7, 8, 9})
    keys[PositionOf(Key(key), TableSalt(TableId(0))).value] = key;
  for (const auto& [position, key] : keys) {
    const absl::Status s =
        key == 9 ? (*writer)->Delete(TableId(0), Position(position))
                 : (*writer)->Upsert(TableId(0), Position(position),
                                     row({static_cast<float>(key), 0.1f}, {-2.5f}, 1999, 4));
    REQUIRE(s.ok());
  }
  REQUIRE((*writer)->Upsert(TableId(1), Position(3), row({1e-20f}, {}, 2000, 2000)).ok());
  REQUIRE((*writer)->Finish().ok());
}

// A shard's removals of steps from + 1 .. to, two keys each.
void WriteRemovals(const std::string& folder, uint64_t generation, uint64_t from, uint64_t to,
                   uint32_t shard) {
  RemovedWriter writer({folder,
                        {Generation(generation), Step(from), ShardId(shard)},
                        {{TableId(0), TableKind::kHashed, 17, 17}},
                        nullptr});
  REQUIRE(writer.StartNew().ok());
  for (uint64_t step = from + 1; step <= to; ++step) {
    const uint64_t first = generation << 32 | step << 8 | shard;
    REQUIRE(writer.MakeRoom(TableId(0), step - 1, step).ok());
    writer.Add(TableId(0), std::vector<Position>{Position(first), Position(first + 1)});
    REQUIRE(writer.EndCommit().ok());
  }
}

std::string RemovedLine(uint64_t generation, uint64_t step, uint32_t shard, uint64_t i) {
  const Position position((generation << 32 | step << 8 | shard) + i);
  return absl::StrCat("remove\t0\t", KeyOf(position, TableSalt(TableId(0))).value, "\t", step);
}

TEST_CASE("a delta's header and counts are data, its rows on request", "[delta]") {
  const TempFolder folder;
  WriteDelta(folder.path() + "/delta-000000001000-000000002000.strata", true);
  WriteDelta(folder.path() + "/weights", false);
  const Result text = Run(folder, "delta-000000001000-000000002000.strata");
  CHECK(text.exit_code == 0);
  CHECK(text.err.empty());
  CHECK(text.out ==
        "delta-000000001000-000000002000.strata\n"
        "  from step 1,000, rows 00000000000000000000000000000abc\n"
        "  to step 2,000, rows 00000000000000010000000000000def\n"
        "  all tables of the model; rows are whole: weights, state, metadata\n"
        "  table 0, hashed, rows of 2 weights and 1 floats of state: 2 to put, 1 to remove\n"
        "  table 1, dense, rows of 1 weights and 0 floats of state: 1 to put, 0 to remove\n"
        "  " +
            std::to_string(std::filesystem::file_size(folder.path() +
                                                      "/delta-000000001000-000000002000.strata")) +
            " bytes; every checksum is right\n");
  const Result json = Run(folder, ". --json");  // one of the two is called a delta
  CHECK(json.exit_code == 0);
  CHECK(json.err.empty());
  Json files = Json::parse(json.out)["files"];
  REQUIRE(files.size() == 1);
  CHECK(files[0]["kind"] == "delta");
  CHECK(files[0]["from"]["step"] == 1000);
  CHECK(files[0]["to"]["rowsHash"] == "00000000000000010000000000000def");
  CHECK(files[0]["withState"] == true);
  CHECK(files[0]["whole"] == false);
  CHECK(files[0]["tables"][0]["put"] == 2);
  CHECK(files[0]["tables"][0]["removed"] == 1);
  CHECK(files[0]["tables"][1]["kind"] == "dense");
  const Result rows = Run(folder, "--rows delta-000000001000-000000002000.strata");
  CHECK(rows.exit_code == 0);
  CHECK(rows.err == text.out);
  Lines lines = LinesOf(rows.out);
  REQUIRE(lines.size() == 4);
  CHECK(lines.back() == "put\t1\t3\t9.99999968e-21\t\t2000\t2000");
  lines.pop_back();
  std::sort(lines.begin(), lines.end());
  CHECK(lines == Lines{"put\t0\t7\t7 0.100000001\t-2.5\t1999\t4",
                       "put\t0\t8\t8 0.100000001\t-2.5\t1999\t4", "remove\t0\t9"});
  const Lines objects = LinesOf(Run(folder, "--rows --json weights").out);
  REQUIRE(objects.size() == 4);
  for (const std::string& line : objects) {
    Json row = Json::parse(line);
    if (row["key"] != "7") continue;
    CHECK(row["table"] == 0);
    CHECK(row["removed"] == false);
    CHECK(row["weights"][1].get<float>() == 0.1f);
    CHECK_FALSE(row.contains("state"));
  }
}

TEST_CASE("removed keys are those that count, whatever was rolled back or cut off", "[delta]") {
  const TempFolder folder;
  const std::string removed = folder.path() + "/removed";
  WriteRemovals(removed, 1, 0, 5, 0);
  WriteRemovals(removed, 1, 0, 5, 1);
  WriteRemovals(removed, 2, 3, 4, 0);  // undoes steps 4 and 5
  const std::string last = removed + "/removed-00002-000000000003-00000.strata";
  Lines expected;
  for (const uint32_t shard : {0u, 1u}) {
    for (uint64_t step = 1; step <= 3; ++step) {
      for (const uint64_t i : {0, 1}) expected.push_back(RemovedLine(1, step, shard, i));
    }
  }
  const Lines without = expected;
  for (const uint64_t i : {0, 1}) expected.push_back(RemovedLine(2, 4, 0, i));
  CHECK(LinesOf(Run(folder, "removed --rows").out) == expected);
  Json files = Json::parse(Run(folder, "removed --json").out)["files"];
  REQUIRE(files.size() == 3);
  CHECK(files[0]["kind"] == "removals");
  CHECK(files[1]["shard"] == 1);
  CHECK(files[1]["commits"] == 3);
  CHECK(files[1]["lastStep"] == 3);
  CHECK(files[1]["undoneCommits"] == 2);
  CHECK(files[2]["generation"] == 2);
  CHECK(files[2]["from"] == 3);
  CHECK(files[2]["tables"][0]["removed"] == 2);
  CHECK(files[2]["tornBytes"] == 0);
  // A file alone is read as it is, whatever it is called.
  std::filesystem::copy_file(removed + "/removed-00001-000000000000-00001.strata",
                             folder.path() + "/renamed");
  CHECK(LinesOf(Run(folder, "renamed --rows").out).size() == 10);
  Json row = Json::parse(LinesOf(Run(folder, "renamed --rows --json").out)[2]);
  CHECK(row["step"] == 2);
  CHECK(row["removed"] == true);
  CHECK(row["key"].is_string());
  // Its commit is in progress.
  const uint64_t size = std::filesystem::file_size(last);
  std::filesystem::resize_file(last, size - 3);
  const Result torn = Run(folder, "removed --rows");
  CHECK(torn.exit_code == 0);
  CHECK(LinesOf(torn.out) == without);
  CHECK(torn.err.find(absl::StrCat("not counted: the last ", size - 3, " bytes")) !=
        std::string::npos);
  std::filesystem::resize_file(last, 0);
  CHECK(LinesOf(Run(folder, "removed --rows").out) == without);
}

TEST_CASE("what cannot be read is told by file and offset, and nothing of it is printed",
          "[delta]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/delta";
  WriteDelta(path, true);
  const std::string whole = Read(path);
  const auto refused = [&](const std::string& arguments, int exit_code,
                           const std::string& message) {
    const Result r = Run(folder, arguments);
    INFO(arguments << ": " << r.err);
    CHECK(r.exit_code == exit_code);
    CHECK(r.out.empty());
    CHECK(r.err == "strata: " + message + "\n");
  };
  refused("gone", 2, "gone: no such file or folder");
  std::filesystem::create_directory(folder.path() + "/empty");
  refused("empty", 2,
          "empty: no deltas (delta-*.strata) and no removed keys (removed-*.strata) are in this "
          "folder");
  Write(path, "PAR1" + whole.substr(4));
  refused("delta --rows", 1, "delta, offset 0: this is no delta");
  Write(path, "");
  refused("delta", 1, "delta, offset 0: too short for a delta");
  Write(path, whole.substr(0, whole.size() - 1));
  refused("delta --rows --json", 1,
          absl::StrCat("delta, offset ", whole.size() - 56, ": a block beyond the file's end"));
  Write(path, whole + "x");
  refused("delta --rows", 1,
          absl::StrCat("delta, offset ", whole.size() - 56, ": bytes behind the end"));
  std::string flipped = whole;
  flipped[88 + 32 + 45] ^= 4;
  Write(path, flipped);
  refused("delta --rows", 1, "delta, offset 120: a block's checksum is wrong");
  // Of a stream the place is that of the delta, and that within it.
  const std::string removed = folder.path() + "/removed";
  WriteRemovals(removed, 1, 0, 2, 0);
  const std::string file = "removed/removed-00001-000000000000-00000.strata";
  std::string bytes = Read(folder.path() + "/" + file);
  const size_t second = bytes.size() / 2;
  bytes[second + 110 + 40] ^= 1;
  Write(folder.path() + "/" + file, bytes);
  const Result r = Run(folder, "removed");
  CHECK(r.exit_code == 1);
  CHECK(r.out.empty());
  CHECK(r.err == absl::StrCat("strata: ", file, ", delta at ", second,
                              ", offset 104: a block's checksum is wrong\n"));
  // A full disk takes no rows.
  Write(path, whole);
  CHECK(Run(folder, "delta --rows", "/dev/full").exit_code == 1);
}

TEST_CASE("no flipped bit and no cut passes, and no row of a damaged delta is seen", "[delta]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/delta";
  WriteDelta(path, true);
  const std::string whole = Read(path);
  size_t seen = 0;
  const auto damaged = [&] {
    seen = 0;
    const absl::Status s = ReadDeltas(path, [&](const DeltaRow&) {
                             ++seen;
                             return absl::OkStatus();
                           }).status();
    INFO(s);
    CHECK(absl::IsDataLoss(s));
    CHECK(s.message().find(path + ", offset ") == 0);
    CHECK(seen == 0);
  };
  for (size_t at = 0; at < whole.size(); ++at) {
    INFO("byte " << at);
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    Write(path, bytes);
    damaged();
    Write(path, whole.substr(0, at));
    damaged();
  }
  Write(path, whole);
  CHECK(ReadDeltas(path, nullptr).ok());
}

}  // namespace
}  // namespace strata
