#include "storage/gpu/device/memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ops/cuda/kernel/scan.h"
#include "proto/core/mutation.h"
#include "storage/eviction/lrfu_score.h"
#include "storage/gpu/allocation.h"
#include "storage/gpu/backend.h"
#include "storage/gpu/select.h"
#include "storage/row/update.h"

namespace strata::storage::gpu {
namespace {

using ops::gpu::Arena;
using ops::gpu::MemoryKind;

// Beside what grows with a batch: small answers, roundings, and lrfu's gains, which come this way.
constexpr uint64_t kFewWords = 8192;
constexpr uint64_t kFewLists = 16384;
static_assert(sizeof(ops::StepScalars) * kMostDeviceRuns + 16 * 16 <= kFewWords);
static_assert(sizeof(LrfuGains) + 16 * 16 <= kFewWords);
static_assert(sizeof(GpuSelect) + kSelectBins * 4 + 16 * 16 <= kFewLists);

constexpr absl::string_view kPinnedName = "a GPU table's pinned memory";
constexpr absl::string_view kPinnedRemedy =
    "raise the server's --pinned-bytes, or lower spec.storage.shardsPerServer";

uint64_t RoundUp(uint64_t bytes) {
  return (bytes + GpuDeviceBytes::kPiece - 1) / GpuDeviceBytes::kPiece * GpuDeviceBytes::kPiece;
}

uint64_t MostLeaving(const GpuShape& shape) {
  return uint64_t{std::min(shape.buckets, GpuBackend::kLeaveBuckets)} * shape.bucket_slots / 16;
}

uint64_t Words(const GpuShape& shape, uint64_t n) {
  return RoundUp(32 * n + 16 * MostLeaving(shape) + kFewWords);
}

// One piece of `bytes`, all of an arena of its own.
absl::Status TakeAll(ops::gpu::CudaApi* api, MemoryKind kind, uint64_t bytes,
                     absl::string_view name, absl::string_view remedy,
                     std::unique_ptr<Arena>* arena, ops::gpu::Buffer* buffer) {
  auto made = Arena::Create(api, kind, bytes, name);
  if (absl::IsResourceExhausted(made.status())) {
    return absl::ResourceExhaustedError(absl::StrCat(made.status().message(), "; ", remedy));
  }
  if (!made.ok()) return made.status();
  *arena = *std::move(made);
  auto taken = (*arena)->Allocate(bytes);
  if (!taken.ok()) return taken.status();
  *buffer = *std::move(taken);
  return absl::OkStatus();
}

}  // namespace

GpuDeviceBytes GpuDeviceBytes::WithoutScratch(const GpuShape& shape, uint32_t n) {
  GpuDeviceBytes bytes;
  const uint64_t leaving = MostLeaving(shape);
  const auto eights = static_cast<uint32_t>(shape.slots() / 8);
  bytes.table = RoundUp(shape.bytes());
  bytes.words = Words(shape, n);
  bytes.lists = RoundUp(24 * uint64_t{n} + 16 * leaving + kFewLists);
  bytes.opened = RoundUp(4 * uint64_t{n});
  bytes.tiles = RoundUp(4 * uint64_t{ops::gpu::ScanTiles(std::max(n, eights))});
  bytes.rows = RoundUp(uint64_t{n} * shape.stride());
  return bytes;
}

absl::StatusOr<GpuDeviceBytes> GpuDeviceBytes::For(ops::gpu::CudaApi& api, const GpuShape& shape,
                                                   uint32_t n) {
  GpuDeviceBytes bytes = WithoutScratch(shape, n);
  for (const uint32_t key_bytes : {4u, 8u}) {
    size_t scratch = 0;
    if (absl::Status s = api.SortScratchBytes(n, key_bytes, &scratch); !s.ok()) return s;
    bytes.sort_scratch = std::max(bytes.sort_scratch, RoundUp(scratch));
  }
  return bytes;
}

uint64_t GpuDeviceBytes::Pinned(const GpuShape& shape, uint32_t n) {
  return Words(shape, n) + 3 * RoundUp(uint64_t{n} * shape.stride());
}

uint32_t GpuDeviceBytes::MostBatch(const GpuShape& shape, uint32_t most, uint64_t pinned_bytes) {
  uint32_t low = 0;
  auto high = static_cast<uint32_t>(std::min<uint64_t>(most, pinned_bytes / 3 / shape.stride()));
  while (low < high) {
    const uint32_t middle = high - (high - low) / 2;
    if (Pinned(shape, middle) <= pinned_bytes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

absl::StatusOr<std::unique_ptr<GpuPinnedRows>> GpuPinnedRows::Reserve(ops::gpu::CudaApi* api,
                                                                      uint64_t bytes) {
  const absl::Status s = api->ReservePinned(bytes);
  if (s.ok()) return std::unique_ptr<GpuPinnedRows>(new GpuPinnedRows(api, bytes));
  return absl::ResourceExhaustedError(absl::StrCat(
      kPinnedName, ": ", bytes, " bytes requested: ", s.message(), "; ", kPinnedRemedy));
}

GpuPinnedRows::~GpuPinnedRows() {
  if (rows_ == nullptr) {
    api_->UnreservePinned(bytes_);
  } else {
    (void)api_->FreeHost(rows_);
  }
}

absl::StatusOr<uint8_t*> GpuPinnedRows::Get() {
  if (rows_ == nullptr) {
    void* taken = nullptr;
    const absl::Status s = api_->MallocReserved(bytes_, &taken);
    if (ops::gpu::IsDeviceLost(s)) return s;
    if (!s.ok()) {
      return absl::InternalError(
          absl::StrCat(kPinnedName, ": ", bytes_, " bytes requested: ", s.message()));
    }
    std::memset(taken, 0, bytes_);
    rows_ = taken;
  }
  return static_cast<uint8_t*>(rows_);
}

absl::StatusOr<GpuDeviceMemory> GpuDeviceMemory::Take(ops::gpu::CudaApi* api, const GpuShape& shape,
                                                      uint32_t n) {
  const auto bytes = GpuDeviceBytes::For(*api, shape, n);
  if (!bytes.ok()) return bytes.status();
  GpuDeviceMemory m;
  m.bytes = *bytes;
  absl::Status s = TakeAll(api, MemoryKind::kDevice, bytes->device(), "a GPU table",
                           "lower spec.storage.gpuBytesPerServer", &m.device_arena, &m.device);
  if (s.ok()) {
    s = TakeAll(api, MemoryKind::kPinned, bytes->words, kPinnedName, kPinnedRemedy, &m.pinned_arena,
                &m.pinned);
  }
  if (!s.ok()) return s;
  for (auto* rows : {&m.read_rows, &m.staged_rows, &m.open_rows}) {
    auto reserved = GpuPinnedRows::Reserve(api, bytes->rows);
    if (!reserved.ok()) return reserved.status();
    *rows = *std::move(reserved);
    if (!STRATA_MUTATION("gpu.rows_pinned_when_made")) continue;
    if (absl::Status taken = (*rows)->Get().status(); !taken.ok()) return taken;
  }
  uint8_t* at = m.device.as<uint8_t>();
  const auto cut = [&at](uint64_t size) { return std::exchange(at, at + size); };
  m.table = cut(bytes->table);
  m.device_words = cut(bytes->words);
  m.lists = cut(bytes->lists);
  m.opened = reinterpret_cast<uint32_t*>(cut(bytes->opened));
  m.call_rows = cut(bytes->rows);
  m.tiles = reinterpret_cast<uint32_t*>(cut(bytes->tiles));
  m.sort_scratch = cut(bytes->sort_scratch);
  m.host_words = m.pinned.as<uint8_t>();
  std::memset(m.host_words, 0, bytes->words);
  return m;
}

absl::StatusOr<GpuDevicePiece> GpuDevicePiece::Take(ops::gpu::CudaApi* api, uint64_t bytes) {
  bytes = RoundUp(bytes);
  size_t free_bytes = 0, total_bytes = 0;
  absl::Status s = api->MemoryInfo(&free_bytes, &total_bytes);
  if (s.ok()) s = CheckAllocation(bytes, free_bytes);
  GpuDevicePiece piece;
  if (s.ok()) {
    s = TakeAll(api, MemoryKind::kDevice, bytes, "a GPU table's extra memory",
                "spec.storage.gpuBytesPerServer", &piece.arena, &piece.buffer);
  }
  if (!s.ok()) return s;
  return piece;
}

}  // namespace strata::storage::gpu
