#include "ops/cuda/api/device_api.h"

#include <cuda_runtime.h>

#include <atomic>
#include <cstdio>
#include <cub/device/device_radix_sort.cuh>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/cuda/api/choose_device.h"

namespace strata::ops::gpu {
namespace {

// After these no call of the process succeeds any more.
bool IsSticky(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorContained:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

absl::Status StatusOf(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return absl::OkStatus();
  (void)cudaGetLastError();  // so that the next call does not answer for this one
  const std::string message =
      absl::StrCat(call, ": ", cudaGetErrorName(error), ": ", cudaGetErrorString(error));
  if (error == cudaErrorMemoryAllocation) return absl::ResourceExhaustedError(message);
  if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver) {
    return absl::FailedPreconditionError(message);
  }
  const absl::Status status = absl::InternalError(message);
  return IsSticky(error) ? DeviceLost(status) : status;
}

cudaStream_t Cuda(StreamHandle stream) { return reinterpret_cast<cudaStream_t>(stream); }
cudaEvent_t Cuda(EventHandle event) { return reinterpret_cast<cudaEvent_t>(event); }
cudaGraphExec_t Cuda(GraphHandle graph) { return reinterpret_cast<cudaGraphExec_t>(graph); }

unsigned int FlagsOf(EventUse use) {
  switch (use) {
    case EventUse::kOrder:
      return cudaEventDisableTiming;
    case EventUse::kLongWait:
      return cudaEventDisableTiming | cudaEventBlockingSync;
    case EventUse::kTiming:
      return cudaEventDefault;
  }
  return cudaEventDisableTiming;
}

std::string UuidText(const cudaUUID_t& uuid, const char* prefix) {
  std::string text = prefix;
  for (int i = 0; i < 16; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
  }
  return text;
}

DeviceProperties PropertiesOf(const cudaDeviceProp& device) {
  DeviceProperties properties;
  properties.name = device.name;
  // A process that was given a slice sees it as a whole device, under the slice's UUID.
  const bool slice = std::string(device.name).find("MIG") != std::string::npos;
  properties.uuid = UuidText(device.uuid, slice ? "MIG-" : "GPU-");
  properties.major = device.major;
  properties.minor = device.minor;
  properties.multiprocessors = static_cast<uint32_t>(device.multiProcessorCount);
  properties.l2_bytes = static_cast<size_t>(device.l2CacheSize);
  properties.shared_bytes_per_block = device.sharedMemPerBlockOptin;
  return properties;
}

template <typename Key>
cudaError_t SortPairs(void* scratch, size_t& bytes, const SortArguments& sort,
                      cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(scratch, bytes, static_cast<const Key*>(sort.keys),
                                         static_cast<Key*>(sort.sorted_keys), sort.values,
                                         sort.sorted_values, static_cast<int>(sort.n), 0,
                                         static_cast<int>(sort.bits), stream);
}

class DeviceApi : public CudaApi {
 public:
  DeviceApi(int index, DeviceProperties properties)
      : index_(index), properties_(std::move(properties)) {}

  const DeviceProperties& properties() const override { return properties_; }

 protected:
  // A thread begins with device 0. One process opens one device, so a thread is set once.
  absl::Status Enter(const char* call) override {
    thread_local bool ready = false;
    if (ready) return absl::OkStatus();
    absl::Status status = StatusOf(cudaSetDevice(index_), call);
    ready = status.ok();
    return status;
  }

  absl::Status DoMalloc(size_t bytes, void** out) override {
    return StatusOf(cudaMalloc(out, bytes), "cudaMalloc");
  }
  absl::Status DoMallocHost(size_t bytes, void** out) override {
    return StatusOf(cudaMallocHost(out, bytes), "cudaMallocHost");
  }
  absl::Status DoFree(void* p) override { return StatusOf(cudaFree(p), "cudaFree"); }
  absl::Status DoFreeHost(void* p) override { return StatusOf(cudaFreeHost(p), "cudaFreeHost"); }
  absl::Status DoMemoryInfo(size_t* free_bytes, size_t* total_bytes) override {
    return StatusOf(cudaMemGetInfo(free_bytes, total_bytes), "cudaMemGetInfo");
  }

