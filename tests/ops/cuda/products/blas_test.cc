// Products through cuBLASLt against sums in double; what opening says without a device or library.
#include "ops/cuda/products/blas.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/status/status.h"
#include "ops/cuda/api/host_api.h"
#include "ops/cuda/api/memory.h"
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

}  // namespace
}  // namespace strata::ops::gpu
