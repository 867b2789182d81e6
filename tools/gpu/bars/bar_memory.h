// A bar's memory on the device, the copy that it is held against, and how a case is measured.
// Tested by tests/tools/gpu/bars/bars_test.cc
#ifndef STRATA_TOOLS_GPU_BARS_BAR_MEMORY_H_
#define STRATA_TOOLS_GPU_BARS_BAR_MEMORY_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/cuda/api/memory.h"
#include "tools/gpu/bars/bar.h"
#include "tools/gpu/bars/timing.h"

namespace strata::gpu_check {

// Gone after the work that uses it is done. One thread.
class BarMemory {
 public:
  // Takes what `wanted` says of the sizes that fit (bar.h), and two buffers for the copy. `context`
  // outlives it.
  static absl::StatusOr<std::unique_ptr<BarMemory>> Make(
      const BarContext& context, const std::function<size_t(const BarSizes&)>& wanted);

  const BarSizes& sizes() const { return sizes_; }
  const std::string& note() const { return note_; }
  ops::gpu::Arena* arena() const { return arena_.get(); }

  // Measures work, probe and copy in turn; the line with their times and with note(). Without a
  // probe where that is null. Waits.
  absl::StatusOr<BarLine> Time(BarLine line, const Work& work, const Work& probe) const;
  // The same, and tells the line.
  absl::Status Measure(BarLine line, const Work& work, const Work& probe) const;

 private:
  explicit BarMemory(const BarContext& context) : context_(context) {}

  const BarContext& context_;
  BarSizes sizes_;
  std::string note_;
  std::unique_ptr<ops::gpu::Arena> arena_;
  ops::gpu::Buffer copy_from_, copy_to_;
};

// The bytes that a piece of `bytes` takes of an arena.
size_t PieceBytes(size_t bytes);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_BARS_BAR_MEMORY_H_
