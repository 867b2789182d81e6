// The one seam between Strata and CUDA's runtime: every call that we make of it. DeviceApi
// (device_api.h) makes them; HostApi (host_api.h) keeps memory and runs kernels on host threads, so
// that whatever is built on this can be run and tested without a GPU.
//
// An error of the runtime is an absl::Status: a failed allocation kResourceExhausted, the rest
// kInternal; IsDeviceLost tells those after which the process can no longer use its device.
// Tested by tests/ops/cuda/fault_test.cc
#ifndef STRATA_OPS_CUDA_API_API_H_
#define STRATA_OPS_CUDA_API_API_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace strata::ops::gpu {

// The runtime's handles; stream.h owns them. A null stream is not used.
struct StreamState;
struct EventState;
struct GraphState;
using StreamHandle = StreamState*;
using EventHandle = EventState*;
using GraphHandle = GraphState*;

// What an event is made for. What is not asked of it costs nothing: an event of kOrder or kLongWait
// has no time, and ElapsedMs refuses it.
enum class EventUse : uint8_t {
  kOrder,     // streams wait for it, and threads for moments: they spin
  kLongWait,  // a thread waits for it as long as a step takes: it sleeps
  kTiming,    // ElapsedMs
};

struct DeviceProperties {
  std::string name;
  std::string uuid;  // "GPU-..." or, of a slice, "MIG-..."
  int major = 0, minor = 0;
  uint32_t multiprocessors = 1;
  size_t l2_bytes = 0;
  size_t shared_bytes_per_block = 48 * 1024;  // the most that a kernel may ask for
};

// One kernel: a functor's code for the device, and for host threads (ops/cuda/kernel/kernel.h makes
// both).
struct Kernel {
  const void* entry = nullptr;  // null where nvcc did not compile it
  uint64_t (*items)(const void* functor) = nullptr;
  void (*run)(const void* functor, uint64_t begin, uint64_t end) = nullptr;
  uint32_t functor_bytes = 0;
  const char* name = "";
};

struct LaunchShape {
  uint32_t blocks = 1;
  uint32_t threads = 1;
  uint32_t shared_bytes = 0;
};

// A stable sort of pairs by the low `bits` bits of their keys; all pointers in device memory.
struct SortArguments {
  const void* keys = nullptr;  // (n) of key_bytes
  void* sorted_keys = nullptr;
  const uint32_t* values = nullptr;  // (n)
  uint32_t* sorted_values = nullptr;
  uint32_t n = 0;
  uint32_t key_bytes = 4;  // 4 or 8, unsigned integers
  uint32_t bits = 32;      // 1 .. 8 * key_bytes
  void* scratch = nullptr;
  size_t scratch_bytes = 0;  // at least SortScratchBytes
};

// What was called so far, for tests and metrics.
struct CallCounts {
  uint64_t allocations = 0;       // of device and pinned memory
  uint64_t synchronisations = 0;  // calls that wait for the device
  uint64_t launches = 0;          // kernels, sorts, products and graphs
  uint64_t copies = 0;
};

class PinnedLedger;

// Any thread. Work that names a stream begins after what the stream was given before, and the call
// returns without waiting; calls that wait say so. Memory that work uses stays the caller's to keep
// until that work is done.
class CudaApi {
 public:
  CudaApi();
  virtual ~CudaApi();

  virtual const DeviceProperties& properties() const = 0;

  absl::Status Malloc(size_t bytes, void** out);
  absl::Status MallocHost(size_t bytes, void** out);  // pinned
  absl::Status Free(void* p);                         // waits for the device, as cudaFree does
  absl::Status FreeHost(void* p);                     // the same
  // The process's pinned memory: at most so many bytes at a time, for all who ask; beyond them
  // kResourceExhausted with requested and free bytes. Default: no limit.
  void LimitPinned(uint64_t bytes);
  uint64_t pinned_bytes() const;
  // Counts bytes of it for a piece that is taken later, whole, or never: what is promised is there.
  absl::Status ReservePinned(size_t bytes);
  void UnreservePinned(size_t bytes);
  absl::Status MallocReserved(size_t bytes, void** out);  // on error they are reserved still
  // Whether the `bytes` from `p` on lie in one piece of it, so that kernels may write there.
  bool IsPinned(const void* p, size_t bytes) const;
  absl::Status MemoryInfo(size_t* free_bytes, size_t* total_bytes);

  // Between any two of device and pinned memory.
  absl::Status CopyAsync(void* to, const void* from, size_t bytes, StreamHandle stream);
  absl::Status FillAsync(void* to, uint8_t value, size_t bytes, StreamHandle stream);

  absl::Status CreateStream(StreamHandle* out);
  absl::Status DestroyStream(StreamHandle stream);
  absl::Status Synchronize(StreamHandle stream);  // waits

