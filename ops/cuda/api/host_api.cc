#include "ops/cuda/api/host_api.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace strata::ops::gpu {

struct EventState {
  EventUse use;
};
struct GraphState {
  std::vector<std::function<void()>> work;
};
struct StreamState {
  // The graph that takes the stream's work, while it is captured. Used by the stream's own thread.
  GraphState* capture = nullptr;
};

namespace {

constexpr std::align_val_t kAlignment{256};

template <typename Key>
void SortPairs(const SortArguments& sort) {
  const Key* keys = static_cast<const Key*>(sort.keys);
  const Key mask = sort.bits >= 8 * sizeof(Key) ? ~Key{0} : (Key{1} << sort.bits) - 1;
  std::vector<uint32_t> order(sort.n);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [keys, mask](uint32_t a, uint32_t b) {
    return (keys[a] & mask) < (keys[b] & mask);
  });
  Key* sorted_keys = static_cast<Key*>(sort.sorted_keys);
  for (uint32_t i = 0; i < sort.n; ++i) {
    sorted_keys[i] = keys[order[i]];
    sort.sorted_values[i] = sort.values[order[i]];
  }
}

}  // namespace

HostApi::HostApi(const Options& options)
    : options_(options), threads_(MakeParallel(std::max<size_t>(1, options.threads))) {
  properties_.name = "host threads";
  properties_.uuid = "host";
  properties_.multiprocessors = options.multiprocessors;
}

HostApi::~HostApi() {
  for (const auto& [p, bytes] : device_) ::operator delete(p, kAlignment);
  for (const auto& [p, bytes] : pinned_) ::operator delete(p, kAlignment);
  for (StreamHandle stream : streams_) delete stream;
  for (EventHandle event : events_) delete event;
  for (GraphHandle graph : graphs_) delete graph;
}

size_t HostApi::leaks() const {
  MutexLock lock(&mu_);
  return device_.size() + pinned_.size() + streams_.size() + events_.size() + graphs_.size();
}

absl::Status HostApi::Enter(const char*) {
  const absl::Status status = options_.lose == nullptr ? absl::OkStatus() : options_.lose();
  return status.ok() ? status : DeviceLost(status);
}

absl::Status HostApi::Take(size_t bytes, size_t limit, Pieces& pieces, size_t& used, void** out) {
  if (bytes > limit - used) {
    return absl::ResourceExhaustedError(
        absl::StrCat(bytes, " bytes requested, ", limit - used, " of ", limit, " bytes free"));
  }
  *out = ::operator new(bytes, kAlignment, std::nothrow);
  if (*out == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("the host has no ", bytes, " bytes"));
  }
  used += bytes;
  pieces.emplace(*out, bytes);
  return absl::OkStatus();
}

absl::Status HostApi::GiveBack(void* p, Pieces& pieces, size_t& used) {
  const auto piece = pieces.find(p);
  if (piece == pieces.end()) return absl::InternalError("memory that was not given out is freed");
  used -= piece->second;
  pieces.erase(piece);
  ::operator delete(p, kAlignment);
  return absl::OkStatus();
}

absl::Status HostApi::DoMalloc(size_t bytes, void** out) {
  MutexLock lock(&mu_);
  return Take(bytes, options_.device_bytes, device_, device_used_, out);
}

absl::Status HostApi::DoMallocHost(size_t bytes, void** out) {
  MutexLock lock(&mu_);
  return Take(bytes, options_.pinned_bytes, pinned_, pinned_used_, out);
}

absl::Status HostApi::DoFree(void* p) {
  MutexLock lock(&mu_);
  return GiveBack(p, device_, device_used_);
}

absl::Status HostApi::DoFreeHost(void* p) {
  MutexLock lock(&mu_);
  return GiveBack(p, pinned_, pinned_used_);
}

absl::Status HostApi::DoMemoryInfo(size_t* free_bytes, size_t* total_bytes) {
  MutexLock lock(&mu_);
  *free_bytes = options_.device_bytes - device_used_;
  *total_bytes = options_.device_bytes;
  return absl::OkStatus();
}

absl::Status HostApi::Give(StreamHandle stream, std::function<void()> work) {
  if (stream->capture != nullptr) {
    stream->capture->work.push_back(std::move(work));
    return absl::OkStatus();
  }
  MutexLock lock(&running_);
  work();
  return absl::OkStatus();
}

absl::Status HostApi::DoCopy(void* to, const void* from, size_t bytes, StreamHandle stream) {
  return Give(stream, [=] { std::memcpy(to, from, bytes); });
}

absl::Status HostApi::DoFill(void* to, uint8_t value, size_t bytes, StreamHandle stream) {
  return Give(stream, [=] { std::memset(to, value, bytes); });
}

