// Products on host threads against sums in double, with every epilogue; captured, counted, failing.
#include "ops/cuda/products/host_blas.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/codec_elements.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/host_api.h"
#include "ops/cuda/api/stream.h"
#include "ops/cuda/products/blas.h"
#include "tests/ops/cuda/api/failing_api.h"
#include "tests/ops/cuda/api/test_apis.h"
#include "tests/ops/cuda/products/product_problem.h"

namespace strata::ops::gpu {
namespace {

using testing::Product;

TEST_CASE("products on host threads, with every epilogue", "[ops][cuda]") {
  for (const size_t threads : {1, 3}) {
    HostApi::Options options;
    options.threads = threads;
    HostApi api(options);
    auto stream = MakeStream(&api);
    REQUIRE(stream.ok());
    const auto blas = MakeHostBlas(&api);
    for (const MatmulEpilogue epilogue : testing::kEpilogues) {
      for (int transposes = 0; transposes < 4; ++transposes) {
        for (const bool add : {false, true}) {
          Product p(transposes + 1);
          const Product before = p;
          MatmulShape shape = p.Shape(epilogue, transposes);
          shape.add = add;
          REQUIRE(blas->Multiply(shape, p.Operands(), stream->get()).ok());
          INFO("epilogue " << int(epilogue) << ", transposes " << transposes << ", add " << add);
          CHECK(before.WorstError(shape, p) < 1e-4);
        }
      }
    }
  }
}

TEST_CASE("factors of products on host threads are rounded as a precision says", "[ops][cuda]") {
  HostApi api({});
  auto stream = MakeStream(&api);
  REQUIRE(stream.ok());
  const auto blas = MakeHostBlas(&api);
  const auto error = [&](MatmulPrecision precision) {
    Product p(3), exact(3);
    MatmulShape shape = p.Shape(MatmulEpilogue::kNone, 0);
    REQUIRE(blas->Multiply(shape, exact.Operands(), stream->get()).ok());
    shape.precision = precision;
    MatmulOperands operands = p.Operands();
    std::vector<uint16_t> a, b;
    if (precision == MatmulPrecision::kBf16) {
      for (const float x : p.a) a.push_back(Bf16Of(x));
      for (const float x : p.b) b.push_back(Bf16Of(x));
      operands.a = a.data();
      operands.b = b.data();
    }
    REQUIRE(blas->Multiply(shape, operands, stream->get()).ok());
    double worst = 0;
    for (size_t i = 0; i < p.c.size(); ++i) {
      worst = std::max<double>(worst, std::fabs(p.c[i] - exact.c[i]));
    }
    return worst;
  };
  CHECK(error(MatmulPrecision::kFp32) == 0);
  const double tf32 = error(MatmulPrecision::kTf32), bf16 = error(MatmulPrecision::kBf16);
  CHECK(tf32 > 1e-6);
  CHECK(tf32 < 4e-3);
  CHECK(bf16 > tf32);
  CHECK(bf16 < 4e-2);
}

TEST_CASE("a factor that is no number makes no number, in every precision", "[ops][cuda]") {
  HostApi api({});
  auto stream = MakeStream(&api);
  REQUIRE(stream.ok());
  const auto blas = MakeHostBlas(&api);
  for (const uint32_t nan : {0x7fffffffu, 0xffffffffu, 0x7f800001u}) {
    for (const auto precision :
         {MatmulPrecision::kFp32, MatmulPrecision::kTf32, MatmulPrecision::kBf16}) {
      INFO("precision " << int(precision) << ", bits " << nan);
      const std::vector<float> a = {std::bit_cast<float>(nan)}, b = {1.0f};
      const std::vector<uint16_t> half_a = {Bf16Of(a[0])}, half_b = {Bf16Of(b[0])};
      std::vector<float> c = {0.0f};
      MatmulShape shape;
      shape.m = shape.n = shape.k = shape.lda = shape.ldb = shape.ldc = 1;
      shape.precision = precision;
      MatmulOperands operands = {a.data(), b.data(), c.data(), nullptr, nullptr};
      if (precision == MatmulPrecision::kBf16) {
        operands.a = half_a.data();
        operands.b = half_b.data();
      }
      REQUIRE(blas->Multiply(shape, operands, stream->get()).ok());
      CHECK(std::isnan(c[0]));
    }
  }
}

TEST_CASE("products on host threads go through the seam", "[ops][cuda]") {
  Product p(5), again(5);
  const MatmulShape shape = p.Shape(MatmulEpilogue::kReluGradientBias, 0);
  for (uint64_t failing = 1; failing < 4; ++failing) {  // call 0 makes the stream
    testing::FailingApi api(failing);
    auto stream = MakeStream(&api);
    REQUIRE(stream.ok());
    const auto blas = MakeHostBlas(&api);
    const absl::Status status = blas->Multiply(shape, p.Operands(), stream->get());
    CHECK(status.ok() == (failing == 3));  // the product, and its columns
    if (!status.ok()) CHECK_THAT(std::string(status.message()), Catch::Contains("product"));
  }
  HostApi api({});
  auto stream = MakeStream(&api);
  REQUIRE(stream.ok());
  const auto blas = MakeHostBlas(&api);
  const std::vector<float> before = again.c;
  auto graph = CaptureGraph(&api, *stream,
                            [&] { return blas->Multiply(shape, again.Operands(), stream->get()); });
  REQUIRE(graph.ok());
  CHECK(testing::Differences(again.c, before) == 0);
  CHECK(api.counts().launches == 2);
  REQUIRE(api.LaunchGraph(graph->get(), stream->get()).ok());
  CHECK(testing::Differences(again.c, before) > 0);
}

// What cuBLASLt's products go through: they count, fail and lose the device as launches do.
TEST_CASE("a library's calls go through the seam", "[ops][cuda]") {
  testing::FailingApi api(1, true);
  int told = 0, given = 0;
  api.WhenLost([&](const absl::Status&) { ++told; });
  const auto give = [&] {
    ++given;
    return absl::OkStatus();
  };
  CHECK(api.CallLibrary("product", give).ok());
  const absl::Status failed = api.CallLibrary("product", give);
  CHECK(IsDeviceLost(failed));
  CHECK(told == 1);
  CHECK(given == 1);
  CHECK(api.counts().launches == 1);
  const absl::Status lost = api.CallLibrary(
      "product", [] { return DeviceLost(absl::InternalError("the library's own")); });
  CHECK(IsDeviceLost(lost));
  CHECK(told == 2);
}

}  // namespace
}  // namespace strata::ops::gpu
