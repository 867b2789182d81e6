// Host threads in place of a device, whose calls fail.
#ifndef STRATA_TESTS_OPS_CUDA_API_FAILING_API_H_
#define STRATA_TESTS_OPS_CUDA_API_FAILING_API_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/host_api.h"

namespace strata::ops::gpu::testing {

// Fails its call number `failing`, counted from 0; `lost`: as a device that is lost does.
class FailingApi : public HostApi {
 public:
  explicit FailingApi(uint64_t failing, bool lost = false)
      : HostApi(Options()), failing_(failing), lost_(lost) {}
  uint64_t calls() const { return calls_; }

 protected:
  absl::Status Enter(const char* call) override {
    if (calls_++ != failing_) return absl::OkStatus();
    const absl::Status status = absl::InternalError(absl::StrCat(call, ": injected"));
    return lost_ ? DeviceLost(status) : status;
  }

 private:
  const uint64_t failing_;
  const bool lost_;
  uint64_t calls_ = 0;
};

}  // namespace strata::ops::gpu::testing

#endif  // STRATA_TESTS_OPS_CUDA_API_FAILING_API_H_
