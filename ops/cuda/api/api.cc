#include "ops/cuda/api/api.h"

#include <utility>

#include "absl/strings/cord.h"
#include "ops/cuda/api/pinned_ledger.h"

namespace strata::ops::gpu {
namespace {

constexpr char kLostPayload[] = "strata/device_lost";

void CountOne(std::atomic<uint64_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

// Each call enters first; those that give something back do that before, so that it is given back
// even where the call fails.
#define STRATA_ENTER(call)                                                      \
  do {                                                                          \
    absl::Status entered = Enter(call);                                         \
    if (__builtin_expect(!entered.ok(), 0)) return Checked(std::move(entered)); \
  } while (false)

CudaApi::CudaApi() : pinned_(std::make_unique<PinnedLedger>()) {}

CudaApi::~CudaApi() = default;

absl::Status CudaApi::Malloc(size_t bytes, void** out) {
  STRATA_ENTER("malloc");
  CountOne(allocations_);
  return Checked(DoMalloc(bytes, out));
}

absl::Status CudaApi::MallocHost(size_t bytes, void** out) {
  STRATA_ENTER("malloc host");
  CountOne(allocations_);
  absl::Status status = pinned_->Take(bytes);
  if (!status.ok()) return status;
  status = DoMallocHost(bytes, out);
  if (status.ok()) {
    pinned_->Add(*out, bytes);
  } else {
    pinned_->GiveBack(bytes);
  }
  return Checked(std::move(status));
}

absl::Status CudaApi::ReservePinned(size_t bytes) { return pinned_->Take(bytes); }

void CudaApi::UnreservePinned(size_t bytes) { pinned_->GiveBack(bytes); }

absl::Status CudaApi::MallocReserved(size_t bytes, void** out) {
  STRATA_ENTER("malloc reserved");
  CountOne(allocations_);
  absl::Status status = DoMallocHost(bytes, out);
  if (status.ok()) pinned_->Add(*out, bytes);
  return Checked(std::move(status));
}

void CudaApi::LimitPinned(uint64_t bytes) { pinned_->Limit(bytes); }

uint64_t CudaApi::pinned_bytes() const { return pinned_->bytes(); }

bool CudaApi::IsPinned(const void* p, size_t bytes) const { return pinned_->Has(p, bytes); }

absl::Status CudaApi::Free(void* p) {
  CountOne(synchronisations_);
  absl::Status status = DoFree(p);
  STRATA_ENTER("free");
  return Checked(std::move(status));
}

absl::Status CudaApi::FreeHost(void* p) {
  CountOne(synchronisations_);
  pinned_->Remove(p);  // before the runtime gives the address to somebody else
  absl::Status status = DoFreeHost(p);
  STRATA_ENTER("free host");
  return Checked(std::move(status));
}

absl::Status CudaApi::MemoryInfo(size_t* free_bytes, size_t* total_bytes) {
  STRATA_ENTER("memory info");
  return Checked(DoMemoryInfo(free_bytes, total_bytes));
}

absl::Status CudaApi::CopyAsync(void* to, const void* from, size_t bytes, StreamHandle stream) {
  STRATA_ENTER("copy");
  CountOne(copies_);
  return Checked(DoCopy(to, from, bytes, stream));
}

absl::Status CudaApi::FillAsync(void* to, uint8_t value, size_t bytes, StreamHandle stream) {
  STRATA_ENTER("fill");
  return Checked(DoFill(to, value, bytes, stream));
}

absl::Status CudaApi::CreateStream(StreamHandle* out) {
  STRATA_ENTER("create stream");
  return Checked(DoCreateStream(out));
}

absl::Status CudaApi::DestroyStream(StreamHandle stream) {
  absl::Status status = DoDestroyStream(stream);
  STRATA_ENTER("destroy stream");
  return Checked(std::move(status));
}

absl::Status CudaApi::Synchronize(StreamHandle stream) {
  STRATA_ENTER("synchronize stream");
  CountOne(synchronisations_);
  return Checked(DoSynchronizeStream(stream));
}

absl::Status CudaApi::CreateEvent(EventUse use, EventHandle* out) {
  STRATA_ENTER("create event");
  return Checked(DoCreateEvent(use, out));
}

absl::Status CudaApi::DestroyEvent(EventHandle event) {
  absl::Status status = DoDestroyEvent(event);
  STRATA_ENTER("destroy event");
  return Checked(std::move(status));
}

absl::Status CudaApi::Record(EventHandle event, StreamHandle stream) {
  STRATA_ENTER("record");
  return Checked(DoRecord(event, stream));
}

absl::Status CudaApi::StreamWait(StreamHandle stream, EventHandle event) {
  STRATA_ENTER("stream wait");
  return Checked(DoStreamWait(stream, event));
}

absl::Status CudaApi::Synchronize(EventHandle event) {
  STRATA_ENTER("synchronize event");
  CountOne(synchronisations_);
  return Checked(DoSynchronizeEvent(event));
}

absl::Status CudaApi::IsDone(EventHandle event, bool* done) {
  STRATA_ENTER("query event");
  return Checked(DoIsDone(event, done));
}

absl::Status CudaApi::ElapsedMs(EventHandle begin, EventHandle end, float* ms) {
  STRATA_ENTER("elapsed time");
  return Checked(DoElapsedMs(begin, end, ms));
}

absl::Status CudaApi::Launch(const Kernel& kernel, const LaunchShape& shape, const void* functor,
                             StreamHandle stream) {
  STRATA_ENTER(kernel.name);
  CountOne(launches_);
  return Checked(DoLaunch(kernel, shape, functor, stream));
}

absl::Status CudaApi::SortScratchBytes(uint32_t n, uint32_t key_bytes, size_t* bytes) {
  STRATA_ENTER("sort scratch");
  return Checked(DoSortScratchBytes(n, key_bytes, bytes));
}

absl::Status CudaApi::Sort(const SortArguments& sort, StreamHandle stream) {
  STRATA_ENTER("sort");
  CountOne(launches_);
  return Checked(DoSort(sort, stream));
}

absl::Status CudaApi::EnterLibrary(const char* call) {
  STRATA_ENTER(call);
  CountOne(launches_);
  return absl::OkStatus();
}

absl::Status CudaApi::BeginCapture(StreamHandle stream) {
  STRATA_ENTER("begin capture");
  return Checked(DoBeginCapture(stream));
}

absl::Status CudaApi::EndCapture(StreamHandle stream, GraphHandle* out) {
  STRATA_ENTER("end capture");
  return Checked(DoEndCapture(stream, out));
}

absl::Status CudaApi::LaunchGraph(GraphHandle graph, StreamHandle stream) {
  STRATA_ENTER("launch graph");
  CountOne(launches_);
  return Checked(DoLaunchGraph(graph, stream));
}

absl::Status CudaApi::DestroyGraph(GraphHandle graph) {
  absl::Status status = DoDestroyGraph(graph);
  STRATA_ENTER("destroy graph");
  return Checked(std::move(status));
}

#undef STRATA_ENTER

absl::Status CudaApi::Checked(absl::Status status) {
  if (__builtin_expect(!status.ok(), 0) && lost_ && IsDeviceLost(status)) lost_(status);
  return status;
}

CallCounts CudaApi::counts() const {
  CallCounts counts;
  counts.allocations = allocations_.load(std::memory_order_relaxed);
  counts.synchronisations = synchronisations_.load(std::memory_order_relaxed);
  counts.launches = launches_.load(std::memory_order_relaxed);
  counts.copies = copies_.load(std::memory_order_relaxed);
  return counts;
}

absl::Status DeviceLost(absl::Status status) {
  if (!status.ok()) status.SetPayload(kLostPayload, absl::Cord("1"));
  return status;
}

bool IsDeviceLost(const absl::Status& status) {
  return status.GetPayload(kLostPayload).has_value();
}

}  // namespace strata::ops::gpu
