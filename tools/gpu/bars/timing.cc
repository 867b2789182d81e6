#include "tools/gpu/bars/timing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "ops/cuda/api/stream.h"

namespace strata::gpu_check {
namespace {

using ops::gpu::CudaApi;
using ops::gpu::Event;
using ops::gpu::StreamHandle;

constexpr double kMostCalls = 64;  // of a sample

struct Sampler {
  CudaApi* api;
  StreamHandle stream;
  Event begin, end;

  // ms of `calls` calls together.
  absl::StatusOr<double> Sample(const Work& work, uint32_t calls) const {
    absl::Status status = api->Record(begin.get(), stream);
    for (uint32_t i = 0; i < calls && status.ok(); ++i) status = work();
    if (status.ok()) status = api->Record(end.get(), stream);
    if (status.ok()) status = api->Synchronize(end.get());
    float ms = 0;
    if (status.ok()) status = api->ElapsedMs(begin.get(), end.get(), &ms);
    if (!status.ok()) return status;
    return ms;
  }

  // How often each is called in a sample. `first`: after a call that loads its kernels.
  absl::StatusOr<std::vector<uint32_t>> CallsOf(const std::vector<Work>& works, double sample_ms,
                                                bool first) const {
    std::vector<uint32_t> calls;
    for (const Work& work : works) {
      auto ms = Sample(work, 1);
      if (first && ms.ok()) ms = Sample(work, 1);
      if (!ms.ok()) return ms.status();
      const double wanted = *ms > 0 ? std::ceil(sample_ms / *ms) : 1;
      calls.push_back(static_cast<uint32_t>(std::clamp(wanted, 1.0, kMostCalls)));
    }
    return calls;
  }

  // Works take turns for so long. Not where they take no time, as on host threads.
  absl::Status Warm(const std::vector<Work>& works, const std::vector<uint32_t>& calls,
                    double warm_ms) const {
    double warmed = 0;
    for (double before = -1; warmed < warm_ms && warmed > before;) {
      before = warmed;
      for (size_t i = 0; i < works.size(); ++i) {
        const auto ms = Sample(works[i], calls[i]);
        if (!ms.ok()) return ms.status();
        warmed += *ms;
      }
    }
    return absl::OkStatus();
  }
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

absl::StatusOr<std::vector<double>> MedianMs(CudaApi* api, StreamHandle stream,
                                             const std::vector<Work>& works,
                                             const Sampling& sampling) {
  auto begin = ops::gpu::MakeEvent(api, ops::gpu::EventUse::kTiming);
  if (!begin.ok()) return begin.status();
  auto end = ops::gpu::MakeEvent(api, ops::gpu::EventUse::kTiming);
  if (!end.ok()) return end.status();
  const Sampler sampler{api, stream, *std::move(begin), *std::move(end)};

  auto calls = sampler.CallsOf(works, sampling.sample_ms, /*first=*/true);
  if (!calls.ok()) return calls.status();
  absl::Status status = sampler.Warm(works, *calls, sampling.warm_ms);
  if (status.ok() && sampling.warm_ms > 0) {  // a cold device's calls took longer
    calls = sampler.CallsOf(works, sampling.sample_ms, /*first=*/false);
    status = calls.status();
  }
  if (!status.ok()) return status;
  std::vector<std::vector<double>> samples(works.size());
  for (uint32_t r = 0; r < std::max(sampling.repetitions, 1u); ++r) {
    for (size_t i = 0; i < works.size(); ++i) {
      const auto ms = sampler.Sample(works[i], (*calls)[i]);
      if (!ms.ok()) return ms.status();
      samples[i].push_back(*ms / (*calls)[i]);
    }
  }
  std::vector<double> medians;
  for (const std::vector<double>& of_work : samples) medians.push_back(Median(of_work));
  return medians;
}

}  // namespace strata::gpu_check
