#include "tools/gpu/table/find_bar.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "storage/eviction/kind.h"
#include "storage/gpu/device/calls.h"
#include "storage/gpu/device/table.h"
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
using storage::gpu::GpuShape;
using storage::gpu::GpuSlots;

struct Case {
  uint32_t dim;
  double least_keys_per_s;  // 0: not asked for
  double least_of_copy;
};
constexpr Case kCases[] = {{8, 5e9, 0}, {64, 0, 0.75}};
constexpr uint32_t kMostRowBytes = 256;
// Of a key, beside its row read and written: itself, and 128 B of what is searched.
constexpr double kKeyBytes = 8 + 128;
constexpr double kMostChange = 0.05;
// Of a key, what of the table is read: its bucket's control bytes, a sector of positions, its row.
constexpr double kTouchedBytes = 64 + 32;

GpuShape ShapeOf(const BarSizes& sizes, uint32_t dim) {
  return BarShape(sizes.table_bytes, dim * sizeof(float), storage::EvictionKind::kLru, 1);
}

size_t TableBytes(const BarSizes& sizes) {
  size_t most = 0;
  for (const Case& c : kCases) most = std::max<size_t>(most, ShapeOf(sizes, c.dim).bytes());
  return most;
}

// Of keys that take turns, whatever the case.
size_t NamedKeys(const BarSizes& sizes, size_t cache_bytes) {
  uint32_t most = 0;
  for (const Case& c : kCases) {
    most = std::max(
        most, KeySets(cache_bytes, sizes.table_keys * (kTouchedBytes + c.dim * sizeof(float))));
  }
  return size_t{most} * sizes.table_keys;
}

size_t Wanted(const BarSizes& sizes, size_t cache_bytes) {
  const size_t n = sizes.table_keys, named = NamedKeys(sizes, cache_bytes);
  return PieceBytes(TableBytes(sizes)) + PieceBytes(named * 8) + 2 * PieceBytes(named * 4) +
         PieceBytes(n * 4) + PieceBytes(n * kMostRowBytes);
}

// (keys of all sets) of positions, numbers and slots, the rest of one set.
struct Buffers {
  Buffer table, positions, numbers, slots, found, rows;
};

// A table with `taken` rows in each bucket, and sets of n of them, named; all are distinct.
struct Filled {
  GpuSlots t;
  uint32_t taken, n, sets;
};

// Whose turn it is.
class Turns {
 public:
  explicit Turns(const Filled& filled) : filled_(filled) {}
  // The first key of the set at hand; the next one is at hand then.
  size_t Take() {
    const size_t first = size_t{set_} * filled_.n;
    set_ = (set_ + 1) % filled_.sets;
    return first;
  }
  void Restart() { set_ = 0; }

 private:
  const Filled& filled_;
  uint32_t set_ = 0;
};

// first: the first of the keys that were looked for last.
absl::Status CheckFound(const BarContext& context, const Buffers& buffers, const Filled& filled,
                        size_t first) {
  const uint32_t n = filled.n;
  std::vector<uint32_t> want(n), got(n);
  absl::Status status = context.api->CopyAsync(want.data(), buffers.slots.as<uint32_t>() + first,
                                               n * 4ull, context.stream);
  if (status.ok()) {
    status = context.api->CopyAsync(got.data(), buffers.found.as<void>(), n * 4ull, context.stream);
  }
  if (status.ok()) status = context.api->Synchronize(context.stream);
  if (!status.ok()) return status;
  const auto wrong = std::mismatch(want.begin(), want.end(), got.begin());
  if (wrong.first != want.end()) {
    return absl::InternalError(absl::StrCat("find: key ", wrong.first - want.begin(),
                                            " was found in slot ", *wrong.second, " instead of ",
                                            *wrong.first));
  }
  return CheckRows(context, "find", filled.t, want.data(), n, buffers.rows.as<uint8_t>());
}

