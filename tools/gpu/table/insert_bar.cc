#include "tools/gpu/table/insert_bar.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ops/cuda/kernel/scan.h"
#include "storage/eviction/kind.h"
#include "storage/gpu/bucket.h"
#include "storage/gpu/device/calls.h"
#include "storage/gpu/device/table.h"
#include "storage/gpu/score.h"
#include "storage/gpu/shape.h"
#include "storage/gpu/slots.h"
#include "tools/gpu/bars/bar_memory.h"
#include "tools/gpu/bars/fill.h"
#include "tools/gpu/table/fill.h"
#include "tools/gpu/table/memory.h"
#include "tools/gpu/table/probe.h"

namespace strata::gpu_check {
namespace {

using ops::gpu::Buffer;
using storage::EvictionKind;
using storage::gpu::GpuArrival;
using storage::gpu::GpuPlaced;
using storage::gpu::GpuShape;

constexpr uint32_t kRowBytes = 256;
constexpr double kLeastKeysPerS = 1.2e9;

enum class NewRows : uint8_t { kLeft, kMoved };
struct Case {
  const char* name;
  EvictionKind eviction;
  NewRows new_rows;
};
constexpr Case kCases[] = {{"lru", EvictionKind::kLru, NewRows::kLeft},
                           {"lrfu", EvictionKind::kLrfu, NewRows::kLeft},
                           {"lru, new rows moved too", EvictionKind::kLru, NewRows::kMoved}};

// Of a key: arrival and answer; control bytes, pins, flags and scores of its bucket; one of each of
// those written, and a position read and written; of lrfu, two sets of ghosts.
double KeyBytes(const Case& c) {
  const double bucket = kBarBucketSlots * (1 + 1 + 1 + 2);
  const double ghosts = c.eviction == EvictionKind::kLrfu ? 2 * 32 + 2 * 4 : 0;
  const double rows = c.new_rows == NewRows::kMoved ? 4 * kRowBytes : 2 * kRowBytes;
  return sizeof(GpuArrival) + sizeof(GpuPlaced) + bucket + 5 + 16 + ghosts + rows;
}

// A sixteenth of the slots at most, so that hardly any bucket gets more rows than it has slots.
uint32_t KeysOf(const BarSizes& sizes) {
  const uint64_t slots = BarShape(sizes.table_bytes, kRowBytes, EvictionKind::kLru, 1).slots();
  return static_cast<uint32_t>(std::clamp<uint64_t>(slots / 16, 1, sizes.table_keys));
}

GpuShape ShapeOf(const BarSizes& sizes, EvictionKind eviction) {
  return BarShape(sizes.table_bytes, kRowBytes, eviction, KeysOf(sizes));
}

size_t Wanted(const BarSizes& sizes, size_t sort_bytes) {
  const size_t n = sizes.table_keys;
  return PieceBytes(ShapeOf(sizes, EvictionKind::kLrfu).bytes()) +
         PieceBytes(n * sizeof(GpuArrival)) + PieceBytes(n * sizeof(GpuPlaced)) +
         9 * PieceBytes((n + 1) * 4) + PieceBytes(sort_bytes) + PieceBytes(n * kRowBytes);
}

// (n) each, but begins (n + 1), runs 1, and tiles of a scan.
struct Buffers {
  Buffer table, arrivals, placed, sort_scratch, new_rows;
  Buffer buckets, ordinals, sorted, order, begins, runs, tiles, slots, numbers;
};

absl::Status Allocate(ops::gpu::Arena* arena, const BarSizes& sizes, size_t sort_bytes,
                      Buffers* buffers) {
  const size_t n = sizes.table_keys;
  const std::pair<Buffer*, size_t> pieces[] = {
      {&buffers->table, ShapeOf(sizes, EvictionKind::kLrfu).bytes()},
      {&buffers->arrivals, n * sizeof(GpuArrival)},
      {&buffers->placed, n * sizeof(GpuPlaced)},
      {&buffers->sort_scratch, sort_bytes},
      {&buffers->new_rows, n * kRowBytes},
      {&buffers->buckets, n * 4},
      {&buffers->ordinals, n * 4},
      {&buffers->sorted, n * 4},
      {&buffers->order, n * 4},
      {&buffers->begins, (n + 1) * 4},
      {&buffers->runs, 4},
      {&buffers->tiles, ops::gpu::ScanTiles(sizes.table_keys) * sizeof(uint32_t)},
      {&buffers->slots, n * 4},
      {&buffers->numbers, n * 4},
  };
  for (const auto& [buffer, bytes] : pieces) {
    auto taken = arena->Allocate(bytes);
    if (!taken.ok()) return taken.status();
    *buffer = *std::move(taken);
  }
  return absl::OkStatus();
}

// Inserts rows that were never there, n a call.
class Inserter {
 public:
  Inserter(const BarContext& context, const Buffers& buffers, const Case& c,
           const storage::gpu::GpuSlots& t, uint32_t n)
      : buffers_(buffers),
        case_(c),
        n_(n),
        d_{.api = context.api,
           .stream = context.stream,
           .t = t,
           .bucket_slots = kBarBucketSlots,
           .tiles = buffers.tiles.as<uint32_t>(),
           .sort_scratch = buffers.sort_scratch.as<void>(),
           .sort_scratch_bytes = buffers.sort_scratch.bytes()},
        lists_{.buckets = buffers.buckets.as<uint32_t>(),
               .ordinals = buffers.ordinals.as<uint32_t>(),
               .sorted_buckets = buffers.sorted.as<uint32_t>(),
               .order = buffers.order.as<uint32_t>(),
               .begins = buffers.begins.as<uint32_t>(),
               .runs = buffers.runs.as<uint32_t>()} {}

