#include "ops/cuda/api/memory.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/host_api.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::ops::gpu {
namespace {

TEST_CASE("an arena takes its memory once and gives it back", "[ops][cuda]") {
  HostApi api({});
  {
    auto arena = Arena::Create(&api, MemoryKind::kDevice, 10'000, "tables");
    REQUIRE(arena.ok());
    CHECK((*arena)->total_bytes() == 9984);  // whole units of 256
    std::vector<Buffer> buffers;
    for (int i = 0; i < 39; ++i) {
      auto buffer = (*arena)->Allocate(200);
      REQUIRE(buffer.ok());
      CHECK(reinterpret_cast<uintptr_t>(buffer->as<char>()) % 256 == 0);
      CHECK(buffer->bytes() == 200);
      std::memset(buffer->as<void>(), i, 200);
      buffers.push_back(*std::move(buffer));
    }
    CHECK((*arena)->free_bytes() == 0);
    for (int i = 0; i < 39; ++i) CHECK(buffers[i].as<char>()[199] == i);
    CHECK(api.counts().allocations == 1);
    buffers.clear();
    CHECK((*arena)->free_bytes() == 9984);
    CHECK((*arena)->Allocate(9984).ok());  // one gap again
    CHECK((*arena)->Allocate(0).ok());
  }
  CHECK(api.leaks() == 0);
}

TEST_CASE("what does not fit is refused with requested and free bytes", "[ops][cuda]") {
  HostApi::Options options;
  options.device_bytes = 1 << 20;
  options.pinned_bytes = 1 << 18;
  HostApi api(options);
  const auto message = [](const absl::Status& status) {
    CHECK(status.code() == absl::StatusCode::kResourceExhausted);
    return std::string(status.message());
  };
  CHECK_THAT(message(Arena::Create(&api, MemoryKind::kDevice, 2 << 20, "hbm").status()),
             Catch::Contains("hbm: 2097152 bytes requested, 1048576 of 1048576 bytes free"));
  CHECK_THAT(
      message(Arena::Create(&api, MemoryKind::kPinned, 1 << 19, "pinned").status()),
      Catch::Contains("pinned: 524288 bytes requested") && Catch::Contains("262144 bytes free"));
  auto arena = Arena::Create(&api, MemoryKind::kDevice, 4096, "hbm");
  REQUIRE(arena.ok());
  auto a = (*arena)->Allocate(1024), b = (*arena)->Allocate(1024), c = (*arena)->Allocate(1024);
  REQUIRE(c.ok());
  *b = Buffer();
  CHECK_THAT(message((*arena)->Allocate(1025).status()),
             Catch::Contains("1025 bytes requested, 2048 of 4096 bytes free") &&
                 Catch::Contains("largest piece 1024"));
  CHECK(!(*arena)->Allocate(SIZE_MAX).ok());
  CHECK((*arena)->AllocateArray<double>(SIZE_MAX / 4).status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK((*arena)->AllocateArray<double>(128).ok());
}

TEST_CASE("a process's pinned memory has a bound, and is known", "[ops][cuda]") {
  HostApi api({});
  api.LimitPinned(1000);
  void *a = nullptr, *b = nullptr, *c = nullptr;
  REQUIRE(api.MallocHost(600, &a).ok());
  const absl::Status full = api.MallocHost(401, &b);
  CHECK(full.code() == absl::StatusCode::kResourceExhausted);
  CHECK_THAT(std::string(full.message()),
             Catch::Contains("401 bytes of pinned memory wanted, 400 of this process's 1000"));
  REQUIRE(api.MallocHost(400, &c).ok());
  CHECK(api.pinned_bytes() == 1000);
  char* const at = static_cast<char*>(a);
  CHECK(api.IsPinned(at, 600));
  CHECK(api.IsPinned(at + 599, 1));
  CHECK(!api.IsPinned(at + 1, 600));
  CHECK(!api.IsPinned(at + 600, 1));
  CHECK(!api.IsPinned(at - 1, 1));
  CHECK(!api.IsPinned(&api, 1));
  REQUIRE(api.FreeHost(a).ok());
  CHECK(!api.IsPinned(at, 1));
  CHECK(api.pinned_bytes() == 400);
  // What the runtime itself has not is not counted.
  HostApi::Options little;
  little.pinned_bytes = 100;
  HostApi scarce(little);
  CHECK(!scarce.MallocHost(200, &b).ok());
  CHECK(scarce.pinned_bytes() == 0);
  REQUIRE(api.FreeHost(c).ok());
}

TEST_CASE("pinned memory that was reserved is nobody else's, and is counted once", "[ops][cuda]") {
  HostApi::Options little;
  little.pinned_bytes = 500;
  HostApi api(little);
  api.LimitPinned(1000);
  REQUIRE(api.ReservePinned(300).ok());
  REQUIRE(api.ReservePinned(400).ok());
  CHECK(api.counts().allocations == 0);
  void *a = nullptr, *b = nullptr;
  CHECK(absl::IsResourceExhausted(api.MallocHost(301, &a)));
  CHECK(absl::IsResourceExhausted(api.ReservePinned(301)));
  REQUIRE(api.MallocReserved(300, &a).ok());
  CHECK(api.IsPinned(a, 300));
  CHECK(api.pinned_bytes() == 700);
  // The runtime has no more; it is promised still.
  CHECK_FALSE(api.MallocReserved(400, &b).ok());
  CHECK(api.pinned_bytes() == 700);
  api.UnreservePinned(400);
  CHECK(api.pinned_bytes() == 300);
  REQUIRE(api.FreeHost(a).ok());
  CHECK(api.pinned_bytes() == 0);
}

TEST_CASE("random pieces never overlap, and gaps grow together", "[ops][cuda]") {
  HostApi api({});
  auto arena = Arena::Create(&api, MemoryKind::kPinned, 1 << 20, "pool");
  REQUIRE(arena.ok());
  testing::Random random(1);
  std::vector<std::pair<Buffer, char>> held;
  size_t refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (held.empty() || random.Below(100) < 52) {
      auto buffer = (*arena)->Allocate(random.Below(40'000));
      if (!buffer.ok()) {
        ++refused;
        continue;
      }
      const char mark = static_cast<char>(random.Next());
      std::memset(buffer->as<void>(), mark, buffer->bytes());
      held.emplace_back(*std::move(buffer), mark);
    } else {
      std::swap(held[random.Below(static_cast<uint32_t>(held.size()))], held.back());
      const auto& [buffer, mark] = held.back();
      bool intact = true;
      for (size_t at = 0; at < buffer.bytes(); ++at) intact &= buffer.as<char>()[at] == mark;
      REQUIRE(intact);
      held.pop_back();
    }
  }
  CHECK(refused > 0);
  held.clear();
  CHECK((*arena)->Allocate(1 << 20).ok());
}

}  // namespace
}  // namespace strata::ops::gpu
