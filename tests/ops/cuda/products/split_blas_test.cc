// Products that a library refuses, made in two parts: the same bits as in one.
#include "ops/cuda/products/split_blas.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "ops/cuda/api/host_api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/api/stream.h"
#include "ops/cuda/products/blas.h"
#include "ops/cuda/products/host_blas.h"
#include "tests/ops/cuda/api/failing_api.h"
#include "tests/ops/cuda/api/test_apis.h"
#include "tests/ops/cuda/products/product_problem.h"

namespace strata::ops::gpu {
namespace {

using testing::Differences;
using testing::Product;

// A library without epilogues, and one that has not TF32 either.
class Refusing : public Blas {
 public:
  Refusing(CudaApi* api, bool tf32, int* refused)
      : blas_(MakeHostBlas(api)), tf32_(tf32), refused_(refused) {}
  const std::string& path() const override { return blas_->path(); }
  const std::string& version() const override { return blas_->version(); }
  absl::Status Multiply(const MatmulShape& shape, const MatmulOperands& operands,
                        StreamHandle stream) override {
    const bool without = shape.precision == MatmulPrecision::kTf32 && !tf32_;
    if (shape.epilogue == MatmulEpilogue::kNone && !without) {
      return blas_->Multiply(shape, operands, stream);
    }
    ++*refused_;
    return absl::InvalidArgumentError("no such product");
  }

 private:
  const std::unique_ptr<Blas> blas_;
  const bool tf32_;
  int* const refused_;
};

struct Fixture {
  explicit Fixture(CudaApi* made, bool tf32 = true)
      : api(made), arena(*Arena::Create(api, MemoryKind::kDevice, 8 << 20, "test")) {
    stream = *MakeStream(api);
    blas = MakeSplitBlas(arena.get(), std::make_unique<Refusing>(api, tf32, &refused));
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
  Fixture f(&api, /*tf32=*/false);
  Product p(3), fp32(3);
  MatmulShape shape = p.Shape(MatmulEpilogue::kBias, 0);
  REQUIRE(f.blas->Multiply(shape, fp32.Operands(), f.stream.get()).ok());
  shape.precision = MatmulPrecision::kTf32;  // done in fp32, which is no less exact
  REQUIRE(f.blas->Multiply(shape, p.Operands(), f.stream.get()).ok());
  CHECK(Differences(p.c, fp32.c) == 0);
  shape.bf16_out = true;
  CHECK(absl::IsInvalidArgument(f.blas->Multiply(shape, p.Operands(), f.stream.get())));
}

TEST_CASE("sums of columns beyond the scratch memory are refused", "[ops][cuda]") {
  HostApi api({});
  Fixture f(&api);
  Product p(3);
  MatmulShape shape = p.Shape(MatmulEpilogue::kReluGradientBias, 0);
  shape.m = 1u << 24;
  shape.n = 1u << 24;
  const absl::Status status =
      MakeSplitBlas(f.arena.get(), std::make_unique<Refusing>(&api, true, &f.refused))
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
