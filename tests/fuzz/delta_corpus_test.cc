// The corpus of delta_fuzz is what the writer of deltas makes today.
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/fuzz/delta_seeds.h"
#include "tests/storage/delta/oracle.h"
#include "tests/temp_folder.h"

namespace strata::storage {
namespace {

TEST_CASE("the seeds of the delta reader's fuzzer are deltas as they are written", "[fuzz]") {
  TempFolder folder;
  const auto seeds = DeltaSeeds(folder.path());
  std::map<std::string, std::vector<uint8_t>> files;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fuzz/corpus/delta_fuzz")) {
    std::ifstream in(entry.path(), std::ios::binary);
    files[entry.path().filename()] = {std::istreambuf_iterator<char>(in), {}};
  }
  // Else: bazel run //tests/fuzz:delta_corpus -- $PWD/tests/fuzz/corpus/delta_fuzz
  CHECK(files == seeds);
  for (const auto& [name, bytes] : seeds) {
    INFO(name);
    REQUIRE_FALSE(bytes.empty());
    // delta_fuzz tells its two kinds of input apart by this.
    CHECK(bytes[0] % 2 == (name == "mutations" ? 0 : 1));
    if (name == "mutations") continue;
    const absl::Status s = ReadWholeDelta(bytes);
    INFO(s.ToString());
    CHECK((name == "cut" ? absl::IsDataLoss(s) : s.ok()));
  }
}

}  // namespace
}  // namespace strata::storage
