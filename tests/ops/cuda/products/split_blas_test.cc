// Products that a library refuses, made in two parts: the same bits as in one.
#include "ops/cuda/products/split_blas.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ops/codec_elements.h"
#include "ops/cuda/api/host_api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/api/stream.h"
#include "ops/cuda/products/blas.h"
#include "ops/cuda/products/host_blas.h"
#include "tests/ops/cuda/api/failing_api.h"
#include "tests/ops/cuda/api/test_apis.h"
#include "tests/ops/cuda/products/product_problem.h"
#include "tests/ops/cuda/products/refusing_blas.h"

namespace strata::ops::gpu {
namespace {

using testing::Differences;
using testing::Product;
using testing::RefusingBlas;

struct Fixture {
  explicit Fixture(CudaApi* made, std::optional<MatmulPrecision> without = std::nullopt)
      : api(made), arena(*Arena::Create(api, MemoryKind::kDevice, 8 << 20, "test")) {
    stream = *MakeStream(api);
    blas = MakeSplitBlas(arena.get(), std::make_unique<RefusingBlas>(api, without, &refused));
  }
  int refused = 0;
  CudaApi* const api;
  const std::unique_ptr<Arena> arena;
  Stream stream;
  std::unique_ptr<Blas> blas;  // before the arena
};

TEST_CASE("refused epilogues come to the same bits", "[ops][cuda]") {
  HostApi api({});
  Fixture f(&api);
  const auto whole = MakeHostBlas(&api);
  for (const MatmulEpilogue epilogue : testing::kEpilogues) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      for (const bool add : {false, true}) {
        Product split(transposes + 1), fused(transposes + 1);
        MatmulShape shape = split.Shape(epilogue, transposes);
        shape.add = add;
        INFO("epilogue " << int(epilogue) << ", transposes " << transposes << ", add " << add);
        f.refused = 0;
        for (int again = 0; again < 2; ++again) {
          split = Product(transposes + 1);
          REQUIRE(f.blas->Multiply(shape, split.Operands(), f.stream.get()).ok());
        }
        CHECK(f.refused == (epilogue == MatmulEpilogue::kNone ? 0 : 1));  // asked once
        REQUIRE(whole->Multiply(shape, fused.Operands(), f.stream.get()).ok());
        CHECK(Differences(split.c, fused.c) == 0);
        CHECK(Differences(split.bias, fused.bias) == 0);
        if (epilogue == MatmulEpilogue::kBiasReluMask) {
          for (uint32_t i = 0; i < Product::m; ++i) {
            for (uint32_t j = 0; j < Product::n; ++j) CHECK(split.Bit(i, j) == fused.Bit(i, j));
          }
        }
      }
    }
  }
}

TEST_CASE("a bare product that is refused", "[ops][cuda]") {
  HostApi api({});
  Fixture f(&api, MatmulPrecision::kTf32);
  Product p(3), fp32(3);
  MatmulShape shape = p.Shape(MatmulEpilogue::kBias, 0);
  REQUIRE(f.blas->Multiply(shape, fp32.Operands(), f.stream.get()).ok());
  shape.precision = MatmulPrecision::kTf32;  // done in fp32, which is no less exact
  REQUIRE(f.blas->Multiply(shape, p.Operands(), f.stream.get()).ok());
  CHECK(Differences(p.c, fp32.c) == 0);
  shape.bf16_out = true;
  CHECK(absl::IsInvalidArgument(f.blas->Multiply(shape, p.Operands(), f.stream.get())));
}

std::vector<uint16_t> Rounded(const std::vector<float>& x) {
  std::vector<uint16_t> halves;
  for (const float f : x) halves.push_back(Bf16Of(f));
  return halves;
}