  absl::Status DoCopy(void* to, const void* from, size_t bytes, StreamHandle stream) override {
    return StatusOf(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, Cuda(stream)),
                    "cudaMemcpyAsync");
  }
  absl::Status DoFill(void* to, uint8_t value, size_t bytes, StreamHandle stream) override {
    return StatusOf(cudaMemsetAsync(to, value, bytes, Cuda(stream)), "cudaMemsetAsync");
  }

  absl::Status DoCreateStream(StreamHandle* out) override {
    cudaStream_t stream = nullptr;
    // Not ordered with the null stream, which others in the process may use.
    const cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    *out = reinterpret_cast<StreamHandle>(stream);
    return StatusOf(error, "cudaStreamCreateWithFlags");
  }
  absl::Status DoDestroyStream(StreamHandle stream) override {
    return StatusOf(cudaStreamDestroy(Cuda(stream)), "cudaStreamDestroy");
  }
  absl::Status DoSynchronizeStream(StreamHandle stream) override {
    return StatusOf(cudaStreamSynchronize(Cuda(stream)), "cudaStreamSynchronize");
  }

  absl::Status DoCreateEvent(EventUse use, EventHandle* out) override {
    cudaEvent_t event = nullptr;
    const cudaError_t error = cudaEventCreateWithFlags(&event, FlagsOf(use));
    *out = reinterpret_cast<EventHandle>(event);
    return StatusOf(error, "cudaEventCreateWithFlags");
  }
  absl::Status DoDestroyEvent(EventHandle event) override {
    return StatusOf(cudaEventDestroy(Cuda(event)), "cudaEventDestroy");
  }
  absl::Status DoRecord(EventHandle event, StreamHandle stream) override {
    return StatusOf(cudaEventRecord(Cuda(event), Cuda(stream)), "cudaEventRecord");
  }
  absl::Status DoStreamWait(StreamHandle stream, EventHandle event) override {
    return StatusOf(cudaStreamWaitEvent(Cuda(stream), Cuda(event), 0), "cudaStreamWaitEvent");
  }
  absl::Status DoSynchronizeEvent(EventHandle event) override {
    return StatusOf(cudaEventSynchronize(Cuda(event)), "cudaEventSynchronize");
  }
  absl::Status DoIsDone(EventHandle event, bool* done) override {
    const cudaError_t error = cudaEventQuery(Cuda(event));
    *done = error == cudaSuccess;
    if (error == cudaErrorNotReady) {
      (void)cudaGetLastError();
      return absl::OkStatus();
    }
    return StatusOf(error, "cudaEventQuery");
  }
  absl::Status DoElapsedMs(EventHandle begin, EventHandle end, float* ms) override {
    return StatusOf(cudaEventElapsedTime(ms, Cuda(begin), Cuda(end)), "cudaEventElapsedTime");
  }

  absl::Status DoLaunch(const Kernel& kernel, const LaunchShape& shape, const void* functor,
                        StreamHandle stream) override {
    constexpr uint32_t kWithoutAsking = 48 * 1024;
    if (shape.shared_bytes > kWithoutAsking) {
      const absl::Status raised =
          StatusOf(cudaFuncSetAttribute(kernel.entry, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shape.shared_bytes)),
                   kernel.name);
      if (!raised.ok()) return raised;
    }
    void* arguments[] = {const_cast<void*>(functor)};
    return StatusOf(cudaLaunchKernel(kernel.entry, dim3(shape.blocks), dim3(shape.threads),
                                     arguments, shape.shared_bytes, Cuda(stream)),
                    kernel.name);
  }