// reference_ms: of the same rows in a table that is less full, or 0. Returns the case's.
absl::StatusOr<double> MeasureCase(const BarContext& context, const BarMemory& memory,
                                   const Buffers& buffers, const Case& c, const Filled& filled,
                                   double reference_ms) {
  const storage::gpu::GpuDeviceTable d = {
      .api = context.api, .stream = context.stream, .t = filled.t, .bucket_slots = kBarBucketSlots};
  BarLine line;
  line.bar = "find";
  line.name = absl::StrCat("all hits, dim ", c.dim, ", ", 100 * filled.taken / kBarBucketSlots,
                           " % of slots taken");
  line.bytes = filled.n * (kKeyBytes + 2.0 * filled.t.stride);
  line.operations = filled.n;
  line.operation = "keys";
  line.least_of_copy = c.least_of_copy;
  if (c.least_keys_per_s > 0) line.most_ms = filled.n / c.least_keys_per_s * 1e3;
  line.note = absl::StrCat("sets of keys that take turns: ", filled.sets);
  Turns turns(filled), probe_turns(filled);
  const Work work = [&] {
    return storage::gpu::LookUpRows(d, buffers.positions.as<uint64_t>() + turns.Take(), filled.n,
                                    buffers.found.as<uint32_t>(), buffers.rows.as<uint8_t>());
  };
  const Work probe = [&] {
    return ProbeLookUps(*context.api,
                        {.t = filled.t,
                         .slots = buffers.slots.as<uint32_t>() + probe_turns.Take(),
                         .n = filled.n,
                         .rows = buffers.rows.as<uint8_t>()},
                        context.stream);
  };
  auto timed = memory.Time(line, work, probe);
  if (!timed.ok()) return timed.status();
  // The probe wrote rows last. All sets were found, and not the first alone.
  absl::Status status;
  turns.Restart();
  for (uint32_t set = 0; set < filled.sets && status.ok(); ++set) {
    status = work();
    if (status.ok()) status = CheckFound(context, buffers, filled, size_t{set} * filled.n);
  }
  if (!status.ok()) return status;
  if (reference_ms > 0) {
    timed->reference_ms = reference_ms;
    timed->most_change = kMostChange;
  }
  context.tell(*timed);
  return timed->ms;
}

absl::Status MeasureTable(const BarContext& context, const BarMemory& memory,
                          const Buffers& buffers, const Case& c) {
  const GpuShape shape = ShapeOf(memory.sizes(), c.dim);
  const auto t = MakeBarTable(context, shape, buffers.table);
  if (!t.ok()) return t.status();
  double ms = 0;
  for (const uint32_t taken : {kBarBucketSlots / 2, kBarBucketSlots}) {
    const uint32_t rows = shape.buckets * taken;
    const uint32_t n = std::min(memory.sizes().table_keys, rows);
    const uint32_t sets = KeySets(context.api->properties().l2_bytes,
                                  memory.sizes().table_keys * (kTouchedBytes + t->stride));
    const Filled filled = {*t, taken, n, std::min(sets, rows / n)};
    const uint32_t named = filled.n * filled.sets;
    absl::Status status = FillBuckets(*context.api, *t, taken, context.stream);
    if (status.ok()) {
      status = FillRowNumbers(*context.api, named, FloorLog2(rows), 10,
                              buffers.numbers.as<uint32_t>(), context.stream);
    }
    if (status.ok()) {
      status =
          NameRows(*context.api, *t, taken, buffers.numbers.as<uint32_t>(), named,
                   buffers.slots.as<uint32_t>(), buffers.positions.as<uint64_t>(), context.stream);
    }
    if (!status.ok()) return status;
    const auto measured = MeasureCase(context, memory, buffers, c, filled, ms);
    if (!measured.ok()) return measured.status();
    ms = *measured;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FindBar(const BarContext& context) {
  const size_t cache_bytes = context.api->properties().l2_bytes;
  auto memory = BarMemory::Make(
      context, [cache_bytes](const BarSizes& sizes) { return Wanted(sizes, cache_bytes); });
  if (!memory.ok()) return memory.status();
  const BarSizes& sizes = (*memory)->sizes();
  ops::gpu::Arena* const arena = (*memory)->arena();
  auto table = arena->Allocate(TableBytes(sizes));
  const size_t named = NamedKeys(sizes, cache_bytes);
  auto positions = arena->AllocateArray<uint64_t>(named);
  auto numbers = arena->AllocateArray<uint32_t>(named);
  auto slots = arena->AllocateArray<uint32_t>(named);
  auto found = arena->AllocateArray<uint32_t>(sizes.table_keys);
  auto rows = arena->Allocate(size_t{sizes.table_keys} * kMostRowBytes);
  for (const absl::StatusOr<Buffer>* taken :
       {&table, &positions, &numbers, &slots, &found, &rows}) {
    if (!taken->ok()) return taken->status();
  }
  const Buffers buffers = {*std::move(table), *std::move(positions), *std::move(numbers),
                           *std::move(slots), *std::move(found),     *std::move(rows)};
  for (const Case& c : kCases) {
    const absl::Status status = MeasureTable(context, **memory, buffers, c);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace strata::gpu_check
