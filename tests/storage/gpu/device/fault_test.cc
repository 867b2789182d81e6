// Every call of a GPU table on a device, and every call of the seam below (ops/cuda/api/api.h) that
// it makes: each fails in its turn, and in a steady sequence none allocates, and none waits twice.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ops/codec.h"
#include "ops/cuda/api/api.h"
#include "ops/optimizer.h"
#include "proto/core/ids.h"
#include "proto/core/table_spec.h"
#include "storage/gpu/backend.h"
#include "storage/gpu/device/backend.h"
#include "storage/gpu/shape.h"
#include "storage/row/births.h"
#include "storage/row/layout.h"
#include "storage/row/touch.h"
#include "storage/row/update.h"
#include "tests/ops/cuda/api/failing_api.h"
#include "tests/ops/cuda/api/test_apis.h"

namespace strata::storage::gpu {
namespace {

using ops::gpu::CallCounts;
using ops::gpu::CudaApi;
using ops::gpu::testing::FailingApi;

constexpr size_t kRows = 40;
constexpr size_t kRowBytes = 24;
constexpr uint32_t kDim = 3;

// Rows of two segments: sgd, and adagrad of one float.
TableSpec Table() {
  TableSpec spec;
  spec.segments = {{"a", 2, {}, {OptimizerType::kSgd, 1.0f}},
                   {"b", 1, {}, {OptimizerType::kAdagrad, 1.0f}}};
  return spec;
}

class TestUpdate {
 public:
  TestUpdate() {
    layout_ = RowLayout::For(Table());
    scalars_.resize(layout_.runs.size());
    update_ = {
        .layout = &layout_, .scalars = scalars_, .sums = sums_.data(), .stride = kDim, .step = 1};
  }
  const RowUpdate& get() const { return update_; }

 private:
  RowLayout layout_;
  std::vector<ops::StepScalars> scalars_;
  const std::vector<float> sums_ = std::vector<float>(kRows * kDim, 0.5f);
  RowUpdate update_;
};

// Births of such rows.
class TestBirths {
 public:
  RowBirths get() const { return {.spec = &spec_, .layout = &layout_, .seed = 1, .keys = keys_}; }

 private:
  const TableSpec spec_ = Table();
  const RowLayout layout_ = RowLayout::For(spec_);
  const std::vector<Key> keys_ = std::vector<Key>(kRows, Key(7));
};

std::vector<uint32_t> Numbers() {
  std::vector<uint32_t> numbers;
  for (uint32_t i = 0; i < kRows; ++i) numbers.push_back(i);
  return numbers;
}

absl::StatusOr<std::unique_ptr<GpuBackend>> Made(CudaApi* api) {
  return MakeDeviceGpuBackend(api,
                              {.row_bytes = kRowBytes,
                               .bucket_slots = 32,
                               .eviction = EvictionKind::kLrfu,
                               .buckets = 4,
                               .places = 64},
                              {});
}

// Calls every function in turn, with arguments that are in order.
class Script {
 public:
  // after: called after each of them, with its name.
  explicit Script(GpuBackend* backend, std::function<void(const char*)> after = nullptr)
      : backend_(backend), after_(std::move(after)) {}

  // The first error ends it.
  absl::Status Play(uint64_t first_position) {
    std::vector<Position> positions;
    for (uint64_t i = 0; i < kRows; ++i) positions.push_back(Position(first_position + i));
    absl::Status s = Bring(positions);
    if (s.ok()) s = Use(positions);
    if (s.ok()) s = Pins(positions);
    if (s.ok()) s = Sweep();
    return s;
  }

 private:
  absl::Status Said(const char* call, absl::Status s) {
    if (after_ != nullptr) after_(call);
    return s;
  }

  // Finds nothing, and inserts.
  absl::Status Bring(const std::vector<Position>& positions) {
    slots_.assign(kRows, kNoGpuSlot);
    const auto scored = backend_->Find(positions, GpuUse::kUpdate, 1, slots_);
    absl::Status s = Said("Find", scored.status());
    if (!s.ok()) return s;
    std::vector<GpuArrival> arrivals;
    for (uint32_t i = 0; i < kRows; ++i) {
      arrivals.push_back({positions[i].value, i, kGpuHeld | kGpuDirty});
    }
    std::vector<GpuPlaced> placed(kRows);
    s = Said("Insert", backend_->Insert(arrivals, 1, placed));
    if (!s.ok()) return s;
    std::vector<const uint8_t*> rows;
    for (size_t i = 0; i < kRows; ++i) {
      slots_[i] = placed[i].slot;
      REQUIRE(slots_[i] != kNoGpuSlot);
      rows.push_back(&bytes_[i * kRowBytes]);
    }
    s = Said("Put", backend_->Put(slots_, rows));
    const std::vector<uint32_t> places = {0, 1};
    const std::vector<uint32_t> two(slots_.begin(), slots_.begin() + 2);
    return s.ok() ? Said("PutStaged", backend_->PutStaged(two, places)) : s;
  }

