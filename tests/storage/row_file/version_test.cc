#include "storage/row_file/version.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "storage/row_file/extent.h"
#include "storage/row_file/volume.h"
#include "tests/temp_folder.h"

namespace strata::storage::row_file {
namespace {

Manifest Example() {
  Manifest out{.next_number = 77, .partitions = 16, .ranges = {}};
  out.ranges.push_back({.begin = {TableId(0), Position(0)},
                        .deltas = {{.number = 1,
                                    .level = 2,
                                    .runs = {{3, 4}, {9, 1}},
                                    .index_offset = 4096,
                                    .index_bytes = 100}},
                        .base = {}});
  out.ranges.push_back(
      {.begin = {TableId(2), Position(~uint64_t{0})},
       .deltas = {},
       .base = ExtentPlace{
           .number = 5, .level = 0, .runs = {{20, 2}}, .index_offset = 0, .index_bytes = 8}});
  return out;
}

TEST_CASE("a manifest comes back, and no damaged one does", "[storage][row_file]") {
  std::vector<uint8_t> bytes = EncodeManifest(Example());
  const auto back = DecodeManifest(bytes);
  REQUIRE(back);
  CHECK(EncodeManifest(*back) == bytes);
  CHECK(back->ranges[0].deltas[0].runs[1].first == 9);
  CHECK(back->ranges[1].base->number == 5);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    CHECK_FALSE(DecodeManifest(bytes));
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
  }
  for (size_t n = 0; n < bytes.size(); ++n) {
    CHECK_FALSE(DecodeManifest(std::span(bytes).subspan(0, n)));
  }
}

TEST_CASE("a manifest whose index lies outside of its chunks is none", "[storage][row_file]") {
  Manifest wrong = Example();
  wrong.ranges[0].deltas[0].index_bytes = 5 * kChunkBytes - 4096 + 1;
  CHECK_FALSE(DecodeManifest(EncodeManifest(wrong)));
  wrong.ranges[0].deltas[0].index_bytes -= 1;
  CHECK(DecodeManifest(EncodeManifest(wrong)));
}

TEST_CASE("a key lies in the last range that begins at or before it", "[storage][row_file]") {
  Version version;
  version.ranges.push_back({.begin = {TableId(1), Position(10)}, .base = nullptr, .deltas = {}});
  version.ranges.push_back({.begin = {TableId(2), Position(0)}, .base = nullptr, .deltas = {}});
  CHECK(version.RangeOf({TableId(0), Position(~uint64_t{0})}) == 0);
  CHECK(version.RangeOf({TableId(1), Position(9)}) == 0);
  CHECK(version.RangeOf({TableId(1), Position(10)}) == 1);
  CHECK(version.RangeOf({TableId(7), Position(0)}) == 2);
  CHECK(version.LastOf(0) == RowKey{TableId(1), Position(9)});
  CHECK(version.LastOf(1) == RowKey{TableId(1), Position(~uint64_t{0})});
  CHECK(version.LastOf(2) == RowKey{TableId(~uint32_t{0}), Position(~uint64_t{0})});
}

// Versions whose extents are of so many bytes, and nothing else.
class Merges {
 public:
  Merges() : volume_(Volume::Open(folder_.path() + "/ROWS").value()) {}

  std::shared_ptr<const Extent> Of(uint64_t bytes, uint32_t level = 0) {
    return std::make_shared<Extent>(
        volume_.get(),
        ExtentPlace{
            .number = 1, .level = level, .runs = {}, .index_offset = bytes, .index_bytes = 0},
        std::vector<Section>());
  }
  Range With(uint64_t base, const std::vector<std::pair<uint64_t, uint32_t>>& deltas) {
    Range range;
    if (base > 0) range.base = Of(base);
    for (const auto& [bytes, level] : deltas) range.deltas.push_back(Of(bytes, level));
    return range;
  }

