// What an import refuses, and what it leaves and finds in its folder.
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/runtime/files/file_system.h"
#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/embedded_training.h"
#include "tests/storage/io/scripted_files.h"
#include "tests/temp_folder.h"
#include "tests/tools/cluster/import/import_job.h"
#include "tests/tools/cluster/import/written_arrays.h"
#include "tests/worker/data/files/compressed.h"
#include "tools/cluster/import/import.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::BytesOf;
using testing::Import;
using testing::Job;
using testing::Npy;
using testing::NpyOf;
using testing::Options;
using testing::Refused;
using testing::Rows;
using testing::Safetensors;
using testing::Tensor;
using testing::Write;

TEST_CASE("what is wrong with rows and keys is named", "[import]") {
  const TempFolder folder;
  const TrainingJob job = Job(folder.path());
  const std::string& at = folder.path();
  const ImportOptions options = Options(job, at + "/out", {});
  const auto refused = [&](ImportSource source) {
    ImportOptions other = options;
    other.sources = {std::move(source)};
    return Refused(other);
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
  // Compressed, as data files may be.
  CHECK(keys(Gzip("5\n6\n5\n")) ==
        at + "/keys:1 and " + at + "/keys:3 have the same key, 5; leave one of the rows out");
  const std::string gzip = Gzip("5\n6\n7\n");
  CHECK_THAT(keys(gzip.substr(0, gzip.size() - 1)), Catch::Contains("input file " + at + "/keys"));
  CHECK(keys(Zstd(Npy("<u8", "(3,)", BytesOf<uint64_t>({7, 8, 9})))) ==
        at + "/keys is a compressed npy array; decompress it");

  // There is nothing to import.
  CHECK(rows(Npy("<f4", "(0, 4)", "")) ==
        at + "/rows has no rows; give the file that has them, or leave it out");
  CHECK_THAT(rows(Safetensors("{" + Tensor("a", "F32", "[0, 4]", 0, 0) + "}", "")),
             Catch::Contains("has no rows"));

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

// Whatever a file lost or has too much of.
TEST_CASE("broken files are each told in one line, and leave nothing", "[import]") {
  const TempFolder folder;
  const TrainingJob job = Job(folder.path());
  const std::string at = folder.path() + "/broken";
  const ImportSource good = Rows(folder.path(), "item", 0, 3);
  ImportOptions options = Options(job, folder.path() + "/out", {good});
  const auto refused = [&](const std::string& bytes, bool keys) {
    Write(at, bytes);
    options.sources[0].keys = keys ? at : good.keys;
    options.sources[0].rows = keys ? good.rows : at;
    const std::string text = Refused(options);
    INFO(text);
    CHECK(text.find(at) != std::string::npos);
    CHECK(text.find("; ") != std::string::npos);  // and what to do
    CHECK(text.size() < 500);
  };
  const std::string data = BytesOf(std::vector<float>(12, 1));
  const std::string files[] = {Npy("<f4", "(3, 4)", data),
                               Safetensors("{" + Tensor("a", "F32", "[3, 4]", 0, 48) + "}", data)};
  for (const std::string& file : files) {
    for (size_t length = 0; length < file.size(); ++length) refused(file.substr(0, length), false);
  }
  const std::string keys = Npy("<u8", "(3,)", BytesOf<uint64_t>({7, 8, 9}));
  // Fewer than the six first bytes are text.
  for (size_t length = 0; length < keys.size(); ++length) refused(keys.substr(0, length), true);
  refused(files[0] + "x", false);
  refused(keys + "x", true);
  refused(Npy("<f4", "(3, 4)", data + data), false);
  refused(NpyOf("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }", data), false);
  refused(NpyOf("{'descr': '<f4\n', 'fortran_order': False, 'shape': (3, 4), }", data), false);
  refused(std::string(files[0]).replace(8, 2, "\xff\xff"), false);
  for (const char* descr : {"<f2", "<f8", ">f4", "<i4", "<U1", "|O", "<c8", "=f4", "", "<f4<f4"}) {
    refused(Npy(descr, "(3, 4)", data), false);
  }
  for (const char* shape : {"(4, 3)", "(3,)", "()", "(3, 4, 1)", "(3, -4)", "(3, 4.0)",
                            "(18446744073709551615, 4)", "(4611686018427387905, 4)"}) {
    refused(Npy("<f4", shape, data), false);
  }
  const std::string a = Tensor("a", "F32", "[3, 4]", 0, 48);
  for (const std::string& json :
       std::vector<std::string>{a, "[" + a + "]", "{" + a + ", " + a + "}", "{\"a\": 1}", "{}",
                                "{" + Tensor("a", "F16", "[3, 4]", 0, 48) + "}",
                                "{" + Tensor("a", "F8_E4M3", "[3, 4]", 0, 48) + "}",
                                "{" + Tensor("a", "I32", "[3, 4]", 0, 48) + "}",
                                "{" + Tensor("a", "F32", "[4, 3]", 0, 48) + "}",
                                "{" + Tensor("a", "F32", "[3, 4]", 1, 49) + "}",
                                "{" + Tensor("\\n", "F32", "[3, 5]", 0, 48) + "}"}) {
    refused(Safetensors(json, data), false);
  }
}

// Names in a folder.
std::set<std::string> NamesIn(const std::string& path) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(path)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

TEST_CASE("what a killed import left goes, and nothing else", "[import]") {
  const TempFolder folder;
  const TrainingJob job = Job(folder.path());
  const std::string out = folder.path() + "/out";
  const ImportSource rows = Rows(folder.path(), "item", 0, 3);
  const std::string unfinished = "shard-00000.strata.00112233445566778899aabbccddeeff.tmp";
  const auto leave = [&](const std::vector<std::string>& names) {
    fs::remove_all(out);
    fs::create_directory(out);
    for (const std::string& name : names) Write(out + "/" + name, "of before");
  };
  const std::set<std::string> whole = {"MANIFEST.json", "shard-00000.strata"};
  const std::vector<std::vector<std::string>> dead = {
      {".strata-import"},
      {".strata-import", unfinished},
      {".strata-import", "shard-00000.strata", "MANIFEST.json.tmp", unfinished}};
  for (const auto& names : dead) {
    leave(names);
    Import(Options(job, out, {rows}));
    CHECK(NamesIn(out) == whole);
  }
  // No import's mark, or not its names.
  const std::vector<std::vector<std::string>> others = {
      {unfinished},
      {"shard-00000.strata"},
      {".strata-import", "shard-00000-g1-c7.strata"},
      {".strata-import", "shard-00000.strata.x.tmp"},
      {".strata-import", unfinished, "mine"}};
  for (const auto& names : others) {
    leave(names);
    const std::set<std::string> before = NamesIn(out);
    const auto done = ImportRows(Options(job, out, {rows}));
    CHECK(done.status().message() == out + " has something in it; name an empty or new folder");
    CHECK(NamesIn(out) == before);
  }
  // It was killed when all was done.
  leave({".strata-import", "MANIFEST.json", "shard-00000.strata"});
  CHECK_FALSE(ImportRows(Options(job, out, {rows})).ok());
  CHECK(NamesIn(out) == whole);
}

// The process's files while it lives.
class KernelFiles : public storage::ScriptedFiles {
 public:
  KernelFiles() : ScriptedFiles(1) { FileSystem::ReplaceKernel(this); }
  ~KernelFiles() override { FileSystem::ReplaceKernel(nullptr); }
};

TEST_CASE("an import that fails anywhere leaves no manifest without its file", "[import]") {
  using Call = storage::ScriptedFiles::Call;
  const TempFolder folder;
  const TrainingJob job = Job(folder.path());
  const ImportSource rows = Rows(folder.path(), "item", 0, 3);
  const std::string out = folder.path() + "/out";
  for (const Call call : {Call::kSync, Call::kRename, Call::kOpen, Call::kWrite}) {
    uint64_t failures = 0;
    bool met = true;
    for (uint64_t nth = 1; met; ++nth) {
      fs::remove_all(out);
      absl::Status s;
      {
        KernelFiles files;
        files.Fail(call, EIO, nth);
        s = ImportRows(Options(job, out, {rows})).status();
        met = files.calls(call) >= nth;
      }
      INFO("call " << static_cast<int>(call) << ", number " << nth << ": " << s);
      failures += !s.ok();
      const bool manifest = fs::exists(out + "/MANIFEST.json");
      if (s.ok()) CHECK(manifest);
      CHECK(manifest == fs::exists(out + "/shard-00000.strata"));
      if (!s.ok()) CHECK_FALSE(manifest);
    }
    CHECK(failures > 0);
  }
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