  absl::Status Use(const std::vector<Position>& positions) {
    std::vector<const uint8_t*> rows(kRows);
    absl::Status s = Said("Read", backend_->Read(slots_, rows));
    if (s.ok()) {
      CHECK(std::memcmp(rows[9], &bytes_[9 * kRowBytes], kRowBytes) == 0);
      const std::vector<uint32_t> places = {3, 5};
      s = Said("ReadStaged", backend_->ReadStaged(places, rows));
    }
    std::vector<uint8_t*> open(kRows);
    if (s.ok()) s = Said("Open", backend_->Open(slots_, GpuUse::kUpdate, open));
    if (!s.ok()) return s;
    std::memset(open[7], 3, kRowBytes);
    s = Said("Close", backend_->Close(slots_));
    if (s.ok()) s = Said("Read", backend_->Read(slots_, rows));
    if (s.ok()) CHECK(rows[7][kRowBytes - 1] == 3);
    if (s.ok()) s = Said("Open", backend_->Open(slots_, GpuUse::kRead, open));
    if (s.ok()) s = Said("Close", backend_->Close(slots_));
    return s.ok() ? InPlace() : s;
  }

  // Rows of bytes that are finite floats, of two runs.
  absl::Status InPlace() {
    std::vector<uint8_t> outcomes(kRows), out(kRows * kDim * 4);
    absl::Status s = Said("Apply", backend_->Apply(slots_, update_.get(), outcomes.data()));
    if (s.ok()) CHECK(outcomes[3] == kOutcomeApplied);
    for (const auto codec : {ops::RowCodec::kFloat32, ops::RowCodec::kInt8}) {
      if (s.ok()) s = Said("Gather", backend_->Gather(slots_, codec, kDim, out.data()));
    }
    return s.ok() ? There() : s;
  }

  // The same by memory of the device, which the first Play takes; and rows that are born.
  absl::Status There() {
    if (there_ == nullptr) {
      const auto memory = backend_->AllocateThere(2 * kRows * kDim);
      if (!memory.ok()) return memory.status();
      there_ = *memory;
    }
    float* const sums = there_ + kRows * kDim;
    std::vector<uint8_t> outcomes(kRows);
    std::vector<float> out(kRows * kDim);
    absl::Status s = Said("Upload", backend_->Upload(update_.get().sums, numbers_, kDim, sums));
    RowUpdate update = update_.get();
    update.sums_there = sums;
    update.sums = nullptr;
    if (s.ok()) s = Said("Apply", backend_->Apply(slots_, update, outcomes.data()));
    if (s.ok()) CHECK(outcomes[3] == kOutcomeApplied);
    if (s.ok()) s = Said("GatherThere", backend_->GatherThere(slots_, kDim, there_));
    if (s.ok()) s = Said("Initialize", backend_->InitializeThere(births_.get(), numbers_, sums));
    if (s.ok()) s = Said("Initialize", backend_->InitializeRows(slots_, births_.get()));
    if (s.ok()) s = Said("Download", backend_->Download(there_, numbers_, kDim, out.data()));
    return s;
  }

  absl::Status Pins(const std::vector<Position>& positions) {
    const auto pinned = backend_->Pin(slots_, kRows);
    absl::Status s = Said("Pin", pinned.status());
    if (!s.ok()) return s;
    CHECK((pinned->through == kRows && pinned->rows == kRows));
    std::vector<uint8_t> flags(kRows);
    const auto still = backend_->Flags(slots_, flags);
    s = Said("Flags", still.status());
    if (!s.ok()) return s;
    CHECK((*still == kRows && flags[0] == kGpuDirty));
    const auto ended = backend_->Unpin(positions, slots_);
    s = Said("Unpin", ended.status());
    if (s.ok()) CHECK(*ended == kRows);
    return s;
  }

  absl::Status Sweep() {
    const auto dirty = backend_->Dirty(Position(0), Position(~0ull), 1000);
    absl::Status s = Said("Dirty", dirty.status());
    if (!s.ok()) return s;
    CHECK(dirty->size() == kRows);
    uint32_t bucket = 0;
    s = Said("NextToLeave", backend_->NextToLeave(bucket, 100).status());
    if (s.ok()) s = Said("MarkClean", backend_->MarkClean(slots_));
    if (s.ok()) s = Said("Age", backend_->Age({.lower = 1}));
    return s.ok() ? Said("Erase", backend_->Erase(slots_)) : s;
  }

