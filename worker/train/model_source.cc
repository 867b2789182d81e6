#include "worker/train/model_source.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ops/cuda/api/host_api.h"
#include "ops/cuda/products/host_blas.h"
#include "worker/device/dense_step.h"
#include "worker/device/device_model.h"
#include "worker/device/layers/step_batch.h"
#include "worker/device/step.h"
#include "worker/models/model_memory.h"
#include "worker/models/models.h"

namespace strata {
namespace {

using device::DeviceStep;
using device::DeviceStepOptions;
using device::WorkerDevice;
using ops::gpu::HostApi;
using ops::gpu::MatmulPrecision;

MatmulPrecision PrecisionOf(const WorkerSpec& worker) {
  if (worker.precision() == "tf32") return MatmulPrecision::kTf32;
  if (worker.precision() == "bf16") return MatmulPrecision::kBf16;
  return MatmulPrecision::kFp32;
}

class CpuModels : public ModelSource {
 public:
  explicit CpuModels(const ModelTables* tables) : tables_(tables) {}
  BatchLimit scored() const override { return ScoredAtATime(*tables_); }
  absl::StatusOr<std::unique_ptr<Model>> NewModel() override { return MakeModel(*tables_); }
  absl::StatusOr<std::unique_ptr<DenseOptimizer>> NewDenseOptimizer(const TableSpec&,
                                                                    size_t) override {
    return nullptr;
  }
  device::RowMemory* row_memory() override { return nullptr; }

 private:
  const ModelTables* const tables_;
};

class DeviceModels : public ModelSource {
 public:
  // `host`: what stands for the device, or null.
  DeviceModels(const BatchLimit& scored, ops::gpu::CudaApi* api, std::shared_ptr<HostApi> host,
               std::unique_ptr<device::RowMemory> rows, std::shared_ptr<DeviceStep> step)
      : scored_(scored),
        api_(api),
        host_(std::move(host)),
        rows_(std::move(rows)),
        step_(std::move(step)) {}
  BatchLimit scored() const override { return scored_; }
  absl::StatusOr<std::unique_ptr<Model>> NewModel() override {
    return device::MakeDeviceModel(step_);
  }
  absl::StatusOr<std::unique_ptr<DenseOptimizer>> NewDenseOptimizer(const TableSpec& table,
                                                                    size_t rows) override {
    return device::MakeDenseStep(api_, table, rows);
  }
  device::RowMemory* row_memory() override { return rows_.get(); }

 private:
  const BatchLimit scored_;
  ops::gpu::CudaApi* const api_;
  const std::shared_ptr<HostApi> host_;  // rows in use keep it, too
  const std::unique_ptr<device::RowMemory> rows_;
  const std::shared_ptr<DeviceStep> step_;
};

DeviceStepOptions StepOptions(const ModelSourceOptions& o) {
  DeviceStepOptions options;
  options.precision = PrecisionOf(o.worker);
  options.batch_size = std::max(1u, o.batch_size);
  const uint64_t scored = o.evaluates ? ScoredOnDevice(*o.tables, options.batch_size).lines : 0;
  options.first_shape =
      device::FirstShape(options.batch_size, static_cast<uint32_t>(scored), o.tables->fields);
  return options;
}

absl::StatusOr<std::unique_ptr<ModelSource>> OnDevice(const ModelSourceOptions& o,
                                                      const DeviceStepOptions& options,
                                                      const std::string& device,
                                                      std::shared_ptr<HostApi> host) {
  // Says what is wrong with the tables, if anything.
  if (auto model = MakeModel(*o.tables); !model.ok()) return model.status();
  if (absl::Status s = device::CheckOnDevice(*o.tables, options.batch_size); !s.ok()) {
    return absl::Status(s.code(), absl::StrCat(s.message(), "; this worker has ", device));
  }
  auto step = DeviceStep::Make(*o.tables, options);
  if (!step.ok()) return step.status();
  auto rows = device::RowMemory::Make(options.api, device, host);
  if (!rows.ok()) return rows.status();
  return std::unique_ptr<ModelSource>(
      std::make_unique<DeviceModels>(ScoredOnDevice(*o.tables, options.batch_size), options.api,
                                     std::move(host), *std::move(rows), *std::move(step)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelSource>> ModelSource::Make(const ModelSourceOptions& o) {
  constexpr absl::string_view kCuda = "cuda:";
  const absl::string_view wanted = o.worker.device();
  DeviceStepOptions options = StepOptions(o);
  if (wanted == "host") {
    HostApi::Options host_options;
    host_options.threads = std::max(1u, o.threads);
    auto host = std::make_shared<HostApi>(host_options);
    options.api = host.get();
    options.open_blas = [api = host.get()](ops::gpu::Arena*) {
      return ops::gpu::MakeHostBlas(api);
    };
    return OnDevice(o, options, "host", std::move(host));
  }
  const WorkerDevice* const device = wanted == "cpu" ? nullptr : o.device;
  if (absl::StartsWith(wanted, kCuda) &&
      (device == nullptr || !absl::StartsWith(device->uuid, wanted.substr(kCuda.size())))) {
    return absl::FailedPreconditionError(
        absl::StrCat("spec.worker.device is ", wanted, ", but this worker has ",
                     device == nullptr ? std::string("no GPU") : device->uuid,
                     "; start strata-worker with --device, or give auto"));
  }
  if (device != nullptr) {
    options.api = device->api;
    options.open_blas = device->open_blas;
    options.blas_bytes = device->blas_bytes;
    return OnDevice(o, options, device->uuid, nullptr);
  }
  if (options.precision != MatmulPrecision::kFp32) {
    return absl::FailedPreconditionError(
        absl::StrCat("spec.worker.precision is ", o.worker.precision(),
                     ", but this worker has no GPU, and the CPU computes in fp32; start "
                     "strata-worker with --device, or give fp32"));
  }
  return std::unique_ptr<ModelSource>(std::make_unique<CpuModels>(o.tables));
}

}  // namespace strata
