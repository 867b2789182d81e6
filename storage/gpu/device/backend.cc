#include "storage/gpu/device/backend.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/codec.h"
#include "ops/cuda/api/stream.h"
#include "proto/core/ids.h"
#include "storage/eviction/lrfu_score.h"
#include "storage/gpu/bucket.h"
#include "storage/gpu/calls.h"
#include "storage/gpu/device/births.h"
#include "storage/gpu/device/call.h"
#include "storage/gpu/device/calls.h"
#include "storage/gpu/device/dirty.h"
#include "storage/gpu/device/memory.h"
#include "storage/gpu/device/pin_calls.h"
#include "storage/gpu/device/table.h"
#include "storage/gpu/device/updates.h"
#include "storage/gpu/score.h"
#include "storage/gpu/slots.h"
#include "storage/row/births.h"
#include "storage/row/update.h"

namespace strata::storage::gpu {
namespace {

class DeviceGpuBackend final : public GpuBackend {
 public:
  DeviceGpuBackend(ops::gpu::CudaApi* api, const GpuShape& shape, uint32_t max_batch,
                   GpuDeviceMemory memory, ops::gpu::Stream stream)
      : api_(api),
        shape_(shape),
        max_batch_(max_batch),
        memory_(std::move(memory)),
        stream_(std::move(stream)),
        device_{.api = api,
                .stream = stream_.get(),
                .t = shape.At(memory_.table),
                .bucket_slots = shape.bucket_slots,
                .tiles = memory_.tiles,
                .sort_scratch = memory_.sort_scratch,
                .sort_scratch_bytes = memory_.bytes.sort_scratch},
        call_(api, stream_.get(), memory_, max_batch) {}

  // Zeroes the table.
  absl::Status Init();

  const std::string& device() const override { return api_->properties().uuid; }
  size_t max_batch() const override { return max_batch_; }
  absl::StatusOr<size_t> Find(std::span<const Position> positions, GpuUse use, uint16_t now,
                              std::span<uint32_t> slots) override;
  absl::Status Insert(std::span<const GpuArrival> arrivals, uint16_t now,
                      std::span<GpuPlaced> placed) override;
  absl::Status Put(std::span<const uint32_t> slots, std::span<const uint8_t* const> rows) override;
  absl::Status PutStaged(std::span<const uint32_t> slots,
                         std::span<const uint32_t> places) override;
  absl::Status Read(std::span<const uint32_t> slots, std::span<const uint8_t*> rows) override {
    return ReadFrom(device_.t.rows, slots, *memory_.read_rows, rows);
  }
  absl::Status ReadStaged(std::span<const uint32_t> places,
                          std::span<const uint8_t*> rows) override {
    return ReadFrom(device_.t.staged, places, *memory_.staged_rows, rows);
  }
  absl::Status Open(std::span<const uint32_t> slots, GpuUse use, std::span<uint8_t*> rows) override;
  absl::Status Close(std::span<const uint32_t> slots) override;
  absl::Status Gather(std::span<const uint32_t> slots, ops::RowCodec codec, uint32_t dim,
                      uint8_t* out) override {
    return GatherOnDevice(device_, memory_, call_, slots, codec, dim, out);
  }
  absl::Status GatherThere(std::span<const uint32_t> slots, uint32_t dim, float* out) override {
    return GatherToDevice(device_, call_, slots, dim, out);
  }
  absl::Status Upload(const float* rows, std::span<const uint32_t> numbers, uint32_t dim,
                      float* there) override {
    return UploadRows(device_, memory_, call_, rows, numbers, dim, there);
  }
  absl::Status Download(const float* there, std::span<const uint32_t> numbers, uint32_t dim,
                        float* rows) override {
    return DownloadRows(device_, memory_, call_, there, numbers, dim, rows);
  }
  absl::StatusOr<float*> AllocateThere(size_t floats) override;
  absl::Status InitializeRows(std::span<const uint32_t> slots, const RowBirths& births) override {
    return InitializeOnDevice(device_, call_, slots, births);
  }
  absl::Status InitializeThere(const RowBirths& births, std::span<const uint32_t> numbers,
                               float* there) override {
    return InitializeWeightsThere(device_, call_, births, numbers, there);
  }
  absl::Status Apply(std::span<const uint32_t> slots, const RowUpdate& update,
                     uint8_t* outcomes) override {
    return ApplyOnDevice(device_, memory_, call_, slots, update, outcomes);
  }
  absl::StatusOr<GpuPinned> Pin(std::span<const uint32_t> slots, size_t most_rows) override {
    return PinOnDevice(device_, call_, slots, most_rows);
  }
  absl::StatusOr<size_t> Unpin(std::span<const Position> positions,
                               std::span<const uint32_t> slots) override {
    return UnpinOnDevice(device_, call_, positions, slots);
  }
  absl::StatusOr<size_t> Flags(std::span<const uint32_t> slots, std::span<uint8_t> flags) override;
  absl::Status Erase(std::span<const uint32_t> slots) override {
    absl::Status s = call_.Begin(slots.size());
    if (!s.ok() || slots.empty()) return s;
    const uint32_t* of = nullptr;
    s = call_.SlotsIn(slots, &of);
    if (s.ok()) s = ClearSlots(device_, of, static_cast<uint32_t>(slots.size()));
    return call_.End(std::move(s));
  }
  absl::Status MarkClean(std::span<const uint32_t> slots) override {
    absl::Status s = call_.Begin(slots.size());
    if (!s.ok() || slots.empty()) return s;
    const auto n = static_cast<uint32_t>(slots.size());
    const uint32_t* of = nullptr;
    s = call_.SlotsIn(slots, &of);
    if (s.ok()) s = ChangeFlags(device_, of, n, kGpuBelow, kGpuDirty);
    return call_.End(std::move(s));
  }
  absl::StatusOr<std::vector<GpuRow>> Dirty(Position first, Position last, size_t most) override {
    return DirtyOnDevice(device_, call_, max_batch_, first, last, most);
  }
  absl::StatusOr<std::vector<GpuRow>> NextToLeave(uint32_t& bucket, size_t most) override {
    return NextToLeaveOnDevice(device_, call_, bucket, most);
  }
  absl::Status Age(GpuAging aging) override {
    absl::Status s = call_.Begin(0);
    if (s.ok()) s = call_.End(AgeScores(device_, aging));
    return s;
  }

