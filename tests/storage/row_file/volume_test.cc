#include "storage/row_file/volume.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/seed.h"
#include "tests/temp_folder.h"

namespace strata::storage::row_file {
namespace {

using Runs = std::vector<ChunkRun>;

std::unique_ptr<Volume> Open(const std::string& path) {
  auto volume = Volume::Open(path);
  if (!volume.ok()) FAIL(volume.status().ToString());
  return *std::move(volume);
}

std::vector<uint32_t> ChunksOf(const Runs& runs) {
  std::vector<uint32_t> chunks;
  for (const ChunkRun& run : runs) {
    for (uint32_t c = run.first; c < run.first + run.count; ++c) chunks.push_back(c);
  }
  return chunks;
}

TEST_CASE("a volume gives out free chunks, lowest first, and none twice",
          "[storage][row_file][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("volume_chunks")));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  TempFolder folder;
  auto volume = Open(folder.path() + "/ROWS");
  std::vector<Runs> given;
  std::set<uint32_t> used;
  uint64_t most = 0;
  for (int i = 0; i < 3000; ++i) {
    if (given.empty() || random() % 2 == 0) {
      const auto wanted = static_cast<uint32_t>(1 + random() % 40);
      auto runs = volume->Allocate(wanted);
      REQUIRE(runs.ok());
      const std::vector<uint32_t> chunks = ChunksOf(*runs);
      REQUIRE(chunks.size() == wanted);
      // Of all that are free the lowest.
      std::vector<uint32_t> expected;
      for (uint32_t c = 0; expected.size() < wanted; ++c) {
        if (!used.contains(c)) expected.push_back(c);
      }
      REQUIRE(chunks == expected);
      for (size_t r = 1; r < runs->size(); ++r) {
        REQUIRE((*runs)[r - 1].first + (*runs)[r - 1].count < (*runs)[r].first);
      }
      used.insert(chunks.begin(), chunks.end());
      most = std::max<uint64_t>(most, *used.rbegin() + 1);
      given.push_back(*std::move(runs));
    } else {
      const size_t which = random() % given.size();
      for (const uint32_t c : ChunksOf(given[which])) used.erase(c);
      volume->Free(given[which]);
      given.erase(given.begin() + static_cast<ptrdiff_t>(which));
    }
    REQUIRE(volume->file_bytes() >= most * kChunkBytes);
    REQUIRE(volume->file_bytes() <= (most + 64) * kChunkBytes);  // grows by a megabyte
  }
  CHECK(std::filesystem::file_size(folder.path() + "/ROWS") == volume->file_bytes());
}

TEST_CASE("retired chunks stay in use until they are freed", "[storage][row_file]") {
  TempFolder folder;
  auto volume = Open(folder.path() + "/ROWS");
  const Runs first = volume->Allocate(3).value();
  CHECK(ChunksOf(first) == std::vector<uint32_t>{0, 1, 2});
  volume->Retire(first);
  CHECK(ChunksOf(volume->Allocate(2).value()) == std::vector<uint32_t>{3, 4});
  volume->Retire({{3, 1}});
  const Runs retired = volume->TakeRetired();
  CHECK(ChunksOf(retired) == std::vector<uint32_t>{0, 1, 2, 3});
  CHECK(volume->TakeRetired().empty());
  CHECK(ChunksOf(volume->Allocate(1).value()) == std::vector<uint32_t>{5});
  volume->Free(retired);
  CHECK(ChunksOf(volume->Allocate(5).value()) == std::vector<uint32_t>{0, 1, 2, 3, 6});
}

TEST_CASE("chunks of a file that is opened again are free until they are claimed, once",
          "[storage][row_file]") {
  TempFolder folder;
  const std::string path = folder.path() + "/ROWS";
  const uint64_t chunks = [&] {
    auto volume = Open(path);
    REQUIRE(volume->Allocate(10).ok());
    return volume->file_bytes() / kChunkBytes;
  }();
  auto volume = Open(path);
  CHECK(volume->file_bytes() == chunks * kChunkBytes);
  REQUIRE(volume->Claim({{2, 3}, {7, 1}}).ok());
  CHECK(ChunksOf(volume->Allocate(4).value()) == std::vector<uint32_t>{0, 1, 5, 6});
  const absl::Status twice = volume->Claim({{8, 1}, {7, 1}});
  CHECK(absl::IsDataLoss(twice));
  CHECK(std::string(twice.message()).find(path + ", offset 114688") != std::string::npos);
  const auto last = static_cast<uint32_t>(chunks - 1);
  CHECK(volume->Claim({{last, 1}}).ok());
  CHECK(absl::IsDataLoss(volume->Claim({{last + 1, 1}})));
  CHECK(absl::IsDataLoss(volume->Claim({{~uint32_t{0}, 2}})));
}

}  // namespace
}  // namespace strata::storage::row_file
