// Products through cuBLASLt against sums in double; what opening says without a device or library.
#include "ops/cuda/products/blas.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ops/codec_elements.h"
#include "ops/cuda/api/host_api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/api/stream.h"
#include "tests/ops/cuda/api/test_apis.h"
#include "tests/ops/cuda/products/product_problem.h"

namespace strata::ops::gpu {
namespace {

using testing::Apis;
using testing::DeviceVector;
using testing::Product;
using testing::TestApi;

TEST_CASE("a library that is not there is named", "[ops][cuda]") {
  HostApi api({});
  auto arena = Arena::Create(&api, MemoryKind::kDevice, 1 << 20, "test");
  REQUIRE(arena.ok());
  Blas::Options options;
  options.library = "/nonexistent/libcublasLt.so";
  const absl::Status none = Blas::Open(arena->get(), options).status();
  CHECK(none.code() == absl::StatusCode::kNotFound);
  CHECK_THAT(std::string(none.message()), Catch::Contains("/nonexistent/libcublasLt.so"));
  options.library = "libm.so.6";  // a library, but another one
  const absl::Status other = Blas::Open(arena->get(), options).status();
  CHECK(other.code() == absl::StatusCode::kNotFound);
  CHECK_THAT(std::string(other.message()), Catch::Contains("lacks functions"));
  CHECK((*arena)->free_bytes() == (*arena)->total_bytes());
}

TEST_CASE("products with every epilogue", "[ops][cuda]") {
  for (TestApi& test : Apis()) {
    if (test.name != "device") continue;
    auto arena = Arena::Create(test.api.get(), MemoryKind::kDevice, 64 << 20, "test");
    REQUIRE(arena.ok());
    auto blas = Blas::Open(arena->get(), {});
    REQUIRE(blas.ok());
    WARN("cuBLASLt " << (*blas)->version() << " in " << (*blas)->path());
    for (const MatmulPrecision precision : {MatmulPrecision::kFp32, MatmulPrecision::kTf32}) {
      for (const MatmulEpilogue epilogue : testing::kEpilogues) {
        for (int transposes = 0; transposes < 4; ++transposes) {
          for (const bool add : {false, true}) {
            if (add && epilogue != MatmulEpilogue::kNone) continue;
            const Product before(transposes + 1);
            Product after = before;
            MatmulShape shape = before.Shape(epilogue, transposes);
            shape.precision = precision;
            shape.add = add;
            DeviceVector<float> a(test, before.a), b(test, before.b), c(test, before.c);
            DeviceVector<float> bias(test, before.bias);
            DeviceVector<uint8_t> mask(test, before.mask);
            const absl::Status status = (*blas)->Multiply(
                shape, {a.get(), b.get(), c.get(), bias.get(), mask.get()}, test.stream.get());
            INFO("precision " << int(precision) << ", epilogue " << int(epilogue) << ", transposes "
                              << transposes << ", add " << add << ": " << status);
            REQUIRE(status.ok());
            after.c = c.Get();
            after.bias = bias.Get();
            after.mask = mask.Get();
            const double allowed = precision == MatmulPrecision::kFp32 ? 1e-4 : 2e-2;
            CHECK(before.WorstError(shape, after) < allowed);
          }
        }
      }
    }
  }
}

std::vector<uint16_t> Rounded(const std::vector<float>& x) {
  std::vector<uint16_t> halves;
  for (const float f : x) halves.push_back(Bf16Of(f));
  return halves;
}

std::vector<float> Widened(const std::vector<uint16_t>& halves) {
  std::vector<float> x;
  for (const uint16_t half : halves) x.push_back(FromBf16(half));
  return x;
}

// Rows of a factor as bf16, `stride` elements apart.
std::vector<uint16_t> Strided(const std::vector<uint16_t>& x, uint32_t width, uint32_t stride) {
  std::vector<uint16_t> out(x.size() / width * stride);
  for (size_t i = 0; i < x.size(); ++i) out[i / width * stride + i % width] = x[i];
  return out;
}

uint32_t RoundUp(uint32_t n, uint32_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// As a worker makes them: factors in bf16 whose rows are 16 bytes' multiples apart.
TEST_CASE("bf16 products with every epilogue", "[ops][cuda]") {
  for (TestApi& test : Apis()) {
    if (test.name != "device") continue;
    auto arena = Arena::Create(test.api.get(), MemoryKind::kDevice, 64 << 20, "test");
    REQUIRE(arena.ok());
    auto blas = Blas::Open(arena->get(), {});
    REQUIRE(blas.ok());
    for (const MatmulEpilogue epilogue : testing::kEpilogues) {
      for (int transposes = 0; transposes < 4; ++transposes) {
        Product before(transposes + 1);
        const std::vector<uint16_t> half_a = Rounded(before.a), half_b = Rounded(before.b);
        before.a = Widened(half_a);  // what the sums in double are of
        before.b = Widened(half_b);
        Product after = before;
        MatmulShape shape = before.Shape(epilogue, transposes);
        const uint32_t lda = RoundUp(shape.lda, 8), ldb = RoundUp(shape.ldb, 8);
        DeviceVector<uint16_t> a(test, Strided(half_a, shape.lda, lda));
        DeviceVector<uint16_t> b(test, Strided(half_b, shape.ldb, ldb));
        DeviceVector<float> c(test, before.c), bias(test, before.bias);
        DeviceVector<uint8_t> mask(test, before.mask);
        shape.lda = lda;
        shape.ldb = ldb;
        shape.precision = MatmulPrecision::kBf16;
        const absl::Status status = (*blas)->Multiply(
            shape, {a.get(), b.get(), c.get(), bias.get(), mask.get()}, test.stream.get());
        INFO("epilogue " << int(epilogue) << ", transposes " << transposes << ": " << status);
        REQUIRE(status.ok());
        after.c = c.Get();
        after.bias = bias.Get();
        after.mask = mask.Get();
        CHECK(before.WorstError(shape, after) < 1e-4);
      }
    }
  }
}

// What a bsp job's model rests on (ops/EXACT.md rule 11): by another handle, after other products,
// and in a graph.
TEST_CASE("products repeat to the bit", "[ops][cuda][exact]") {
  constexpr uint32_t kRows = 4096, kWidth = 256;  // long sums, which may be split
  for (TestApi& test : Apis()) {
    if (test.name != "device") continue;
    testing::Random random(8);
    const std::vector<float> x = random.Floats(kRows * kWidth), y = random.Floats(kRows * kWidth);
    for (const MatmulPrecision precision :
         {MatmulPrecision::kFp32, MatmulPrecision::kTf32, MatmulPrecision::kBf16}) {
      const bool bf16 = precision == MatmulPrecision::kBf16;
      DeviceVector<float> a(test, x), b(test, y);
      DeviceVector<uint16_t> half_a(test, Rounded(x)), half_b(test, Rounded(y));
      DeviceVector<float> c(test, kWidth * kWidth);
      MatmulShape shape;
      shape.m = shape.lda = shape.n = shape.ldb = shape.ldc = kWidth;
      shape.k = kRows;
      shape.transpose_a = true;
      shape.precision = precision;
      const MatmulOperands operands = {bf16 ? static_cast<const void*>(half_a.get()) : a.get(),
                                       bf16 ? static_cast<const void*>(half_b.get()) : b.get(),
                                       c.get(), nullptr, nullptr};
      std::vector<float> first;
      for (int handle = 0; handle < 2; ++handle) {
        auto arena = Arena::Create(test.api.get(), MemoryKind::kDevice, 64 << 20, "test");
        REQUIRE(arena.ok());
        auto blas = Blas::Open(arena->get(), {});
        REQUIRE(blas.ok());
        const auto multiply = [&] { return (*blas)->Multiply(shape, operands, test.stream.get()); };
        for (int turn = 0; turn < 3; ++turn) {
          INFO("precision " << int(precision) << ", handle " << handle << ", turn " << turn);
          c.Set(std::vector<float>(kWidth * kWidth, 7.0f));
          if (turn < 2) {
            REQUIRE(multiply().ok());
          } else {
            auto graph = CaptureGraph(test.api.get(), test.stream, multiply);
            REQUIRE(graph.ok());
            REQUIRE(test.api->LaunchGraph(graph->get(), test.stream.get()).ok());
            REQUIRE(test.api->Synchronize(test.stream.get()).ok());
          }
          const std::vector<float> got = c.Get();
          if (first.empty()) first = got;
          CHECK(testing::Differences(got, first) == 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace strata::ops::gpu