TEST_CASE("a refused bf16 product is one in fp32 of rounded factors", "[ops][cuda]") {
  HostApi api({});
  Fixture f(&api, MatmulPrecision::kBf16);
  const auto whole = MakeHostBlas(&api);
  for (const MatmulEpilogue epilogue : testing::kEpilogues) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      for (const bool add : {false, true}) {
        Product split(transposes + 1), fused(transposes + 1);
        const std::vector<uint16_t> a = Rounded(split.a), b = Rounded(split.b);
        MatmulShape shape = split.Shape(epilogue, transposes);
        shape.precision = MatmulPrecision::kBf16;
        shape.add = add;
        INFO("epilogue " << int(epilogue) << ", transposes " << transposes << ", add " << add);
        f.refused = 0;
        for (int again = 0; again < 2; ++again) {
          split = Product(transposes + 1);
          MatmulOperands operands = split.Operands();
          operands.a = a.data();
          operands.b = b.data();
          REQUIRE(f.blas->Multiply(shape, operands, f.stream.get()).ok());
        }
        // Each once: with its epilogue, and bare.
        if (epilogue == MatmulEpilogue::kNone) CHECK(f.refused == 2);
        if (epilogue != MatmulEpilogue::kNone) CHECK(f.refused <= 2);
        MatmulOperands operands = fused.Operands();
        operands.a = a.data();
        operands.b = b.data();
        REQUIRE(whole->Multiply(shape, operands, f.stream.get()).ok());
        CHECK(Differences(split.c, fused.c) == 0);
        CHECK(Differences(split.bias, fused.bias) == 0);
      }
    }
  }
}

// Each dimension in turn is more than one tile.
TEST_CASE("tiles of a refused bf16 product come to the whole", "[ops][cuda]") {
  HostApi api({});
  Fixture f(&api, MatmulPrecision::kBf16);
  const auto whole = MakeHostBlas(&api);
  struct Size {
    uint32_t m, n, k;
  };
  for (const Size& size : {Size{1030, 5, 7}, Size{5, 1030, 7}, Size{5, 6, 1100}}) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      INFO(size.m << " x " << size.n << " x " << size.k << ", transposes " << transposes);
      testing::Random random(4);
      const std::vector<uint16_t> a = Rounded(random.Floats(size_t{size.m} * size.k));
      const std::vector<uint16_t> b = Rounded(random.Floats(size_t{size.k} * size.n));
      std::vector<float> split = random.Floats(size_t{size.m} * size.n), want = split;
      MatmulShape shape;
      shape.m = size.m;
      shape.n = shape.ldc = size.n;
      shape.k = size.k;
      shape.transpose_a = transposes % 2 == 1;
      shape.transpose_b = transposes / 2 == 1;
      shape.lda = shape.transpose_a ? size.m : size.k;
      shape.ldb = shape.transpose_b ? size.k : size.n;
      shape.precision = MatmulPrecision::kBf16;
      shape.add = true;
      MatmulOperands operands = {a.data(), b.data(), split.data(), nullptr, nullptr};
      REQUIRE(f.blas->Multiply(shape, operands, f.stream.get()).ok());
      operands.c = want.data();
      REQUIRE(whole->Multiply(shape, operands, f.stream.get()).ok());
      double worst = 0;
      for (size_t i = 0; i < want.size(); ++i) {
        worst = std::max<double>(worst, std::fabs(split[i] - want[i]));
      }
      CHECK(worst <= (size.k > 512 ? 1e-4 : 0.0));
    }
  }
}

TEST_CASE("sums of columns beyond the scratch memory are refused", "[ops][cuda]") {
  HostApi api({});
  Fixture f(&api);
  Product p(3);
  MatmulShape shape = p.Shape(MatmulEpilogue::kReluGradientBias, 0);
  shape.m = 1u << 24;
  shape.n = 1u << 24;
  const absl::Status status =
      MakeSplitBlas(f.arena.get(), std::make_unique<RefusingBlas>(&api, std::nullopt, &f.refused))
          ->Multiply(shape, p.Operands(), f.stream.get());
  CHECK(status.code() == absl::StatusCode::kResourceExhausted);
  CHECK_THAT(std::string(status.message()), Catch::Contains("16777216 x 16777216"));
}

TEST_CASE("each call of a split product may fail", "[ops][cuda]") {
  uint64_t calls = 0;
  for (uint64_t failing = 0; failing <= calls; ++failing) {
    testing::FailingApi api(failing + 1000000);
    Fixture f(&api);
    Product p(5);
    const uint64_t before = api.calls();
    (void)f.blas->Multiply(p.Shape(MatmulEpilogue::kReluGradientBias, 0), p.Operands(),
                           f.stream.get());
    calls = api.calls() - before;
    testing::FailingApi fails(before + failing);
    Fixture g(&fails);
    const absl::Status status = g.blas->Multiply(p.Shape(MatmulEpilogue::kReluGradientBias, 0),
                                                 p.Operands(), g.stream.get());
    CHECK(status.ok() == (failing == calls));
  }
  CHECK(calls == 4);  // the product, the mask, two of the sums
}

}  // namespace
}  // namespace strata::ops::gpu
