// What tests of kernels run on: host threads and, with --config=cuda, the device where there is
// one.
#ifndef STRATA_TESTS_OPS_CUDA_API_TEST_APIS_H_
#define STRATA_TESTS_OPS_CUDA_API_TEST_APIS_H_

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ops/cuda/api/api.h"
#include "ops/cuda/api/stream.h"

namespace strata::ops::gpu::testing {

struct TestApi {
  std::string name;
  std::unique_ptr<CudaApi> api;
  Stream stream;  // gone before the api
};

// Host threads (one, and three) and the device. With --config=cuda and no device, the running case
// reports itself as skipped, and still runs on host threads. STRATA_TEST_APIS=device in the
// environment: the device alone, for tools that slow everything down.
std::vector<TestApi> Apis();

// Elements in memory of the device, for tests: slow, and every call waits.
template <typename T>
class DeviceVector {
 public:
  DeviceVector(TestApi& test, const std::vector<T>& values) : test_(&test), size_(values.size()) {
    REQUIRE(test.api->Malloc(size_ * sizeof(T) + 256, &data_).ok());
    Set(values);
  }
  DeviceVector(TestApi& test, size_t size, T value = T())
      : DeviceVector(test, std::vector<T>(size, value)) {}
  DeviceVector(DeviceVector&& other) noexcept
      : test_(other.test_), size_(other.size_), data_(other.data_) {
    other.data_ = nullptr;
  }
  ~DeviceVector() {
    if (data_ != nullptr) CHECK(test_->api->Free(data_).ok());
  }
  T* get() const { return static_cast<T*>(data_); }
  void Set(const std::vector<T>& values) { Copy(data_, values.data()); }
  std::vector<T> Get() const {
    std::vector<T> values(size_);
    Copy(values.data(), data_);
    return values;
  }

 private:
  void Copy(void* to, const void* from) const {
    REQUIRE(test_->api->CopyAsync(to, from, size_ * sizeof(T), test_->stream.get()).ok());
    REQUIRE(test_->api->Synchronize(test_->stream.get()).ok());
  }
  TestApi* test_;
  size_t size_;
  void* data_ = nullptr;
};

// Deterministic numbers.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  uint32_t Next() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<uint32_t>(state_ >> 32);
  }
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>((uint64_t{Next()} * n) >> 32); }
  float Float() { return static_cast<float>(static_cast<int32_t>(Next())) * 0x1p-31f; }
  std::vector<float> Floats(size_t n) {
    std::vector<float> values(n);
    for (float& x : values) x = Float();
    return values;
  }

 private:
  uint64_t state_;
};

// How many elements differ in a bit.
size_t Differences(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace strata::ops::gpu::testing

#endif  // STRATA_TESTS_OPS_CUDA_API_TEST_APIS_H_
