// What bars are made of, on host threads: sizes that fit, times, contents and probes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <iterator>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/host_api.h"
#include "ops/cuda/api/stream.h"
#include "tools/gpu/bars/bar.h"
#include "tools/gpu/bars/fill.h"
#include "tools/gpu/bars/probe.h"
#include "tools/gpu/bars/timing.h"

namespace strata::gpu_check {
namespace {

using ops::gpu::HostApi;
using ops::gpu::Stream;

// Tells times of the test's making, one after the other.
class TimedApi : public HostApi {
 public:
  explicit TimedApi(std::vector<float> times) : HostApi(Options()), times_(std::move(times)) {}

 protected:
  absl::Status DoElapsedMs(ops::gpu::EventHandle begin, ops::gpu::EventHandle end,
                           float* ms) override {
    const absl::Status status = HostApi::DoElapsedMs(begin, end, ms);
    *ms = times_.at(next_++);
    return status;
  }

 private:
  const std::vector<float> times_;
  size_t next_ = 0;
};

TEST_CASE("sizes are halved until they fit, and say so", "[gpu_check]") {
  const auto wanted = [](const BarSizes& s) {
    return s.table_bytes + s.batch_bytes + 2 * s.copy_bytes;
  };
  BarSizes sizes;
  sizes.table_bytes = 4096;
  sizes.batch_bytes = sizes.copy_bytes = 1024;
  std::string note = "old";
  auto fitting = FitSizes(sizes, 10000, wanted, &note);
  REQUIRE(fitting.ok());
  CHECK(fitting->table_bytes == 4096);
  CHECK(note.empty());
  fitting = FitSizes(sizes, 2500, wanted, &note);
  REQUIRE(fitting.ok());
  CHECK(fitting->table_bytes == 1024);
  CHECK(fitting->batch_bytes == 256);
  CHECK(fitting->copy_bytes == 256);
  CHECK(fitting->keys == sizes.keys);
  CHECK(note == "1/4 of the bar's size: 2500 B are free");
  const auto none = FitSizes(sizes, 5, wanted, &note);
  CHECK(absl::IsResourceExhausted(none.status()));
  CHECK(none.status().message() == "7 bytes wanted at the least, 5 bytes free on the device");
  CHECK(FloorLog2(1) == 0);
  CHECK(FloorLog2(255) == 7);
  CHECK(FloorLog2(uint64_t{1} << 40) == 40);
}

TEST_CASE("the median of samples counts, per call, and works take turns", "[gpu_check]") {
  // Two first turns of each work, then three of each: the first is called 4 times in a sample.
  TimedApi api({9.0f, 0.25f, 9.0f, 2.0f, 1.0f, 3.0f, 2.0f, 1.0f, 4.0f, 2.0f});
  auto stream = ops::gpu::MakeStream(&api);
  std::string called;
  const auto ms = MedianMs(&api, stream->get(),
                           {[&] {
                              called += 'a';
                              return absl::OkStatus();
                            },
                            [&] {
                              called += 'b';
                              return absl::OkStatus();
                            }},
                           {3, 1.0, 0});
  REQUIRE(ms.ok());
  CHECK(*ms == std::vector<double>{0.5, 2.0});
  CHECK(called == "aabbaaaabaaaabaaaab");
}

TEST_CASE("nothing counts before the device has worked for a while", "[gpu_check]") {
  // Cold, the first is called 2 times in a sample, warm 4 times; two turns of 2.5 ms make 5 ms.
  TimedApi api({9.0f, 0.5f, 9.0f, 1.0f, 1.0f, 1.5f, 1.0f, 1.5f, 0.25f, 1.0f, 1.0f, 0.75f});
  auto stream = ops::gpu::MakeStream(&api);
  std::string called;
  const auto work = [&called](char name) {
    return [&called, name] {
      called += name;
      return absl::OkStatus();
    };
  };
  const auto ms = MedianMs(&api, stream->get(), {work('a'), work('b')}, {1, 1.0, 5.0});
  REQUIRE(ms.ok());
  CHECK(called ==
        "aabb"
        "aabaab"
        "ab"
        "aaaab");
  CHECK(*ms == std::vector<double>{0.25, 0.75});
  // Where nothing takes time it is one turn.
  TimedApi host(std::vector<float>(20, 0.0f));
  auto other = ops::gpu::MakeStream(&host);
  called.clear();
  REQUIRE(MedianMs(&host, other->get(), {work('a')}, {1, 1.0, 5.0}).ok());
  CHECK(called == "aaaaa");
  CHECK(BarSizes().warm_ms == 300);
  CHECK(DlrmSizes().warm_ms == 300);
  CHECK(TinySizes().warm_ms == 0);
}

TEST_CASE("work that fails ends the measurement", "[gpu_check]") {
  HostApi api{HostApi::Options()};
  auto stream = ops::gpu::MakeStream(&api);
  const auto ms =
      MedianMs(&api, stream->get(), {[] { return absl::InternalError("broken"); }}, {3, 1.0, 0});
  CHECK(ms.status().message() == "broken");
  stream = Stream();
  CHECK(api.leaks() == 0);
}

TEST_CASE("row numbers are distinct, below their bound and in no order", "[gpu_check]") {
  HostApi api{HostApi::Options()};
  auto stream = ops::gpu::MakeStream(&api);
  for (const uint32_t bits : {0u, 1u, 2u, 3u, 10u, 17u}) {
    for (const uint64_t seed : {0u, 1u, 77u}) {
      INFO(bits << " bits, seed " << seed);
      const uint32_t n = 1u << bits;
      std::vector<uint32_t> rows(n);
      REQUIRE(FillRowNumbers(api, n, bits, seed, rows.data(), stream->get()).ok());
      CHECK(std::set<uint32_t>(rows.begin(), rows.end()).size() == n);
      CHECK(*std::max_element(rows.begin(), rows.end()) == n - 1);
      if (bits < 10) continue;
      uint32_t near = 0;  // neighbours that would share a line of memory
      for (uint32_t i = 1; i < n; ++i) near += rows[i] - rows[i - 1] + 2 <= 4 ? 1 : 0;
      CHECK(near < n / 20);
    }
  }
}

TEST_CASE("contents are uniform, and the same in every place", "[gpu_check]") {
  HostApi api{HostApi::Options()};
  auto stream = ops::gpu::MakeStream(&api);
  std::vector<float> floats(10000);
  REQUIRE(FillFloats(api, floats.size(), -1.0f, 3.0f, 5, floats.data(), stream->get()).ok());
  CHECK(*std::min_element(floats.begin(), floats.end()) >= -1.0f);
  CHECK(*std::max_element(floats.begin(), floats.end()) < 3.0f);
  CHECK(std::accumulate(floats.begin(), floats.end(), 0.0) / 10000 == Approx(1.0).margin(0.1));
  std::vector<uint16_t> halves(100);
  REQUIRE(FillBf16(api, halves.size(), -1.0f, 3.0f, 5, halves.data(), stream->get()).ok());
  for (size_t i = 0; i < halves.size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, &floats[i], 4);
    CHECK(halves[i] == bits >> 16);
  }
}

TEST_CASE("probes move the rows that they are told", "[gpu_check]") {
  HostApi api{HostApi::Options()};
  auto stream = ops::gpu::MakeStream(&api);
  constexpr uint32_t kRows = 16, kQuads = 3, kBags = 5;
  alignas(16) float table[kRows * kQuads * 4], out[kBags * kQuads * 4] = {};
  std::iota(std::begin(table), std::end(table), 0.0f);
  const uint32_t row_of[] = {3, 9, 15, 0, 7, 7, 2, 11, 5, 1};
  ReadProbe reads;
  reads.table = table;
  reads.quads = kQuads;
  reads.row_of = row_of;
  reads.bags = kBags;
  reads.bag_size = 2;
  reads.stored = kBags - 1;
  reads.out = out;
  REQUIRE(ProbeReads(api, reads, stream->get()).ok());
  for (uint32_t bag = 0; bag < kBags; ++bag) {
    for (uint32_t d = 0; d < kQuads * 4; ++d) {
      const float sum =
          table[row_of[2 * bag] * kQuads * 4 + d] + table[row_of[2 * bag + 1] * kQuads * 4 + d];
      CHECK(out[bag * kQuads * 4 + d] == (bag < kBags - 1 ? sum : 0.0f));
    }
  }

  alignas(16) float sums[kBags * 2 * 4];
  std::fill(std::begin(sums), std::end(sums), 1000.0f);
  UpdateProbe updates;
  updates.table = table;
  updates.quads = kQuads;
  updates.row_of = row_of;  // 3, 9, 15, 0, 7
  updates.rows = kBags;
  updates.sums = sums;
  updates.sum_quads = 2;
  REQUIRE(ProbeUpdates(api, updates, stream->get()).ok());
  for (uint32_t row = 0; row < kRows; ++row) {
    const bool named = std::count(row_of, row_of + kBags, row) > 0;
    for (uint32_t d = 0; d < kQuads * 4; ++d) {
      const auto was = static_cast<float>(row * kQuads * 4 + d);
      CHECK(table[row * kQuads * 4 + d] == was + (named && d < 8 ? 1000.0f : 0.0f));
    }
  }
}

}  // namespace
}  // namespace strata::gpu_check