 private:
  absl::Status ReadFrom(uint8_t* base, std::span<const uint32_t> numbers, GpuPinnedRows& here,
                        std::span<const uint8_t*> rows);

  GpuScoring ScoringAt(uint16_t now) const {
    return {.kind = shape_.eviction, .now = now, .gains = device_.t.gains};
  }

  ops::gpu::CudaApi* const api_;
  const GpuShape shape_;
  const uint32_t max_batch_;
  const GpuDeviceMemory memory_;
  std::vector<GpuDevicePiece> pieces_;  // of AllocateThere
  const ops::gpu::Stream stream_;       // gone before the memory, which waits for its work
  const GpuDeviceTable device_;
  GpuDeviceCall call_;
  // Of Open: slots in memory_.opened, rows in memory_.open_rows that Close takes back.
  uint32_t to_close_ = 0;
};

absl::Status DeviceGpuBackend::Init() {
  absl::Status s = api_->FillAsync(memory_.table, 0, memory_.bytes.table, stream_.get());
  if (s.ok() && device_.t.gains != nullptr) {
    std::memcpy(memory_.host_words, LrfuGainTable().data(), sizeof(LrfuGains));
    s = api_->CopyAsync(device_.t.gains, memory_.host_words, sizeof(LrfuGains), stream_.get());
  }
  return call_.End(std::move(s));
}

absl::StatusOr<size_t> DeviceGpuBackend::Find(std::span<const Position> positions, GpuUse use,
                                              uint16_t now, std::span<uint32_t> slots) {
  absl::Status s = call_.Begin(positions.size());
  if (!s.ok()) return s;
  if (positions.empty()) return size_t{0};
  const auto n = static_cast<uint32_t>(positions.size());
  const auto asked = call_.Take<uint64_t>(n);
  const auto found = call_.Take<uint32_t>(n);
  for (uint32_t i = 0; i < n; ++i) asked.host[i] = positions[i].value;
  std::copy_n(slots.begin(), n, found.host);
  s = call_.CopyIn();
  const auto scored = call_.Take<uint8_t>(n);
  const GpuFind call{.t = device_.t,
                     .scoring = ScoringAt(now),
                     .use = use,
                     .positions = asked.device,
                     .slots = found.device,
                     .scored = scored.device};
  if (s.ok()) s = FindRows(device_, call, n);
  if (s.ok()) s = call_.CopyOut(found.at);
  if (s = call_.End(std::move(s)); !s.ok()) return s;
  std::copy_n(found.host, n, slots.begin());
  return std::accumulate(scored.host, scored.host + n, size_t{0});
}

absl::Status DeviceGpuBackend::Insert(std::span<const GpuArrival> arrivals, uint16_t now,
                                      std::span<GpuPlaced> placed) {
  absl::Status s = call_.Begin(arrivals.size());
  if (!s.ok() || arrivals.empty()) return s;
  const auto n = static_cast<uint32_t>(arrivals.size());
  const auto coming = call_.Take<GpuArrival>(n);
  std::copy(arrivals.begin(), arrivals.end(), coming.host);
  s = call_.CopyIn();
  const auto answers = call_.Take<GpuPlaced>(n);
  const GpuInsertLists lists{.buckets = call_.Scratch<uint32_t>(n),
                             .ordinals = call_.Scratch<uint32_t>(n),
                             .sorted_buckets = call_.Scratch<uint32_t>(n),
                             .order = call_.Scratch<uint32_t>(n),
                             .begins = call_.Scratch<uint32_t>(size_t{n} + 1),
                             .runs = call_.Scratch<uint32_t>(1)};
  if (s.ok()) s = InsertRows(device_, ScoringAt(now), coming.device, n, lists, answers.device);
  if (s.ok()) s = call_.CopyOut(answers.at);
  if (s = call_.End(std::move(s)); !s.ok()) return s;
  std::copy_n(answers.host, n, placed.begin());
  return absl::OkStatus();
}

absl::Status DeviceGpuBackend::Put(std::span<const uint32_t> slots,
                                   std::span<const uint8_t* const> rows) {
  absl::Status s = call_.Begin(slots.size());
  if (!s.ok() || slots.empty()) return s;
  const auto pinned = memory_.open_rows->Get();
  if (!pinned.ok()) return call_.End(pinned.status());
  for (size_t i = 0; i < slots.size(); ++i) {
    std::memcpy(*pinned + i * shape_.stride(), rows[i], shape_.row_bytes);
  }
  const uint32_t* to = nullptr;
  s = call_.SlotsIn(slots, &to);
  if (s.ok()) {
    s = CopyRows(device_, {device_.t.rows, to}, {*pinned}, static_cast<uint32_t>(slots.size()));
  }
  return call_.End(std::move(s));
}

absl::Status DeviceGpuBackend::PutStaged(std::span<const uint32_t> slots,
                                         std::span<const uint32_t> places) {
  absl::Status s = call_.Begin(slots.size());
  if (!s.ok() || slots.empty()) return s;
  const auto to = call_.Take<uint32_t>(slots.size());
  const auto from = call_.Take<uint32_t>(slots.size());
  std::copy(slots.begin(), slots.end(), to.host);
  std::copy(places.begin(), places.end(), from.host);
  s = call_.CopyIn();
  if (s.ok()) {
    s = CopyRows(device_, {device_.t.rows, to.device}, {device_.t.staged, from.device},
                 static_cast<uint32_t>(slots.size()));
  }
  return call_.End(std::move(s));
}

absl::Status DeviceGpuBackend::ReadFrom(uint8_t* base, std::span<const uint32_t> numbers,
                                        GpuPinnedRows& here, std::span<const uint8_t*> rows) {
  absl::Status s = call_.Begin(numbers.size());
  if (!s.ok() || numbers.empty()) return s;
  const auto pinned = here.Get();
  if (!pinned.ok()) return call_.End(pinned.status());
  const uint32_t* from = nullptr;
  s = call_.SlotsIn(numbers, &from);
  if (s.ok()) {
    s = CopyRows(device_, {*pinned}, {base, from}, static_cast<uint32_t>(numbers.size()));
  }
  for (size_t i = 0; i < numbers.size(); ++i) rows[i] = *pinned + i * shape_.stride();
  return call_.End(std::move(s));
}

absl::Status DeviceGpuBackend::Open(std::span<const uint32_t> slots, GpuUse use,
                                    std::span<uint8_t*> rows) {
  absl::Status s = call_.Begin(slots.size());
  to_close_ = 0;
  if (!s.ok() || slots.empty()) return s;
  const auto pinned = memory_.open_rows->Get();
  if (!pinned.ok()) return call_.End(pinned.status());
  const auto n = static_cast<uint32_t>(slots.size());
  const auto words = call_.Take<uint32_t>(n);
  std::copy(slots.begin(), slots.end(), words.host);
  s = api_->CopyAsync(memory_.opened, words.host, size_t{n} * 4, stream_.get());
  if (s.ok()) s = CopyRows(device_, {*pinned}, {device_.t.rows, memory_.opened}, n);
  for (uint32_t i = 0; i < n; ++i) rows[i] = *pinned + i * shape_.stride();
  if (use == GpuUse::kUpdate) to_close_ = n;
  return call_.End(std::move(s));
}

absl::Status DeviceGpuBackend::Close(std::span<const uint32_t> slots) {
  absl::Status s = call_.Begin(slots.size());
  if (!s.ok() || (slots.empty() && to_close_ == 0)) return s;
  if (to_close_ > 0) {
    const auto pinned = memory_.open_rows->Get();  // Open has taken it
    s = pinned.status();
    if (s.ok()) {
      s = CopyRows(device_, {device_.t.rows, memory_.opened}, {*pinned}, to_close_);
    }
    to_close_ = 0;
  }
  if (s.ok() && !slots.empty()) {
    const uint32_t* held = nullptr;
    s = call_.SlotsIn(slots, &held);
    if (s.ok()) s = ChangeFlags(device_, held, static_cast<uint32_t>(slots.size()), 0, kGpuHeld);
  }
  return call_.End(std::move(s));
}

absl::StatusOr<size_t> DeviceGpuBackend::Flags(std::span<const uint32_t> slots,
                                               std::span<uint8_t> flags) {
  absl::Status s = call_.Begin(slots.size());
  if (!s.ok()) return s;
  if (slots.empty()) return size_t{0};
  const auto n = static_cast<uint32_t>(slots.size());
  const uint32_t* of = nullptr;
  s = call_.SlotsIn(slots, &of);
  const auto answers = call_.Take<uint8_t>(n);
  const auto pinned = call_.Take<uint8_t>(n);
  if (s.ok()) s = ReadFlags(device_, of, n, answers.device, pinned.device);
  if (s.ok()) s = call_.CopyOut(answers.at);
  if (s = call_.End(std::move(s)); !s.ok()) return s;
  std::copy_n(answers.host, n, flags.begin());
  return std::accumulate(pinned.host, pinned.host + n, size_t{0});
}

absl::StatusOr<float*> DeviceGpuBackend::AllocateThere(size_t floats) {
  if (absl::Status s = call_.Begin(0); !s.ok()) return s;
  auto piece = GpuDevicePiece::Take(api_, floats * sizeof(float));
  if (absl::IsResourceExhausted(piece.status())) return piece.status();
  if (!piece.ok()) return call_.End(piece.status());
  pieces_.push_back(*std::move(piece));
  return pieces_.back().buffer.as<float>();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuBackend>> MakeDeviceGpuBackend(ops::gpu::CudaApi* api,
                                                                 const GpuShape& shape,
                                                                 const DeviceGpuOptions& options) {
  if (options.max_batch == 0) {
    return absl::InvalidArgumentError("max_batch is 0; a GPU table's calls need at least 1");
  }
  const auto rows =
      static_cast<uint32_t>(std::max<uint64_t>(DeviceGpuOptions::kFewRows, shape.slots()));
  const uint32_t most = std::min(options.max_batch, rows);
  const uint32_t batch = GpuDeviceBytes::MostBatch(shape, most, options.pinned_bytes);
  if (batch == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("pinned_bytes is ", options.pinned_bytes, "; a GPU table with rows of ",
                     shape.row_bytes, " bytes needs at least ", GpuDeviceBytes::Pinned(shape, 1)));
  }
  auto memory = GpuDeviceMemory::Take(api, shape, batch);
  if (!memory.ok()) return memory.status();
  auto stream = ops::gpu::MakeStream(api);
  if (!stream.ok()) return stream.status();
  auto backend =
      std::make_unique<DeviceGpuBackend>(api, shape, batch, *std::move(memory), *std::move(stream));
  if (absl::Status s = backend->Init(); !s.ok()) return s;
  return backend;
}

}  // namespace strata::storage::gpu
