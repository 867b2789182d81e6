#include "tools/gpu/bars/bar_memory.h"

#include <utility>
#include <vector>

namespace strata::gpu_check {

size_t PieceBytes(size_t bytes) { return (bytes / 256 + 1) * 256; }

absl::StatusOr<std::unique_ptr<BarMemory>> BarMemory::Make(
    const BarContext& context, const std::function<size_t(const BarSizes&)>& wanted) {
  size_t free_bytes = 0, total_bytes = 0;
  absl::Status status = context.api->MemoryInfo(&free_bytes, &total_bytes);
  if (!status.ok()) return status;
  const auto all = [&wanted](const BarSizes& sizes) {
    return wanted(sizes) + 2 * PieceBytes(sizes.copy_bytes);
  };
  std::unique_ptr<BarMemory> memory(new BarMemory(context));
  auto sizes = FitSizes(context.sizes, free_bytes, all, &memory->note_);
  if (!sizes.ok()) return sizes.status();
  memory->sizes_ = *sizes;
  auto arena = ops::gpu::Arena::Create(context.api, ops::gpu::MemoryKind::kDevice, all(*sizes),
                                       "a bar's memory");
  if (!arena.ok()) return arena.status();
  memory->arena_ = *std::move(arena);
  for (ops::gpu::Buffer* buffer : {&memory->copy_from_, &memory->copy_to_}) {
    auto taken = memory->arena_->Allocate(sizes->copy_bytes);
    if (!taken.ok()) return taken.status();
    *buffer = *std::move(taken);
    status = context.api->FillAsync(buffer->as<void>(), 0, buffer->bytes(), context.stream);
    if (!status.ok()) return status;
  }
  return memory;
}

absl::StatusOr<BarLine> BarMemory::Time(BarLine line, const Work& work, const Work& probe) const {
  std::vector<Work> works = {work, [this] {
                               return context_.api->CopyAsync(copy_to_.as<void>(),
                                                              copy_from_.as<void>(),
                                                              copy_to_.bytes(), context_.stream);
                             }};
  if (probe) works.push_back(probe);
  const auto ms = MedianMs(context_.api, context_.stream, works,
                           {sizes_.repetitions, sizes_.sample_ms, sizes_.warm_ms});
  if (!ms.ok()) return ms.status();
  line.ms = (*ms)[0];
  const double copied = 2.0 * static_cast<double>(copy_to_.bytes());
  line.copy_bytes_per_s = (*ms)[1] > 0 ? copied / ((*ms)[1] * 1e-3) : 0;
  if (probe) line.probe_ms = (*ms)[2];
  if (!note_.empty()) line.note = line.note.empty() ? note_ : line.note + "; " + note_;
  return line;
}

absl::Status BarMemory::Measure(BarLine line, const Work& work, const Work& probe) const {
  const auto timed = Time(std::move(line), work, probe);
  if (timed.ok()) context_.tell(*timed);
  return timed.status();
}

}  // namespace strata::gpu_check
