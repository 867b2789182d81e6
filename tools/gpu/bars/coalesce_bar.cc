#include "tools/gpu/bars/coalesce_bar.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ops/counter_random.h"
#include "ops/cuda/rows/coalesce.h"
#include "tools/gpu/bars/bar_memory.h"
#include "tools/gpu/bars/fill.h"
#include "tools/gpu/bars/probe.h"

namespace strata::gpu_check {
namespace {

using ops::gpu::Buffer;
using ops::gpu::Coalescer;

constexpr uint32_t kDim = 64;

uint64_t KeyOf(uint64_t id, uint64_t seed) { return ops::MixBits(id + (seed << 32) + 1); }

uint32_t Below(uint64_t bits, uint32_t n) {
  return static_cast<uint32_t>(((bits >> 32) * n) >> 32);
}

void Shuffle(uint64_t seed, std::vector<uint64_t>* keys) {
  for (auto i = static_cast<uint32_t>(keys->size()); i > 1; --i) {
    std::swap((*keys)[i - 1], (*keys)[Below(ops::MixBits(seed ^ (uint64_t{i} << 20)), i)]);
  }
}

size_t Wanted(const BarSizes& sizes, size_t sort_bytes) {
  const size_t n = sizes.keys;
  // Keys, gradients, sums; and the coalescer's (coalesce.h), with its small pieces.
  return PieceBytes(n * 8) + 2 * PieceBytes(n * kDim * sizeof(float)) +
         n * (2 * 8 + 20 + kDim / 4) + PieceBytes(sort_bytes) + (size_t{1} << 20);
}

struct Case {
  std::string name;
  std::vector<uint64_t> keys;
  uint32_t unique;
  double most_ms;
};

struct Buffers {
  Buffer keys, gradients, sums;
};

absl::Status CheckUnique(const BarContext& context, const uint32_t* count, const Case& c) {
  uint32_t unique = 0;
  absl::Status status = context.api->CopyAsync(&unique, count, sizeof unique, context.stream);
  if (status.ok()) status = context.api->Synchronize(context.stream);
  if (status.ok() && unique != c.unique) {
    status = absl::InternalError(
        absl::StrCat(c.name, ": ", unique, " unique keys instead of ", c.unique));
  }
  return status;
}

absl::Status MeasureCase(const BarContext& context, const BarMemory& memory, const Buffers& buffers,
                         Coalescer* coalescer, const Case& c) {
  const auto n = static_cast<uint32_t>(c.keys.size());
  absl::Status status =
      context.api->CopyAsync(buffers.keys.as<void>(), c.keys.data(), n * 8ull, context.stream);
  if (status.ok()) status = context.api->Synchronize(context.stream);
  if (!status.ok()) return status;

  ops::gpu::GroupedKeys grouped;
  const Work work = [&] {
    absl::Status done = coalescer->Group(buffers.keys.as<void>(), n, 64, &grouped, context.stream);
    if (!done.ok()) return done;
    return coalescer->Sum(grouped, kDim, buffers.gradients.as<float>(), kDim,
                          buffers.sums.as<float>(), kDim, context.stream);
  };
  status = work();  // names the occurrences that the probe follows
  if (status.ok()) status = CheckUnique(context, grouped.count, c);
  if (!status.ok()) return status;

  ReadProbe probe;
  probe.table = buffers.gradients.as<float>();
  probe.quads = kDim / 4;
  probe.row_of = grouped.occurrences;
  probe.bags = n;
  probe.stored = c.unique;
  probe.out = buffers.sums.as<float>();

  BarLine line;
  line.bar = "coalesce";
  line.name = c.name;
  line.bytes =
      8.0 * n + static_cast<double>(n) * kDim * 4 + static_cast<double>(c.unique) * kDim * 4;
  line.operations = n;
  line.operation = "keys";
  line.most_ms = c.most_ms;
  return memory.Measure(line, work,
                        [&] { return ProbeReads(*context.api, probe, context.stream); });
}

}  // namespace

std::vector<uint64_t> DuplicatedKeys(uint32_t n, uint32_t unique, uint64_t seed) {
  std::vector<uint64_t> keys(n);
  for (uint32_t i = 0; i < n; ++i) {
    keys[i] = KeyOf(i < unique ? i : Below(ops::MixBits(seed + i), unique), seed);
  }
  Shuffle(seed, &keys);
  return keys;
}

std::vector<uint64_t> HalfOneKey(uint32_t n, uint64_t seed) {
  std::vector<uint64_t> keys(n);
  for (uint32_t i = 0; i < n; ++i) keys[i] = KeyOf(i < n / 2 ? 0 : i, seed);
  Shuffle(seed, &keys);
  return keys;
}

absl::Status CoalesceBar(const BarContext& context) {
  size_t sort_bytes = 0;
  absl::Status status =
      context.api->SortScratchBytes(context.sizes.keys, sizeof(uint64_t), &sort_bytes);
  if (!status.ok()) return status;
  auto memory = BarMemory::Make(
      context, [sort_bytes](const BarSizes& sizes) { return Wanted(sizes, sort_bytes); });
  if (!memory.ok()) return memory.status();
  ops::gpu::Arena* const arena = (*memory)->arena();
  const uint32_t n = (*memory)->sizes().keys;
  auto keys = arena->AllocateArray<uint64_t>(n);
  auto gradients = arena->AllocateArray<float>(size_t{n} * kDim);
  auto sums = arena->AllocateArray<float>(size_t{n} * kDim);
  for (const absl::StatusOr<Buffer>* taken : {&keys, &gradients, &sums}) {
    if (!taken->ok()) return taken->status();
  }
  const Buffers buffers = {*std::move(keys), *std::move(gradients), *std::move(sums)};
  auto coalescer = Coalescer::Create(context.api, arena, {n, kDim, 8}, context.stream);
  if (!coalescer.ok()) return coalescer.status();
  status = FillFloats(*context.api, uint64_t{n} * kDim, -1.0f, 1.0f, 6,
                      buffers.gradients.as<float>(), context.stream);

  const uint32_t unique = n - n / 10 * 3;
  const Case cases[] = {
      {absl::StrCat(n, " keys, 30 % duplicates, dim ", kDim), DuplicatedKeys(n, unique, 7), unique,
       0.5},
      {absl::StrCat(n, " keys, half of them one, dim ", kDim), HalfOneKey(n, 8), n - n / 2 + 1,
       1.0},
  };
  for (const Case& c : cases) {
    if (status.ok()) status = MeasureCase(context, **memory, buffers, coalescer->get(), c);
  }
  return status;
}

}  // namespace strata::gpu_check
