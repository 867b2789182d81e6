#include "storage/gpu/host_backend.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "storage/gpu/backend.h"
#include "storage/gpu/shape.h"
#include "tests/skip.h"
#include "tests/storage/gpu/backend_conformance.h"

namespace strata::storage::gpu {
namespace {

GpuBackendFactory HostWith(size_t threads) {
  return
      [threads](const GpuShape& shape) { return MakeHostGpuBackend(shape, {.threads = threads}); };
}

GpuShape SmallShape() {
  return {.row_bytes = 24,
          .bucket_slots = 32,
          .eviction = EvictionKind::kLru,
          .buckets = 3,
          .places = 16};
}

TEST_CASE("one thread and teams do what the oracle says", "[storage][gpu]") {
  // Teams larger than the machine wait for threads that are not running: two cases in three do not.
  const auto team = [](const GpuShape& shape) {
    return HostWith(shape.bucket_slots == 64 || LongRun() ? 8 : 2)(shape);
  };
  CheckBackendsAgree(HostWith(1), team, 9'000'000);  // and an eighth: above 10^7
}

TEST_CASE("memory that is not there is refused with its bytes", "[storage][gpu]") {
  const GpuShape shape = SmallShape();
  const auto backend = MakeHostGpuBackend(shape, {.memory_bytes = 1000});
  REQUIRE(backend.status().code() == absl::StatusCode::kResourceExhausted);
  const std::string message(backend.status().message());
  CHECK(message.find("needs " + std::to_string(shape.bytes()) + " bytes") != std::string::npos);
  CHECK(message.find("1000 bytes are free") != std::string::npos);
  CHECK(MakeHostGpuBackend(shape, {.memory_bytes = shape.bytes()}).ok());
  // More than any machine has.
  GpuShape huge = shape;
  huge.row_bytes = size_t{1} << 44;
  CHECK(MakeHostGpuBackend(huge, {}).status().code() == absl::StatusCode::kResourceExhausted);
}

TEST_CASE("one thread and a team answer the same", "[storage][gpu]") {
  CheckSameAnswers(HostWith(1), HostWith(3), 20'000);
}

TEST_CASE("rows are updated and gathered as in DRAM", "[storage][gpu]") {
  CheckUpdates(HostWith(1), HostWith(3));
}

TEST_CASE("rows are born as in DRAM", "[storage][gpu]") {
  CheckBirths(HostWith(1));
  CheckBirths(HostWith(3));
}

TEST_CASE("half of the free memory may be taken beside the table's", "[storage][gpu]") {
  constexpr uint64_t kFree = 1 << 20;
  const GpuShape shape = SmallShape();
  const auto make = [](const GpuShape& s) {
    return MakeHostGpuBackend(s, {.memory_bytes = s.bytes() + kFree});
  };
  CheckAllocations(make, shape, kFree);
  CHECK((*MakeHostGpuBackend(shape, {}))->AllocateThere(1 << 20).ok());
}

TEST_CASE("a row takes 255 pins", "[storage][gpu]") { CheckPins(HostWith(1)); }

}  // namespace
}  // namespace strata::storage::gpu
