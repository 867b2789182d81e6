// Memory for rows that a worker and servers of its process share on a device.
#include "worker/device/row_memory.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/api/host_api.h"
#include "ops/cuda/kernel/row_block.h"
#include "tests/ops/cuda/api/failing_api.h"

namespace strata::device {
namespace {

using ops::gpu::CudaApi;
using ops::gpu::HostApi;
using ops::gpu::IsDeviceLost;
using ops::gpu::kNoRow;
using ops::gpu::testing::FailingApi;

std::unique_ptr<RowMemory> Make(CudaApi* api) {
  auto memory = RowMemory::Make(api, "host", nullptr);
  REQUIRE(memory.ok());
  return *std::move(memory);
}

TEST_CASE("rows come back when their last owner drops them, and are given again",
          "[worker][device]") {
  HostApi api({});
  auto memory = Make(&api);
  CHECK(memory->device() == "host");
  auto first = *memory->Take(1000);
  const float* const where = first.get();
  const size_t bytes = memory->device_bytes();
  CHECK(bytes >= 1250 * sizeof(float));  // a quarter to spare
  std::shared_ptr<const void> other = first;
  first.reset();
  auto second = *memory->Take(1000);
  CHECK(second.get() != where);  // somebody still has the first
  std::thread([&] { other.reset(); }).join();
  const uint64_t allocations = api.counts().allocations;
  for (int turn = 0; turn < 10; ++turn) {
    auto again = *memory->Take(1200 - 100 * turn);
    CHECK(again.get() == where);
  }
  CHECK(api.counts().allocations == allocations);
  CHECK(memory->device_bytes() == 2 * bytes);
}

TEST_CASE("pieces are no more than were in use at a time", "[worker][device]") {
  HostApi api({});
  auto memory = Make(&api);
  const size_t none = api.leaks();
  for (size_t floats = 100; floats < 100'000; floats += floats / 2) {
    auto a = *memory->Take(floats);
    auto b = *memory->Take(floats / 3);
    CHECK(api.leaks() <= none + 2);
  }
  CHECK(memory->device_bytes() < 2 * 100'000 * sizeof(float) * 3 / 2);
  auto nothing = *memory->Take(0);  // of a batch without features
  CHECK(nothing != nullptr);
}

TEST_CASE("rows may outlive the memory, and keep what it was given", "[worker][device]") {
  auto api = std::make_shared<HostApi>(HostApi::Options());
  std::weak_ptr<HostApi> alive = api;
  auto memory = *RowMemory::Make(api.get(), "host", api);
  api.reset();
  auto rows = *memory->Take(10);
  { auto dropped = *memory->Take(20); }
  memory.reset();
  rows.get()[9] = 1;
  REQUIRE(!alive.expired());
  CHECK(alive.lock()->leaks() == 2);
  rows.reset();
  CHECK(alive.expired());
}

TEST_CASE("no memory is an error that names the bytes, and what is free makes room first",
          "[worker][device]") {
  HostApi::Options limits;
  limits.device_bytes = 100'000;
  HostApi api(limits);
  auto memory = Make(&api);
  auto a = *memory->Take(10'000);
  const auto too_many = memory->Take(20'000);
  CHECK(too_many.status().code() == absl::StatusCode::kResourceExhausted);
  const std::string message(too_many.status().message());
  CHECK_THAT(message, Catch::Contains("80128 bytes") || Catch::Contains("80000 bytes"));
  CHECK_THAT(message, Catch::Contains("beside") && Catch::Contains("spec.training.batchSize"));
  CHECK_THAT(message, Catch::Contains("free"));
  CHECK(memory->Take(12'000).ok());  // with less than a quarter to spare
  a.reset();
  CHECK(memory->Take(24'000).ok());
}

// Floats that are there.
std::shared_ptr<float> There(RowMemory& memory, const std::vector<float>& values) {
  auto rows = memory.Take(values.size());
  if (!rows.ok()) return nullptr;
  if (!memory.Upload(values.data(), values.size(), rows->get()).ok()) return nullptr;
  return *std::move(rows);
}

absl::StatusOr<std::vector<float>> Merged(RowMemory& memory) {
  const auto left = There(memory, {1, 2, 3, 4}), right = There(memory, {10, 20, 30, 40});
  auto out = memory.Take(6);
  if (left == nullptr || right == nullptr || !out.ok()) {
    return absl::InternalError("injected before");
  }
  const std::vector<uint32_t> left_of = {0, 1, kNoRow}, right_of = {kNoRow, 0, 1};
  if (absl::Status s = memory.Merge({left.get(), right.get(), left_of, right_of, 2, out->get()});
      !s.ok()) {
    return s;
  }
  std::vector<float> sum(6);
  if (absl::Status s = memory.Download(out->get(), 6, sum.data()); !s.ok()) return s;
  return sum;
}

TEST_CASE("lists are merged, with one wait and no memory in the steady state", "[worker][device]") {
  HostApi api({});
  auto memory = Make(&api);
  const std::vector<float> right = {1, 2, 13, 24, 30, 40};
  REQUIRE(*Merged(*memory) == right);
  const auto before = api.counts();
  REQUIRE(*Merged(*memory) == right);
  CHECK(api.counts().allocations == before.allocations);
  CHECK(api.counts().synchronisations == before.synchronisations + 4);  // and copies: 2 up, 1 down
}

TEST_CASE("copies of many floats go in pieces", "[worker][device]") {
  HostApi api({});
  auto memory = Make(&api);
  std::vector<float> values(RowMemory::kCopyFloats * 2 + 3);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000003);
  const auto there = There(*memory, values);
  std::vector<float> back(values.size());
  REQUIRE(memory->Download(there.get(), back.size(), back.data()).ok());
  CHECK(back == values);
}

TEST_CASE("whichever call fails, nothing is left behind", "[worker][device]") {
  uint64_t calls = 0;
  {
    FailingApi api(UINT64_MAX);
    REQUIRE(Merged(*Make(&api)).ok());
    calls = api.calls();
    CHECK(api.leaks() == 0);
  }
  for (uint64_t failing = 0; failing < calls; ++failing) {
    INFO("call " << failing << " of " << calls);
    FailingApi api(failing, failing % 2 == 1);
    {
      auto memory = RowMemory::Make(&api, "host", nullptr);
      if (memory.ok()) {
        const auto sum = Merged(**memory);
        if (!sum.ok()) CHECK_THAT(std::string(sum.status().message()), Catch::Contains("injected"));
      }
    }
    CHECK(api.leaks() == 0);
  }
}

TEST_CASE("rows are taken and dropped by many threads", "[worker][device]") {
  HostApi api({});
  auto memory = Make(&api);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 200; ++i) {
        auto rows = *memory->Take(10 + (i * 7 + t) % 90);
        rows.get()[0] = static_cast<float>(t);
        std::thread dropping;
        if (i % 50 == 0)
          dropping = std::thread([moved = std::move(rows)]() mutable { moved.reset(); });
        if (dropping.joinable()) dropping.join();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  memory.reset();
  CHECK(api.leaks() == 0);
}

}  // namespace
}  // namespace strata::device
