// What a bar is given: a device, or host threads in its place, and how large it may be. A bar
// measures cases one after the other and tells each as a line.
// Tested by tests/tools/gpu/bars/bars_test.cc, tests/tools/gpu/dlrm/bar_test.cc
#ifndef STRATA_TOOLS_GPU_BARS_BAR_H_
#define STRATA_TOOLS_GPU_BARS_BAR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/products/blas.h"
#include "tools/gpu/report/bar_line.h"

namespace strata::gpu_check {

struct DlrmSizes {
  uint32_t batch = 65536;         // examples
  uint64_t field_rows = 1257692;  // of each of the fields' tables: 32.7 M rows
  uint32_t fields = 26;
  uint32_t numeric = 13;
  uint32_t dim = 128;
  std::vector<uint32_t> bottom = {512, 256};  // hidden widths; the top's are those of mlp_widths
  uint32_t shards = 16;
  uint32_t threads = 0;      // that compute; 0: one for each core
  uint32_t warm_steps = 12;  // before the first window, at least
  double warm_ms = 300;      // and so long
  uint32_t windows = 5;      // of which the median counts
  uint32_t window_steps = 8;
};

struct BarSizes {
  size_t table_bytes = size_t{4} << 30;  // of rows that are read or updated in random order
  size_t batch_bytes = size_t{1} << 30;  // of rows that one call reads or writes
  size_t copy_bytes = size_t{1} << 30;   // of one copy, read and written
  uint32_t keys = 1000000;               // of a batch that is coalesced
  uint32_t table_keys = 1u << 20;        // of one call of find, or of find-or-insert
  uint32_t mlp_batch = 65536;            // examples
  std::vector<uint32_t> mlp_widths = {480, 1024, 1024, 512, 256, 1};
  uint32_t checked_batch = 64;  // examples of the products that are compared with the host's
  uint32_t repetitions = 11;    // the median counts
  double sample_ms = 1.0;       // calls are repeated until a sample takes about this long
  double warm_ms = 300;         // of work before a case is measured: clocks rise with it
  DlrmSizes dlrm;
};

// For host threads, where nothing is measured: a second or so for each bar.
BarSizes TinySizes();

// The same but for the dlrm bar: so many examples a batch, with the bar's fields and shards, and
// next to nothing in the layers. What a profiler then finds outside of kernels is what the host has
// to do in a step of that size.
BarSizes BusyHostSizes(uint32_t batch);

// The sizes halved (table, batch and copy alike) until what `wanted` says fits into nine tenths of
// `free_bytes`; `note` says so, or stays empty. kResourceExhausted: even 1/1024 of them does not.
absl::StatusOr<BarSizes> FitSizes(const BarSizes& sizes, size_t free_bytes,
                                  const std::function<size_t(const BarSizes&)>& wanted,
                                  std::string* note);

using OpenBlas =
    std::function<absl::StatusOr<std::unique_ptr<ops::gpu::Blas>>(ops::gpu::Arena* arena)>;

struct BarContext {
  ops::gpu::CudaApi* api = nullptr;
  ops::gpu::StreamHandle stream = nullptr;
  BarSizes sizes;
  double part_seconds = 90;  // after which nobody waits for the bar any more
  OpenBlas open_blas;
  std::function<void(const BarLine&)> tell;
};

using Bar = std::function<absl::Status(const BarContext&)>;

// The exponent of the largest power of two that is <= n. REQUIRES: n > 0.
uint32_t FloorLog2(uint64_t n);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_BARS_BAR_H_
