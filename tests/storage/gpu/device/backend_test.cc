// On host threads and, with --config=cuda, on the device where there is one.
#include "storage/gpu/device/backend.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/host_api.h"
#include "storage/gpu/backend.h"
#include "storage/gpu/device/memory.h"
#include "storage/gpu/host_backend.h"
#include "storage/gpu/shape.h"
#include "tests/ops/cuda/api/test_apis.h"
#include "tests/skip.h"
#include "tests/storage/gpu/backend_conformance.h"

namespace strata::storage::gpu {
namespace {

using ops::gpu::CudaApi;
using ops::gpu::HostApi;
using ops::gpu::testing::Apis;
using ops::gpu::testing::TestApi;

GpuBackendFactory On(CudaApi* api, const DeviceGpuOptions& options = {}) {
  return [=](const GpuShape& shape) { return MakeDeviceGpuBackend(api, shape, options); };
}

absl::StatusOr<std::unique_ptr<GpuBackend>> OnHost(const GpuShape& shape) {
  return MakeHostGpuBackend(shape, {});
}

GpuShape Shape(uint32_t buckets, size_t row_bytes = 24) {
  return {.row_bytes = row_bytes,
          .bucket_slots = 32,
          .eviction = EvictionKind::kLru,
          .buckets = buckets,
          .places = 16};
}

// As many as fill the tables, also under a sanitizer.
constexpr uint64_t kOperations = Operations(100) == 100 ? 1'000'000 : 8'000'000;

TEST_CASE("a device does what the oracle says", "[storage][gpu][cuda]") {
  for (TestApi& test : Apis()) {
    INFO(test.name);
    CheckBackendsAgree(OnHost, On(test.api.get()), kOperations);
  }
}

TEST_CASE("a device answers as the host, bit for bit", "[storage][gpu][cuda]") {
  for (TestApi& test : Apis()) {
    INFO(test.name);
    const bool team = test.name == "host threads";
    CheckSameAnswers(OnHost, On(test.api.get()), team ? 5'000 : 20'000);
    CheckSameAnswers(OnHost, On(test.api.get(), {.max_batch = 61}), team ? 5'000 : 20'000);
  }
}

TEST_CASE("a device updates and gathers rows as the host", "[storage][gpu][cuda]") {
  for (TestApi& test : Apis()) {
    INFO(test.name);
    CheckUpdates(OnHost, On(test.api.get()));
  }
}

TEST_CASE("rows are gathered straight into pinned memory", "[storage][gpu][cuda]") {
  constexpr size_t kRows = 50, kDim = 12, kRowBytes = kDim * 4 + 8;
  for (TestApi& test : Apis()) {
    INFO(test.name);
    auto made = MakeDeviceGpuBackend(test.api.get(), Shape(8, kRowBytes), {});
    REQUIRE(made.ok());
    std::vector<GpuArrival> arrivals;
    std::vector<float> bytes(kRows * kRowBytes / 4);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<float>(i) / 7 - 30;
    std::vector<const uint8_t*> rows;
    for (uint32_t i = 0; i < kRows; ++i) {
      arrivals.push_back({i * 7919u, i, kGpuDirty});
      rows.push_back(reinterpret_cast<const uint8_t*>(&bytes[i * kRowBytes / 4]));
    }
    std::vector<GpuPlaced> placed(kRows);
    REQUIRE((*made)->Insert(arrivals, 1, placed).ok());
    std::vector<uint32_t> slots;
    for (const GpuPlaced& p : placed) slots.push_back(p.slot);
    REQUIRE((*made)->Put(slots, rows).ok());
    void* pinned = nullptr;
    REQUIRE(test.api->MallocHost(kRows * kDim * 4 + 64, &pinned).ok());
    for (const auto codec : {ops::RowCodec::kFloat32, ops::RowCodec::kBf16, ops::RowCodec::kInt8}) {
      std::vector<uint8_t> want(kRows * ops::EncodedRowBytes(codec, kDim));
      REQUIRE((*made)->Gather(slots, codec, kDim, want.data()).ok());
      // As values lie in a message: at any multiple of 4.
      for (const size_t offset : {0, 4, 16, 60}) {
        auto* const out = static_cast<uint8_t*>(pinned) + offset;
        std::fill_n(static_cast<uint8_t*>(pinned), kRows * kDim * 4 + 64, uint8_t{0xee});
        REQUIRE((*made)->Gather(slots, codec, kDim, out).ok());
        CHECK(std::equal(want.begin(), want.end(), out));
        CHECK(out[want.size()] == 0xee);
        CHECK((offset == 0 || out[-1] == 0xee));
      }
    }
    REQUIRE(test.api->FreeHost(pinned).ok());
  }
}

TEST_CASE("rows are born on a device as in DRAM", "[storage][gpu][cuda]") {
  for (TestApi& test : Apis()) {
    INFO(test.name);
    CheckBirths(On(test.api.get()));
  }
}

TEST_CASE("half of the free memory of a device may be taken", "[storage][gpu][cuda]") {
  constexpr uint64_t kFree = 1 << 20;
  HostApi::Options options;
  {
    HostApi api(options);
    const auto bytes = GpuDeviceBytes::For(api, Shape(4), 4096);
    REQUIRE(bytes.ok());
    options.device_bytes = bytes->device() + kFree;
  }
  HostApi api(options);
  CheckAllocations(On(&api), Shape(4), kFree);
  CHECK(api.leaks() == 0);
}

TEST_CASE("a row takes 255 pins on a device", "[storage][gpu][cuda]") {
  for (TestApi& test : Apis()) CheckPins(On(test.api.get()));
}

// A table of rows at `positions`, every second of them dirty.
std::unique_ptr<GpuBackend> Filled(const GpuBackendFactory& make, const GpuShape& shape,
                                   const std::vector<uint64_t>& positions) {
  auto made = make(shape);
  if (!made.ok()) FAIL(made.status().ToString());
  std::unique_ptr<GpuBackend> backend = *std::move(made);
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto flags = static_cast<uint8_t>(i % 2 == 0 ? kGpuDirty : kGpuBelow);
    const GpuArrival arrival{.position = positions[i], .flags = flags};
    GpuPlaced placed;
    REQUIRE(backend->Insert({&arrival, 1}, 1, {&placed, 1}).ok());
    REQUIRE(placed.left == 0);
  }
  return backend;
}

// The choice of the lowest rows narrows its range pass by pass; these need all passes, or end at
// the ends of what there is.
TEST_CASE("dirty rows are found however positions crowd", "[storage][gpu][cuda]") {
  std::vector<std::vector<uint64_t>> crowds(4);
  for (uint64_t i = 0; i < 300; ++i) {
    crowds[0].push_back(0x1234'5678'9abc'0000 + i);               // neighbours
    crowds[1].push_back(i < 150 ? i : ~uint64_t{0} - (i - 150));  // at both ends
    crowds[2].push_back(uint64_t{1} << (i % 64) | i << 20);       // at every scale
    crowds[3].push_back(i * 0x9e37'79b9'7f4a'7c15);               // spread
  }
  for (TestApi& test : Apis()) {
    for (const std::vector<uint64_t>& crowd : crowds) {
      const auto device = Filled(On(test.api.get(), {.max_batch = 40}), Shape(64), crowd);
      const auto host = Filled(OnHost, Shape(64), crowd);
      const std::vector<std::pair<uint64_t, uint64_t>> ranges = {{0, ~uint64_t{0}},
                                                                 {crowd[20], crowd[20]},
                                                                 {crowd[21], crowd[21]},
                                                                 {crowd[20] - 1, ~uint64_t{0}},
                                                                 {1, crowd[200]}};
      for (const size_t most : {1u, 2u, 39u, 40u, 41u, 80u, 149u, 150u, 151u, 1000u}) {
        for (const auto& [first, last] : ranges) {
          const auto got = device->Dirty(Position(first), Position(last), most);
          const auto want = host->Dirty(Position(first), Position(last), most);
          REQUIRE((got.ok() && want.ok()));
          REQUIRE(got->size() == want->size());
          bool same = true;
          for (size_t i = 0; i < want->size(); ++i) {
            same &= (*got)[i].position == (*want)[i].position && (*got)[i].slot == (*want)[i].slot;
          }
          if (!same) REQUIRE(same);
        }
      }
      CHECK(device->Dirty(Position(5), Position(4), 10)->empty());
      CHECK(device->Dirty(Position(0), Position(~0ull), 0)->empty());
    }
  }
}

TEST_CASE("a device's table takes the memory that its header says, once", "[storage][gpu][cuda]") {
  for (const uint32_t buckets : {1u, 100u, 5000u}) {
    HostApi api({});
    const GpuShape shape = Shape(buckets, 72);
    const auto made = MakeDeviceGpuBackend(&api, shape, {.max_batch = 5000});
    REQUIRE(made.ok());
    const uint64_t n = buckets == 5000 ? 5000 : 4096;
    CHECK((*made)->max_batch() == n);
    const uint64_t leaving = std::min(buckets, GpuBackend::kLeaveBuckets) * 2;
    const uint64_t words = 32 * n + 16 * leaving + 8192;
    const uint64_t scratch = 256,
                   tiles = 4 * ((std::max<uint64_t>(n, shape.slots() / 8) + 1023) / 1024);
    const uint64_t device =
        shape.bytes() + words + 24 * n + 16 * leaving + 16384 + 4 * n + 96 * n + tiles + scratch;
    size_t left = 0, total = 0;
    REQUIRE(api.MemoryInfo(&left, &total).ok());
    CHECK(total - left >= device);
    CHECK(total - left < device + 7 * GpuDeviceBytes::kPiece);
    CHECK(api.counts().allocations == 2);
    const uint64_t pinned = words + 3 * n * 96;
    CHECK(GpuDeviceBytes::Pinned(shape, static_cast<uint32_t>(n)) >= pinned);
    CHECK(GpuDeviceBytes::Pinned(shape, static_cast<uint32_t>(n)) <
          pinned + 4 * GpuDeviceBytes::kPiece);
  }
}

TEST_CASE("a batch is as large as pinned memory lets it be", "[storage][gpu][cuda]") {
  HostApi::Options host;
  host.pinned_bytes = 1'000'000;
  HostApi api(host);
  const GpuShape shape = Shape(1000, 1000);
  const auto made = MakeDeviceGpuBackend(&api, shape, {.pinned_bytes = 1'000'000});
  REQUIRE(made.ok());
  const auto n = static_cast<uint32_t>((*made)->max_batch());
  CHECK((n > 250 && n < 1'000'000 / 3 / 1024));
  CHECK(GpuDeviceBytes::Pinned(shape, n) <= 1'000'000);
  CHECK(GpuDeviceBytes::Pinned(shape, n + 1) > 1'000'000);
  // More is not asked; if it is, the table ends.
  const std::vector<uint32_t> slots(n + 1, kNoGpuSlot);
  CHECK((*made)->Pin(std::vector<uint32_t>(n, kNoGpuSlot), 1).ok());
  CHECK((*made)->Pin(slots, 1).status().code() == absl::StatusCode::kInternal);
  CHECK((*made)->Age({.lower = 1}).code() == absl::StatusCode::kInternal);
  const auto none = MakeDeviceGpuBackend(&api, shape, {.pinned_bytes = 10'000});
  CHECK(none.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(none.status().message()),
             Catch::Contains("pinned_bytes is 10000") &&
                 Catch::Contains(std::to_string(GpuDeviceBytes::Pinned(shape, 1))));
  CHECK(MakeDeviceGpuBackend(&api, shape, {.max_batch = 0}).status().code() ==
        absl::StatusCode::kInvalidArgument);
}

TEST_CASE("a device's memory that is not there is refused with its bytes", "[storage][gpu][cuda]") {
  HostApi::Options options;
  options.device_bytes = 30'000;
  const GpuShape shape = Shape(100);
  const auto message = [&](HostApi& api) {
    const auto made = MakeDeviceGpuBackend(&api, shape, {.max_batch = 100});
    REQUIRE(made.status().code() == absl::StatusCode::kResourceExhausted);
    CHECK(api.leaks() == 0);
    return std::string(made.status().message());
  };
  HostApi api(options);
  const auto bytes = GpuDeviceBytes::For(api, shape, 100);
  REQUIRE(bytes.ok());
  CHECK_THAT(message(api), Catch::Contains("a GPU table: " + std::to_string(bytes->device()) +
                                           " bytes requested, 30000 of 30000 bytes free") &&
                               Catch::Contains("lower spec.storage.gpuBytesPerServer"));
  options.device_bytes = bytes->device();
  HostApi without_pinned(options);
  without_pinned.LimitPinned(bytes->pinned() - 1);
  CHECK_THAT(
      message(without_pinned),
      Catch::Contains("pinned memory: " + std::to_string(bytes->rows) + " bytes requested") &&
          Catch::Contains(std::to_string(bytes->rows - 1) + " of this process's " +
                          std::to_string(bytes->pinned() - 1) + " are free") &&
          Catch::Contains("raise the server's --pinned-bytes, or lower"));
  CHECK(without_pinned.pinned_bytes() == 0);
  HostApi enough(options);
  enough.LimitPinned(bytes->pinned());
  CHECK(MakeDeviceGpuBackend(&enough, shape, {.max_batch = 100}).ok());
}

// A table with three rows, and what calls name of them.
struct ThreeRows {
  explicit ThreeRows(CudaApi* api)
      : backend(*MakeDeviceGpuBackend(api, Shape(100), {.max_batch = 100})) {
    std::vector<GpuArrival> arrivals;
    for (uint32_t i = 0; i < 3; ++i) arrivals.push_back({i + 1, i, kGpuHeld | kGpuDirty});
    std::vector<GpuPlaced> placed(3);
    REQUIRE(backend->Insert(arrivals, 1, placed).ok());
    for (size_t i = 0; i < 3; ++i) slots[i] = placed[i].slot;
  }
  absl::Status Read() {
    std::vector<const uint8_t*> rows(3);
    return backend->Read(slots, rows);
  }

  const std::unique_ptr<GpuBackend> backend;
  std::vector<uint32_t> slots = std::vector<uint32_t>(3);
};

TEST_CASE("pinned memory for rows is taken when rows are copied, once", "[storage][gpu][cuda]") {
  HostApi api({});
  const auto bytes = GpuDeviceBytes::For(api, Shape(100), 100);
  REQUIRE(bytes.ok());
  {
    ThreeRows table(&api);
    const auto there = table.backend->AllocateThere(3 * 4);
    REQUIRE(there.ok());
    REQUIRE(table.backend->GatherThere(table.slots, 4, *there).ok());
    CHECK(api.counts().allocations == 3);  // the table, words of calls, and `there`
    CHECK(api.pinned_bytes() == bytes->pinned());
    const std::vector<uint32_t> places = {0, 1};
    const std::vector<uint8_t> row(24, 5);
    const std::vector<const uint8_t*> from(3, row.data());
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<const uint8_t*> staged(2);
      std::vector<uint8_t*> open(3);
      REQUIRE(table.backend->Put(table.slots, from).ok());
      CHECK(api.counts().allocations == (turn == 0 ? 4 : 6));
      REQUIRE(table.Read().ok());
      REQUIRE(table.backend->ReadStaged(places, staged).ok());
      REQUIRE(table.backend->Open(table.slots, GpuUse::kUpdate, open).ok());
      REQUIRE(table.backend->Close(table.slots).ok());
      CHECK(api.counts().allocations == 6);
      CHECK(api.pinned_bytes() == bytes->pinned());
    }
  }
  CHECK(api.leaks() == 0);
  CHECK(api.pinned_bytes() == 0);
  // A machine that does not have what was promised: the table ends by the first call that wants it.
  HostApi::Options options;
  options.pinned_bytes = bytes->words;
  HostApi scarce(options);
  ThreeRows table(&scarce);
  const absl::Status s = table.Read();
  CHECK(absl::IsInternal(s));  // who gets it does not try again
  CHECK_THAT(std::string(s.message()),
             Catch::Contains(std::to_string(bytes->rows) + " bytes requested"));
  CHECK(table.Read() == s);
}

}  // namespace
}  // namespace strata::storage::gpu