  absl::Status DoSortScratchBytes(uint32_t n, uint32_t key_bytes, size_t* bytes) override {
    SortArguments sort;
    sort.n = n;
    sort.bits = 8 * key_bytes;
    *bytes = 0;
    return StatusOf(key_bytes == 8 ? SortPairs<uint64_t>(nullptr, *bytes, sort, nullptr)
                                   : SortPairs<uint32_t>(nullptr, *bytes, sort, nullptr),
                    "cub::DeviceRadixSort");
  }
  absl::Status DoSort(const SortArguments& sort, StreamHandle stream) override {
    size_t bytes = sort.scratch_bytes;
    return StatusOf(sort.key_bytes == 8
                        ? SortPairs<uint64_t>(sort.scratch, bytes, sort, Cuda(stream))
                        : SortPairs<uint32_t>(sort.scratch, bytes, sort, Cuda(stream)),
                    "cub::DeviceRadixSort");
  }

  absl::Status DoBeginCapture(StreamHandle stream) override {
    return StatusOf(cudaStreamBeginCapture(Cuda(stream), cudaStreamCaptureModeThreadLocal),
                    "cudaStreamBeginCapture");
  }
  absl::Status DoEndCapture(StreamHandle stream, GraphHandle* out) override {
    cudaGraph_t graph = nullptr;
    absl::Status status =
        StatusOf(cudaStreamEndCapture(Cuda(stream), &graph), "cudaStreamEndCapture");
    if (!status.ok()) return status;
    cudaGraphExec_t executable = nullptr;
    status = StatusOf(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
    (void)cudaGraphDestroy(graph);
    *out = reinterpret_cast<GraphHandle>(executable);
    return status;
  }
  absl::Status DoLaunchGraph(GraphHandle graph, StreamHandle stream) override {
    return StatusOf(cudaGraphLaunch(Cuda(graph), Cuda(stream)), "cudaGraphLaunch");
  }
  absl::Status DoDestroyGraph(GraphHandle graph) override {
    return StatusOf(cudaGraphExecDestroy(Cuda(graph)), "cudaGraphExecDestroy");
  }

 private:
  const int index_;  // the runtime's
  const DeviceProperties properties_;
};

// Why the runtime sees no device, as people know it.
std::string WhyNone(cudaError_t error) {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    return "this machine has no GPU driver";
  }
  if (error == cudaErrorInsufficientDriver) {
    return absl::StrCat("this machine's GPU driver is for CUDA ", driver / 1000, ".",
                        driver % 1000 / 10, ", and this program wants ", CUDART_VERSION / 1000,
                        ".0 or later");
  }
  return "no GPU is visible here (nvidia-smi -L and CUDA_VISIBLE_DEVICES tell which are)";
}

// The runtime's index of the device that this process opened first; -1: none yet.
std::atomic<int> opened_index{-1};

}  // namespace

std::vector<DeviceProperties> Devices() {
  std::vector<DeviceProperties> devices;
  int count = 0;
  if (!StatusOf(cudaGetDeviceCount(&count), "cudaGetDeviceCount").ok()) return devices;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp device;
    // One that cannot be asked is listed all the same: indices are the runtime's.
    const bool asked =
        StatusOf(cudaGetDeviceProperties(&device, i), "cudaGetDeviceProperties").ok();
    devices.push_back(asked ? PropertiesOf(device) : DeviceProperties());
  }
  return devices;
}

absl::StatusOr<std::unique_ptr<CudaApi>> OpenDevice(absl::string_view uuid) {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  absl::Status status = StatusOf(counted, "cudaGetDeviceCount");
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat(WhyNone(counted), ": ", status.message()));
  }
  const std::vector<DeviceProperties> devices = Devices();
  const absl::StatusOr<size_t> chosen = ChooseDevice(devices, uuid);
  if (!chosen.ok()) return chosen.status();
  const int index = static_cast<int>(*chosen);
  int opened = -1;
  if (!opened_index.compare_exchange_strong(opened, index) && opened != index) {
    return absl::FailedPreconditionError(
        absl::StrCat("this process uses device ", devices[static_cast<size_t>(opened)].uuid,
                     " and cannot open ", devices[*chosen].uuid, ": one process uses one device"));
  }
  status = StatusOf(cudaSetDevice(index), "cudaSetDevice");
  if (status.ok()) status = StatusOf(cudaFree(nullptr), "cudaFree");  // makes the context
  if (!status.ok()) return status;
  return std::make_unique<DeviceApi>(index, devices[*chosen]);
}

}  // namespace strata::ops::gpu