  GpuBackend* const backend_;
  const std::function<void(const char*)> after_;
  std::vector<uint32_t> slots_;
  const TestUpdate update_;
  const TestBirths births_;
  const std::vector<uint32_t> numbers_ = Numbers();
  float* there_ = nullptr;  // (2 rows, dim)
  const std::vector<uint8_t> bytes_ = std::vector<uint8_t>(kRows * kRowBytes, 7);
};

// What each function answers now.
std::vector<absl::Status> Answers(GpuBackend& backend) {
  std::vector<uint32_t> slot = {0};
  std::vector<uint8_t*> open(1);
  std::vector<const uint8_t*> rows = {reinterpret_cast<const uint8_t*>("123456789012345678901234")};
  std::vector<const uint8_t*> read(1);
  std::vector<uint8_t> flags(1), gathered(kDim * 4);
  const TestUpdate update;
  const TestBirths births;
  float there[kDim];
  std::vector<GpuPlaced> placed(1);
  const std::vector<Position> position = {Position(1)};
  const std::vector<GpuArrival> arrival(1);
  uint32_t bucket = 0;
  return {backend.Find(position, GpuUse::kRead, 1, slot).status(),
          backend.Find({}, GpuUse::kRead, 1, {}).status(),
          backend.Insert(arrival, 1, placed),
          backend.Put(slot, rows),
          backend.PutStaged(slot, slot),
          backend.Read(slot, read),
          backend.ReadStaged(slot, read),
          backend.Open(slot, GpuUse::kUpdate, open),
          backend.Close(slot),
          backend.Gather(slot, ops::RowCodec::kFloat32, kDim, gathered.data()),
          backend.Apply(slot, update.get(), gathered.data()),
          backend.GatherThere(slot, kDim, there),
          backend.Upload(there, slot, kDim, there),
          backend.Download(there, slot, kDim, there),
          backend.AllocateThere(1).status(),
          backend.InitializeRows(slot, births.get()),
          backend.InitializeThere(births.get(), slot, there),
          backend.Pin(slot, 1).status(),
          backend.Unpin(position, slot).status(),
          backend.Flags(slot, flags).status(),
          backend.Erase(slot),
          backend.MarkClean(slot),
          backend.Dirty(Position(0), Position(9), 1).status(),
          backend.NextToLeave(bucket, 1).status(),
          backend.Age({.lower = 1})};
}

TEST_CASE("whichever call fails, a GPU table ends with its error and leaves nothing",
          "[storage][gpu][cuda]") {
  uint64_t calls = 0, failed_late = 0, failed_first = 0;
  {
    FailingApi api(UINT64_MAX);
    {
      const auto made = Made(&api);
      REQUIRE(made.ok());
      REQUIRE(Script(made->get()).Play(100).ok());
    }
    CHECK(api.leaks() == 0);
    calls = api.calls();
  }
  CHECK(calls > 100);
  for (uint64_t failing = 0; failing < calls; ++failing) {
    const bool lost = failing % 2 == 1;
    FailingApi api(failing, lost);
    INFO("call " << failing << " of " << calls);
    absl::Status s;
    {
      const auto made = Made(&api);
      s = made.status();
      failed_first += !made.ok();
      if (made.ok()) s = Script(made->get()).Play(100);
      if (made.ok() && !s.ok()) {
        for (const absl::Status& later : Answers(**made)) CHECK(later == s);
      }
    }
    if (s.ok()) {
      ++failed_late;  // what fails while everything is given back fails nobody
    } else {
      CHECK_THAT(std::string(s.message()), Catch::Contains("injected"));
      CHECK(ops::gpu::IsDeviceLost(s) == lost);
    }
    CHECK(api.leaks() == 0);
  }
  // Two sizes of scratch, two pieces of memory, a stream, zeroes, the gains, and the wait for them.
  CHECK(failed_first == 8);
  CHECK(failed_late == 7);  // the stream, the two pieces, and the four taken later
}

TEST_CASE("no steady call of a GPU table allocates, and each waits once", "[storage][gpu][cuda]") {
  for (ops::gpu::testing::TestApi& test : ops::gpu::testing::Apis()) {
    CudaApi& api = *test.api;
    const auto made = Made(&api);
    REQUIRE(made.ok());
    CallCounts last = api.counts();
    size_t calls = 0;
    Script script(made->get(), [&](const char* call) {
      const CallCounts now = api.counts();
      INFO(test.name << ": " << call);
      CHECK(now.synchronisations == last.synchronisations + 1);
      last = now;
      ++calls;
    });
    REQUIRE(script.Play(0).ok());
    const CallCounts first = last;
    for (uint64_t i = 1; i < 5; ++i) REQUIRE(script.Play(i * 1000).ok());
    CHECK(calls == 5 * 28);
    CHECK(api.counts().allocations == first.allocations);
    // What names nothing needs no device at all.
    const CallCounts before = api.counts();
    CHECK((*made)->Put({}, {}).ok());
    CHECK((*made)->Close({}).ok());
    CHECK((*made)->Find({}, GpuUse::kRead, 1, {}).ok());
    CHECK(api.counts().synchronisations == before.synchronisations);
    CHECK(api.counts().launches == before.launches);
  }
}

}  // namespace
}  // namespace strata::storage::gpu