  absl::Status CreateEvent(EventUse use, EventHandle* out);
  absl::Status DestroyEvent(EventHandle event);
  absl::Status Record(EventHandle event, StreamHandle stream);
  absl::Status StreamWait(StreamHandle stream, EventHandle event);
  absl::Status Synchronize(EventHandle event);  // waits
  absl::Status IsDone(EventHandle event, bool* done);
  absl::Status ElapsedMs(EventHandle begin, EventHandle end, float* ms);  // both kTiming

  // `functor` is copied before the call returns.
  absl::Status Launch(const Kernel& kernel, const LaunchShape& shape, const void* functor,
                      StreamHandle stream);
  absl::Status SortScratchBytes(uint32_t n, uint32_t key_bytes, size_t* bytes);
  absl::Status Sort(const SortArguments& sort, StreamHandle stream);

  // What a library gives a stream (products): `give` is called, and counts, fails and loses the
  // device as a launch does.
  template <typename Give>
  absl::Status CallLibrary(const char* call, const Give& give) {
    absl::Status status = EnterLibrary(call);
    return status.ok() ? Checked(give()) : status;
  }

  // What a stream is given between these two becomes a graph instead of being run.
  absl::Status BeginCapture(StreamHandle stream);
  absl::Status EndCapture(StreamHandle stream, GraphHandle* out);
  absl::Status LaunchGraph(GraphHandle graph, StreamHandle stream);
  absl::Status DestroyGraph(GraphHandle graph);

  CallCounts counts() const;

  // `lost` is called, on the thread of the call and before it returns, with every error that
  // IsDeviceLost. REQUIRES: no other call is under way.
  void WhenLost(std::function<void(const absl::Status& why)> lost) { lost_ = std::move(lost); }

 protected:
  // What a decorator forwards and an implementation does.
  virtual absl::Status DoMalloc(size_t bytes, void** out) = 0;
  virtual absl::Status DoMallocHost(size_t bytes, void** out) = 0;
  virtual absl::Status DoFree(void* p) = 0;
  virtual absl::Status DoFreeHost(void* p) = 0;
  virtual absl::Status DoMemoryInfo(size_t* free_bytes, size_t* total_bytes) = 0;
  virtual absl::Status DoCopy(void* to, const void* from, size_t bytes, StreamHandle stream) = 0;
  virtual absl::Status DoFill(void* to, uint8_t value, size_t bytes, StreamHandle stream) = 0;
  virtual absl::Status DoCreateStream(StreamHandle* out) = 0;
  virtual absl::Status DoDestroyStream(StreamHandle stream) = 0;
  virtual absl::Status DoSynchronizeStream(StreamHandle stream) = 0;
  virtual absl::Status DoCreateEvent(EventUse use, EventHandle* out) = 0;
  virtual absl::Status DoDestroyEvent(EventHandle event) = 0;
  virtual absl::Status DoRecord(EventHandle event, StreamHandle stream) = 0;
  virtual absl::Status DoStreamWait(StreamHandle stream, EventHandle event) = 0;
  virtual absl::Status DoSynchronizeEvent(EventHandle event) = 0;
  virtual absl::Status DoIsDone(EventHandle event, bool* done) = 0;
  virtual absl::Status DoElapsedMs(EventHandle begin, EventHandle end, float* ms) = 0;
  virtual absl::Status DoLaunch(const Kernel& kernel, const LaunchShape& shape, const void* functor,
                                StreamHandle stream) = 0;
  virtual absl::Status DoSortScratchBytes(uint32_t n, uint32_t key_bytes, size_t* bytes) = 0;
  virtual absl::Status DoSort(const SortArguments& sort, StreamHandle stream) = 0;
  virtual absl::Status DoBeginCapture(StreamHandle stream) = 0;
  virtual absl::Status DoEndCapture(StreamHandle stream, GraphHandle* out) = 0;
  virtual absl::Status DoLaunchGraph(GraphHandle graph, StreamHandle stream) = 0;
  virtual absl::Status DoDestroyGraph(GraphHandle graph) = 0;

  // Asked with each call, to make the calling thread ready. An error is what the call returns, and
  // it does nothing then, unless it gives something back: tests let calls fail here.
  virtual absl::Status Enter(const char* call) { return absl::OkStatus(); }

 private:
  absl::Status Checked(absl::Status status);
  absl::Status EnterLibrary(const char* call);

  std::function<void(const absl::Status&)> lost_;
  const std::unique_ptr<PinnedLedger> pinned_;
  std::atomic<uint64_t> allocations_{0}, synchronisations_{0}, launches_{0}, copies_{0};
};

// Marks `status` as the device's end, and asks for the mark: illegal address, uncorrectable memory
// error, lost device. The process ends then (fenced, restarted, recovered).
absl::Status DeviceLost(absl::Status status);
bool IsDeviceLost(const absl::Status& status);

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_API_API_H_
