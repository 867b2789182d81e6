#include "tools/generate/criteo_generator.h"

#include <stdlib.h>
#include <sys/uio.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/runtime/files/file_system.h"
#include "worker/data/formats/criteo_parser.h"
#include "worker/data/formats/feature_hash.h"
#include "worker/data/formats/line_parser.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

std::unique_ptr<CriteoGenerator> Make(const CriteoGeneratorOptions& options) {
  absl::StatusOr<std::unique_ptr<CriteoGenerator>> made = CriteoGenerator::Make(options);
  INFO(made.status().ToString());
  REQUIRE(made.ok());
  return *std::move(made);
}

std::string Rows(const CriteoGenerator& generator, uint64_t first, uint64_t count) {
  std::string text;
  for (uint64_t r = first; r < first + count; ++r) generator.AppendRow(r, &text);
  return text;
}

std::string TempPath(const std::string& name) {
  const char* base = getenv("TEST_TMPDIR");
  return std::string(base != nullptr ? base : "/tmp") + "/strata_generate_" + name;
}

std::string Contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("rows depend on the seed and their number alone", "[generate]") {
  CriteoGeneratorOptions options;
  options.vocabulary = 5000;
  const auto generator = Make(options);
  const std::string text = Rows(*generator, 0, 200);
  CHECK(Rows(*Make(options), 0, 120) + Rows(*generator, 120, 80) == text);
  options.seed = 2;
  CHECK(Rows(*Make(options), 0, 200) != text);
}

TEST_CASE("bytes are pinned: the same on every machine", "[generate]") {
  CriteoGeneratorOptions options;
  const auto generator = Make(options);
  CHECK(FeatureKey(0, Rows(*generator, 0, 20'000)) == 0xb777fd5e8427bcbbull);
}

TEST_CASE("field sizes add up to the vocabulary", "[generate]") {
  for (const uint64_t vocabulary : {260u, 1000u, 100'000u, 1'999'999u, 2'000'000u, 10'000'000u}) {
    const auto sizes = CriteoFieldSizes(vocabulary);
    CAPTURE(vocabulary);
    CHECK(std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}) == vocabulary);
    for (const uint64_t size : sizes) CHECK(size >= 1);
    CHECK(sizes[8] == 3);
  }
}

TEST_CASE("rows are good Criteo lines of the promised shape", "[generate]") {
  CriteoGeneratorOptions options;
  options.vocabulary = 3000;
  const auto generator = Make(options);
  const auto parser = MakeCriteoParser(IntegerFeatures::kDense, 0);
  const auto sizes = CriteoFieldSizes(options.vocabulary);
  std::vector<std::set<uint64_t>> ids(26);
  Batch batch;
  parser->Start(&batch);
  LineError error;
  constexpr uint64_t kRows = 40'000;
  double expected = 0;
  uint64_t negative = 0;
  uint64_t missing = 0;
  std::string line;
  for (uint64_t r = 0; r < kRows; ++r) {
    line.clear();
    const GeneratedRow row = generator->AppendRow(r, &line);
    expected += row.probability;
    negative += line.find("\t-") != std::string::npos;
    missing += line.find("\t\t") != std::string::npos;
    line.pop_back();
    REQUIRE(parser->Parse(line, &batch, &error) == LineOutcome::kExample);
    REQUIRE((batch.labels.back() == 1.0f) == row.label);
    for (size_t f = 0; f < 26; ++f) ids[f].insert(batch.keys[26 * r + f]);
  }
  for (size_t f = 0; f < 26; ++f) {
    CAPTURE(f);
    CHECK(ids[f].size() <= sizes[f] + 1);  // and the missing one
    if (sizes[f] <= 30) CHECK(ids[f].size() >= sizes[f]);
  }
  CHECK(negative > kRows / 20);
  CHECK(missing > kRows / 2);
  const double positives = std::accumulate(batch.labels.begin(), batch.labels.end(), 0.0);
  CHECK(positives / kRows == Approx(0.25).margin(0.015));
  // Labels follow the probabilities: 5 standard deviations of a sum of coin flips.
  CHECK(std::fabs(positives - expected) < 5 * std::sqrt(kRows * 0.25));
}

TEST_CASE("a file holds its rows and the teacher's AUC", "[generate]") {
  CriteoGeneratorOptions options;
  options.rows = 30'000;
  options.first_row = 1000;
  const std::string path = TempPath("file");
  uint64_t reported = 0;
  const auto result = GenerateCriteo(options, path, [&](uint64_t done) { reported = done; });
  INFO(result.status().ToString());
  REQUIRE(result.ok());
  CHECK(reported == options.rows);
  CHECK(result->rows == options.rows);
  CHECK(result->auc_rows == options.rows);
  CHECK(result->bytes == std::filesystem::file_size(path));
  CHECK(Contents(path) == Rows(*Make(options), 1000, options.rows));
  // What the planted model is made to give; and a model that knows nothing would have .562.
  CHECK(result->teacher_auc == Approx(0.878).margin(0.015));
  CHECK(result->teacher_logloss == Approx(0.357).margin(0.02));
  CHECK(static_cast<double>(result->positives) / options.rows == Approx(0.25).margin(0.02));
  CHECK(!std::filesystem::exists(path + ".part"));
  std::filesystem::remove(path);
}

TEST_CASE("bad options and places are refused by name", "[generate]") {
  CriteoGeneratorOptions options;
  const std::string path = TempPath("bad");
  const auto message = [&] {
    return std::string(GenerateCriteo(options, path).status().message());
  };
  CHECK(message() == "rows: 0; at least 1 is needed");
  options.rows = 1;
  options.vocabulary = 259;
  CHECK(message() == "vocabulary: 259 is not in 260 .. 4294967296");
  options.vocabulary = 1000;
  options.zipf = 0;
  CHECK(message() == "zipf: 0 is not in (0, 4]");
  options.zipf = NAN;
  CHECK(message() == "zipf: nan is not in (0, 4]");
  options.zipf = 1;
  const auto nowhere = GenerateCriteo(options, path + "/none/file").status();
  CHECK(nowhere.code() == absl::StatusCode::kNotFound);
  CHECK(nowhere.message() == "output file " + path + "/none/file: there is no folder " + path +
                                 "/none; make it, or name another place");
  options.first_row = UINT64_MAX - 5;
  options.rows = 6;
  CHECK(message() ==
        "first row: 18446744073709551610 leaves no room for 6 rows below 18446744073709551615; "
        "give a smaller one");
  CHECK(!std::filesystem::exists(path));
}

// No file takes anything.
class FullDisk : public FileSystem {
 public:
  ssize_t Write(int, std::span<const iovec>, uint64_t) override { return -ENOSPC; }
};

TEST_CASE("a full disk leaves no file", "[generate]") {
  FullDisk full;
  FileSystem::ReplaceKernel(&full);
  CriteoGeneratorOptions options;
  options.rows = 10;
  options.vocabulary = 1000;
  const std::string path = TempPath("full");
  const absl::Status status = GenerateCriteo(options, path).status();
  FileSystem::ReplaceKernel(nullptr);
  CHECK(status.code() == absl::StatusCode::kResourceExhausted);
  CHECK(!std::filesystem::exists(path));
  CHECK(!std::filesystem::exists(path + ".part"));
}

}  // namespace strata
