#include "tests/ops/cuda/api/test_apis.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "ops/cuda/api/host_api.h"
#include "tests/skip.h"
#ifdef STRATA_CUDA
#include "ops/cuda/api/device_api.h"
#endif

namespace strata::ops::gpu::testing {
namespace {

void Add(std::string name, std::unique_ptr<CudaApi> api, std::vector<TestApi>* apis) {
  auto stream = MakeStream(api.get());
  REQUIRE(stream.ok());
  apis->push_back({std::move(name), std::move(api), *std::move(stream)});
}

}  // namespace

std::vector<TestApi> Apis() {
  std::vector<TestApi> apis;
  const char* wanted = std::getenv("STRATA_TEST_APIS");
  const bool device_alone = wanted != nullptr && std::string(wanted) == "device";
  for (size_t threads : {1, 3}) {
    if (device_alone) break;
    HostApi::Options options;
    options.threads = threads;
    Add(threads == 1 ? "one host thread" : "host threads", std::make_unique<HostApi>(options),
        &apis);
  }
#ifdef STRATA_CUDA
  auto device = OpenDevice("");
  if (device.ok()) {
    Add("device", *std::move(device), &apis);
  } else {
    ReportSkipped(Catch::getResultCapture().getCurrentTestName() + ", on a device",
                  std::string(device.status().message()));
  }
#endif
  return apis;
}

size_t Differences(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return a.size() + b.size();
  size_t differences = 0;
  for (size_t i = 0; i < a.size(); ++i) differences += std::memcmp(&a[i], &b[i], 4) != 0;
  return differences;
}

}  // namespace strata::ops::gpu::testing