absl::Status HostApi::DoCreateStream(StreamHandle* out) {
  MutexLock lock(&mu_);
  *out = *streams_.insert(new StreamState).first;
  return absl::OkStatus();
}

absl::Status HostApi::DoDestroyStream(StreamHandle stream) {
  MutexLock lock(&mu_);
  if (stream->capture != nullptr) {  // one that nobody ended
    graphs_.erase(stream->capture);
    delete stream->capture;
  }
  streams_.erase(stream);
  delete stream;
  return absl::OkStatus();
}

absl::Status HostApi::DoSynchronizeStream(StreamHandle stream) {
  if (stream->capture != nullptr)
    return absl::InternalError("a captured stream cannot be waited for");
  return absl::OkStatus();
}

absl::Status HostApi::DoCreateEvent(EventUse use, EventHandle* out) {
  MutexLock lock(&mu_);
  *out = *events_.insert(new EventState{use}).first;
  return absl::OkStatus();
}

absl::Status HostApi::DoDestroyEvent(EventHandle event) {
  MutexLock lock(&mu_);
  events_.erase(event);
  delete event;
  return absl::OkStatus();
}

// Whatever was given to a stream is done already.
absl::Status HostApi::DoRecord(EventHandle, StreamHandle) { return absl::OkStatus(); }

absl::Status HostApi::DoStreamWait(StreamHandle, EventHandle) { return absl::OkStatus(); }

absl::Status HostApi::DoSynchronizeEvent(EventHandle) { return absl::OkStatus(); }

absl::Status HostApi::DoIsDone(EventHandle, bool* done) {
  *done = true;
  return absl::OkStatus();
}

absl::Status HostApi::DoElapsedMs(EventHandle begin, EventHandle end, float* ms) {
  if (begin->use != EventUse::kTiming || end->use != EventUse::kTiming) {
    return absl::InternalError("an event that was not made for it has no time");
  }
  *ms = 0.0f;
  return absl::OkStatus();
}

void HostApi::RunKernel(const Kernel& kernel, const void* functor) {
  const uint64_t items = kernel.items(functor);
  const uint64_t parts = std::min<uint64_t>(items, threads_->threads() * 4);
  threads_->For(parts, [&](size_t part) {
    kernel.run(functor, items * part / parts, items * (part + 1) / parts);
  });
}

absl::Status HostApi::DoLaunch(const Kernel& kernel, const LaunchShape& shape, const void* functor,
                               StreamHandle stream) {
  if (stream->capture == nullptr) {  // at once: nothing to copy, nothing to allocate
    MutexLock lock(&running_);
    RunKernel(kernel, functor);
    return absl::OkStatus();
  }
  std::vector<char> copy(kernel.functor_bytes + 16);
  const size_t offset = (16 - reinterpret_cast<uintptr_t>(copy.data()) % 16) % 16;
  std::memcpy(copy.data() + offset, functor, kernel.functor_bytes);
  return Give(stream,
              [this, kernel, offset, copy = std::make_shared<std::vector<char>>(std::move(copy))]()
                  ABSL_NO_THREAD_SAFETY_ANALYSIS { RunKernel(kernel, copy->data() + offset); });
}

absl::Status HostApi::DoSortScratchBytes(uint32_t, uint32_t, size_t* bytes) {
  *bytes = 256;  // as the device, it wants some
  return absl::OkStatus();
}

absl::Status HostApi::DoSort(const SortArguments& sort, StreamHandle stream) {
  return Give(stream, [sort] {
    sort.key_bytes == 8 ? SortPairs<uint64_t>(sort) : SortPairs<uint32_t>(sort);
  });
}

absl::Status HostApi::DoBeginCapture(StreamHandle stream) {
  MutexLock lock(&mu_);
  if (stream->capture != nullptr) return absl::InternalError("the stream is being captured");
  stream->capture = *graphs_.insert(new GraphState).first;
  return absl::OkStatus();
}

absl::Status HostApi::DoEndCapture(StreamHandle stream, GraphHandle* out) {
  if (stream->capture == nullptr) return absl::InternalError("the stream is not being captured");
  *out = std::exchange(stream->capture, nullptr);
  return absl::OkStatus();
}

absl::Status HostApi::DoLaunchGraph(GraphHandle graph, StreamHandle stream) {
  MutexLock lock(&running_);
  for (const std::function<void()>& work : graph->work) work();
  return absl::OkStatus();
}

absl::Status HostApi::DoDestroyGraph(GraphHandle graph) {
  MutexLock lock(&mu_);
  graphs_.erase(graph);
  delete graph;
  return absl::OkStatus();
}

}  // namespace strata::ops::gpu
