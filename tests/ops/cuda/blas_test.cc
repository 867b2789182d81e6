// Products through cuBLASLt against sums in double; what opening says without a device or library.
#include "ops/cuda/blas.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ops/cuda/host_api.h"
#include "ops/cuda/memory.h"
#include "tests/ops/cuda/test_apis.h"

namespace strata::ops::gpu {
namespace {

using testing::Apis;
using testing::DeviceVector;
using testing::Random;
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

// (rows, columns) of a row-major matrix or of its transpose.
double At(const std::vector<float>& x, bool transposed, uint32_t rows, uint32_t columns, uint32_t r,
          uint32_t c) {
  return transposed ? x[c * rows + r] : x[r * columns + c];
}

TEST_CASE("products with bias and ReLU", "[ops][cuda]") {
  for (TestApi& test : Apis()) {
    if (test.name != "device") continue;
    auto arena = Arena::Create(test.api.get(), MemoryKind::kDevice, 64 << 20, "test");
    REQUIRE(arena.ok());
    auto blas = Blas::Open(arena->get(), {});
    REQUIRE(blas.ok());
    WARN("cuBLASLt " << (*blas)->version() << " in " << (*blas)->path());
    constexpr uint32_t m = 96, n = 64, k = 48;
    for (MatmulEpilogue epilogue :
         {MatmulEpilogue::kNone, MatmulEpilogue::kBias, MatmulEpilogue::kBiasRelu}) {
      for (int transposes = 0; transposes < 4; ++transposes) {
        for (bool add : {false, true}) {
          if (add && epilogue != MatmulEpilogue::kNone) continue;
          MatmulShape shape;
          shape.m = m;
          shape.n = n;
          shape.k = k;
          shape.transpose_a = transposes % 2 == 1;
          shape.transpose_b = transposes / 2 == 1;
          shape.lda = shape.transpose_a ? m : k;
          shape.ldb = shape.transpose_b ? k : n;
          shape.ldc = n;
          shape.epilogue = epilogue;
          shape.add = add;
          Random random(transposes);
          const std::vector<float> a = random.Floats(m * k), b = random.Floats(k * n);
          const std::vector<float> bias = random.Floats(n), before = random.Floats(m * n);
          DeviceVector<float> a_there(test, a), b_there(test, b), c(test, before);
          DeviceVector<float> bias_there(test, bias);
          REQUIRE((*blas)
                      ->Multiply(shape, {a_there.get(), b_there.get(), c.get(), bias_there.get()},
                                 test.stream.get())
                      .ok());
          const std::vector<float> got = c.Get();
          double worst = 0;
          for (uint32_t i = 0; i < m; ++i) {
            for (uint32_t j = 0; j < n; ++j) {
              double want = add ? before[i * n + j] : 0.0;
              for (uint32_t l = 0; l < k; ++l) {
                want += At(a, shape.transpose_a, m, k, i, l) * At(b, shape.transpose_b, k, n, l, j);
              }
              if (epilogue != MatmulEpilogue::kNone) want += bias[j];
              if (epilogue == MatmulEpilogue::kBiasRelu && want < 0) want = 0;
              worst = std::max(worst, std::fabs(want - got[i * n + j]));
            }
          }
          INFO("epilogue " << int(epilogue) << ", transposes " << transposes << ", add " << add);
          CHECK(worst < 1e-4);
        }
      }
    }
  }
}

}  // namespace
}  // namespace strata::ops::gpu