 private:
  TempFolder folder_;
  std::unique_ptr<Volume> volume_;
};

std::vector<std::pair<uint64_t, uint32_t>> Deltas(size_t n, uint64_t bytes, uint32_t level = 0) {
  return std::vector<std::pair<uint64_t, uint32_t>>(n, {bytes, level});
}

TEST_CASE("eight deltas of the newest level are merged, and only those", "[storage][row_file]") {
  Merges merges;
  Version version;
  version.ranges = {merges.With(0, Deltas(3, 100)), merges.With(0, Deltas(kFanIn - 1, 100))};
  CHECK_FALSE(NextJob(version));
  version.ranges[1] = merges.With(0, Deltas(kFanIn, 100));
  auto job = NextJob(version);
  REQUIRE(job);
  CHECK(job->range == 1);
  CHECK(job->first_delta == 0);
  CHECK_FALSE(job->into_base);
  CHECK(job->level == 1);
  // Those of the level before stay until there are eight of them too.
  auto mixed = Deltas(kFanIn - 1, 800, 1);
  for (const auto& delta : Deltas(kFanIn, 100)) mixed.push_back(delta);
  version.ranges[1] = merges.With(0, mixed);
  job = NextJob(version);
  REQUIRE(job);
  CHECK(job->first_delta == kFanIn - 1);
  CHECK(job->level == 1);
  version.ranges[1] = merges.With(0, Deltas(kFanIn, 800, 1));
  job = NextJob(version);
  REQUIRE(job);
  CHECK(job->first_delta == 0);
  CHECK(job->level == 2);
  // Many deltas, but never eight of the newest level.
  mixed = Deltas(kFanIn - 1, 100, 2);
  for (const auto& delta : Deltas(kFanIn - 1, 100, 1)) mixed.push_back(delta);
  for (const auto& delta : Deltas(kFanIn - 1, 100)) mixed.push_back(delta);
  version.ranges[1] = merges.With(0, mixed);
  CHECK_FALSE(NextJob(version));
}

TEST_CASE("the range with most deltas gets a new base while they are over a fifth",
          "[storage][row_file]") {
  Merges merges;
  Version version;
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  // Below a megabyte in all nothing is merged into bases, however small they are.
  version.ranges = {merges.With(1000, Deltas(1, kLeastDeltaBytes / 2)),
                    merges.With(0, Deltas(1, kLeastDeltaBytes / 2))};
  CHECK_FALSE(NextJob(version));
  version.ranges[1] = merges.With(0, Deltas(1, kLeastDeltaBytes / 2 + 1));
  auto job = NextJob(version);
  REQUIRE(job);
  CHECK(job->into_base);
  CHECK(job->range == 1);
  CHECK(job->first_delta == 0);
  // A fifth of all bases, whichever range the deltas lie in.
  version.ranges = {merges.With(60 * kMiB, Deltas(1, 3 * kMiB)),
                    merges.With(40 * kMiB, Deltas(4, 4 * kMiB)), merges.With(0, Deltas(1, kMiB))};
  CHECK_FALSE(NextJob(version));
  version.ranges[2] = merges.With(0, Deltas(1, kMiB + 1));
  job = NextJob(version);
  REQUIRE(job);
  CHECK(job->into_base);
  CHECK(job->range == 1);
  // Bases come before merges of deltas.
  version.ranges[2] = merges.With(0, Deltas(kFanIn, kMiB));
  job = NextJob(version);
  REQUIRE(job);
  CHECK(job->into_base);
}

// Whatever is written, in whatever sizes: what merging leaves is bounded as the header says.
TEST_CASE("merging bounds space and the filters that a lookup passes", "[storage][row_file]") {
  Merges merges;
  std::mt19937_64 random(29);
  Version version;
  version.ranges = {merges.With(0, {}), merges.With(0, {}), merges.With(0, {})};
  uint64_t written = 0, merged = 0;
  for (int flush = 0; flush < 3000; ++flush) {
    for (Range& range : version.ranges) {
      const uint64_t bytes = 20'000 + random() % 40'000;
      written += bytes;
      range.deltas.push_back(merges.Of(bytes));
    }
    for (int jobs = 0; const auto job = NextJob(version); ++jobs) {
      REQUIRE(jobs < 100);
      Range& range = version.ranges[job->range];
      if (job->into_base) {
        // Half of what is written is new until there are 64 MiB, then it replaces.
        const uint64_t most = uint64_t{64} << 20;
        const uint64_t bytes =
            std::min(range.base_bytes() + range.delta_bytes() / 2, most / 3 + random() % 1000);
        range = merges.With(bytes, {});
        merged += bytes;
        continue;
      }
      uint64_t bytes = 0;
      for (size_t d = job->first_delta; d < range.deltas.size(); ++d) {
        bytes += range.deltas[d]->bytes();
      }
      range.deltas.resize(job->first_delta);
      range.deltas.push_back(merges.Of(bytes, job->level));
      merged += bytes;
    }
    const auto share =
        static_cast<uint64_t>(kDeltaShare * static_cast<double>(version.base_bytes()));
    REQUIRE(version.delta_bytes() <= std::max(kLeastDeltaBytes, share));
    for (const Range& range : version.ranges) {
      uint32_t before = ~0u;
      size_t of_level = 0;
      for (const auto& delta : range.deltas) {
        REQUIRE(delta->place().level <= before);  // levels never ascend
        of_level = delta->place().level == before ? of_level + 1 : 1;
        REQUIRE(of_level < kFanIn);
        before = delta->place().level;
      }
    }
  }
  // Each byte about 1 + levels + (1 + .4) / .4 times.
  INFO(written << " written, " << merged << " by merges");
  CHECK(merged < 7 * written);
}

TEST_CASE("a base is cut into pieces of 4 MiB at least, within the number of ranges",
          "[storage][row_file]") {
  Merges merges;
  Version version;
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  version.ranges = {merges.With(3 * kMiB, {})};
  CHECK(PiecesOfBase(version, 3 * kMiB, 100) == 1);
  CHECK(PiecesOfBase(version, 8 * kMiB - 1, 100) == 1);
  CHECK(PiecesOfBase(version, 8 * kMiB, 100) == 2);
  CHECK(PiecesOfBase(version, 4000 * kMiB, 100) == 100);
  CHECK(PiecesOfBase(version, 4000 * kMiB, 1) == 1);
  version.ranges.assign(99, merges.With(10 * kMiB, {}));
  CHECK(PiecesOfBase(version, 90 * kMiB, 100) == 2);  // in place of one: 100
  version.ranges.assign(100, merges.With(10 * kMiB, {}));
  CHECK(PiecesOfBase(version, 90 * kMiB, 100) == 1);
}

}  // namespace
}  // namespace strata::storage::row_file
