// CudaApi on the host: memory from the heap, kernels on host threads, every call done when it
// returns. What runs on it computes what the device would compute, bit for bit (ops/EXACT.md).
// For tests and for `spec.storage.gpuBackend: host`.
// Tested by tests/ops/cuda/api/memory_test.cc
// Tested by tests/worker/device/row_memory_test.cc
#ifndef STRATA_OPS_CUDA_API_HOST_API_H_
#define STRATA_OPS_CUDA_API_HOST_API_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/mutex.h"
#include "ops/parallel.h"

namespace strata::ops::gpu {

// Any thread, though kernels, sorts and graphs take turns. It keeps account of what it gave out:
// leaks() tells what was not given back.
class HostApi : public CudaApi {
 public:
  struct Options {
    size_t threads = 1;                     // that run kernels
    size_t device_bytes = size_t{1} << 40;  // Malloc fails beyond
    size_t pinned_bytes = size_t{1} << 40;  // MallocHost fails beyond
    uint32_t multiprocessors = 4;           // as properties() tells
    // Asked before each call, unless null: an error loses the device.
    std::function<absl::Status()> lose;
  };
  explicit HostApi(const Options& options);
  ~HostApi() override;

  const DeviceProperties& properties() const override { return properties_; }

  // Pieces of memory, streams, events and graphs that nobody has given back.
  size_t leaks() const;

 protected:
  absl::Status Enter(const char* call) override;
  absl::Status DoMalloc(size_t bytes, void** out) override;
  absl::Status DoMallocHost(size_t bytes, void** out) override;
  absl::Status DoFree(void* p) override;
  absl::Status DoFreeHost(void* p) override;
  absl::Status DoMemoryInfo(size_t* free_bytes, size_t* total_bytes) override;
  absl::Status DoCopy(void* to, const void* from, size_t bytes, StreamHandle stream) override;
  absl::Status DoFill(void* to, uint8_t value, size_t bytes, StreamHandle stream) override;
  absl::Status DoCreateStream(StreamHandle* out) override;
  absl::Status DoDestroyStream(StreamHandle stream) override;
  absl::Status DoSynchronizeStream(StreamHandle stream) override;
  absl::Status DoCreateEvent(EventUse use, EventHandle* out) override;
  absl::Status DoDestroyEvent(EventHandle event) override;
  absl::Status DoRecord(EventHandle event, StreamHandle stream) override;
  absl::Status DoStreamWait(StreamHandle stream, EventHandle event) override;
  absl::Status DoSynchronizeEvent(EventHandle event) override;
  absl::Status DoIsDone(EventHandle event, bool* done) override;
  absl::Status DoElapsedMs(EventHandle begin, EventHandle end, float* ms) override;
  absl::Status DoLaunch(const Kernel& kernel, const LaunchShape& shape, const void* functor,
                        StreamHandle stream) override;
  absl::Status DoSortScratchBytes(uint32_t n, uint32_t key_bytes, size_t* bytes) override;
  absl::Status DoSort(const SortArguments& sort, StreamHandle stream) override;
  absl::Status DoBeginCapture(StreamHandle stream) override;
  absl::Status DoEndCapture(StreamHandle stream, GraphHandle* out) override;
  absl::Status DoLaunchGraph(GraphHandle graph, StreamHandle stream) override;
  absl::Status DoDestroyGraph(GraphHandle graph) override;

 private:
  using Pieces = std::map<void*, size_t>;  // bytes of each
  absl::Status Take(size_t bytes, size_t limit, Pieces& pieces, size_t& used, void** out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status GiveBack(void* p, Pieces& pieces, size_t& used) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Runs the work now or, where the stream is being captured, puts it into the graph.
  absl::Status Give(StreamHandle stream, std::function<void()> work);
  void RunKernel(const Kernel& kernel, const void* functor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(running_);

  const Options options_;
  DeviceProperties properties_;

  Mutex running_;  // one kernel, sort or graph at a time
  const std::unique_ptr<Parallel> threads_ ABSL_PT_GUARDED_BY(running_);

  mutable Mutex mu_;
  Pieces device_ ABSL_GUARDED_BY(mu_), pinned_ ABSL_GUARDED_BY(mu_);
  size_t device_used_ ABSL_GUARDED_BY(mu_) = 0, pinned_used_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<StreamHandle> streams_ ABSL_GUARDED_BY(mu_);
  std::set<EventHandle> events_ ABSL_GUARDED_BY(mu_);
  std::set<GraphHandle> graphs_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_API_HOST_API_H_