  // Asynchronous.
  absl::Status Call() {
    auto* const arrivals = buffers_.arrivals.as<GpuArrival>();
    auto* const placed = buffers_.placed.as<GpuPlaced>();
    absl::Status status = FillArrivals(*d_.api, inserted_, n_, arrivals, d_.stream);
    inserted_ += n_;
    now_ = static_cast<uint16_t>(std::min(now_ + 1, 0xffff));
    const storage::gpu::GpuScoring scoring = {
        .kind = case_.eviction, .now = now_, .gains = d_.t.gains};
    if (status.ok()) status = storage::gpu::InsertRows(d_, scoring, arrivals, n_, lists_, placed);
    if (!status.ok() || case_.new_rows == NewRows::kLeft) return status;
    auto* const slots = buffers_.slots.as<uint32_t>();
    status = SlotsOfPlaced(*d_.api, placed, n_, slots, d_.stream);
    if (!status.ok()) return status;
    return storage::gpu::CopyRows(d_, {d_.t.rows, slots}, {buffers_.new_rows.as<uint8_t>()}, n_);
  }

 private:
  const Buffers& buffers_;
  const Case& case_;
  const uint32_t n_;
  const storage::gpu::GpuDeviceTable d_;
  const storage::gpu::GpuInsertLists lists_;
  uint64_t inserted_ = 0;
  uint16_t now_ = 1;
};

// Of the last call.
absl::Status CheckPlaced(const BarContext& context, const Buffers& buffers, const Case& c,
                         const storage::gpu::GpuSlots& t, uint32_t n) {
  std::vector<GpuPlaced> placed(n);
  absl::Status status = context.api->CopyAsync(placed.data(), buffers.placed.as<void>(),
                                               n * sizeof(GpuPlaced), context.stream);
  if (status.ok()) status = context.api->Synchronize(context.stream);
  if (!status.ok()) return status;
  std::vector<uint32_t> slots(n);
  for (uint32_t i = 0; i < n; ++i) {
    slots[i] = placed[i].slot;
    if (slots[i] >= t.buckets * kBarBucketSlots || placed[i].left == 0 ||
        (placed[i].left_flags & storage::gpu::kGpuDirty) == 0) {
      return absl::InternalError(absl::StrCat("find-or-insert: key ", i, " in slot ", slots[i],
                                              " pushed out no dirty row"));
    }
  }
  // No row that comes has bytes of its own, or else those of new_rows.
  const bool moved = c.new_rows == NewRows::kMoved;
  status = CheckRows(context, "find-or-insert", t, slots.data(), n,
                     moved ? buffers.new_rows.as<uint8_t>() : t.staged);
  std::sort(slots.begin(), slots.end());
  if (status.ok() && std::adjacent_find(slots.begin(), slots.end()) != slots.end()) {
    status = absl::InternalError("find-or-insert: two keys share a slot");
  }
  return status;
}

absl::Status MeasureCase(const BarContext& context, const BarMemory& memory, const Buffers& buffers,
                         const Case& c) {
  const GpuShape shape = ShapeOf(memory.sizes(), c.eviction);
  const uint32_t n = KeysOf(memory.sizes());
  const auto t = MakeBarTable(context, shape, buffers.table);
  if (!t.ok()) return t.status();
  absl::Status status = FillBuckets(*context.api, *t, kBarBucketSlots, context.stream);
  if (status.ok()) {
    status = FillFloats(*context.api, uint64_t{n} * kRowBytes / sizeof(float), -1.0f, 1.0f, 11,
                        buffers.new_rows.as<float>(), context.stream);
  }
  if (status.ok()) {
    status = FillRowNumbers(*context.api, n, FloorLog2(shape.slots()), 12,
                            buffers.numbers.as<uint32_t>(), context.stream);
  }
  if (status.ok()) {  // what no kernel answers pushed out nothing
    status = context.api->FillAsync(buffers.placed.as<void>(), 0, buffers.placed.bytes(),
                                    context.stream);
  }
  if (!status.ok()) return status;

  Inserter inserter(context, buffers, c, *t, n);
  const TableProbe probe = {
      .t = *t, .slots = buffers.numbers.as<uint32_t>(), .n = n, .rows = t->staged};
  BarLine line;
  line.bar = "find-or-insert";
  line.name = absl::StrCat("all misses, dim ", kRowBytes / 4, ", ", c.name);
  line.bytes = n * KeyBytes(c);
  line.operations = n;
  line.operation = "keys";
  line.most_ms = n / kLeastKeysPerS * 1e3;
  line.note = "the keys are made within the time";
  const auto timed = memory.Time(
      line, [&] { return inserter.Call(); },
      [&] { return ProbeInserts(*context.api, probe, context.stream); });
  if (!timed.ok()) return timed.status();
  status = inserter.Call();  // the probe wrote staging places last
  if (status.ok()) status = CheckPlaced(context, buffers, c, *t, n);
  if (status.ok()) context.tell(*timed);
  return status;
}

}  // namespace

absl::Status FindOrInsertBar(const BarContext& context) {
  size_t sort_bytes = 0;
  absl::Status status =
      context.api->SortScratchBytes(context.sizes.table_keys, sizeof(uint32_t), &sort_bytes);
  if (!status.ok()) return status;
  sort_bytes = std::max<size_t>(sort_bytes, 1);
  auto memory = BarMemory::Make(
      context, [sort_bytes](const BarSizes& sizes) { return Wanted(sizes, sort_bytes); });
  if (!memory.ok()) return memory.status();
  Buffers buffers;
  status = Allocate((*memory)->arena(), (*memory)->sizes(), sort_bytes, &buffers);
  for (const Case& c : kCases) {
    if (status.ok()) status = MeasureCase(context, **memory, buffers, c);
  }
  return status;
}

}  // namespace strata::gpu_check
