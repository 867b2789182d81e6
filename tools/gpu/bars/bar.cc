#include "tools/gpu/bars/bar.h"

#include <bit>

#include "absl/strings/str_cat.h"

namespace strata::gpu_check {

BarSizes TinySizes() {
  BarSizes sizes;
  sizes.table_bytes = size_t{1} << 20;
  sizes.batch_bytes = size_t{1} << 17;
  sizes.copy_bytes = size_t{1} << 16;
  sizes.keys = 3000;
  sizes.table_keys = 200;
  sizes.mlp_batch = 8;
  sizes.mlp_widths = {12, 16, 8, 1};
  sizes.checked_batch = 6;
  sizes.repetitions = 3;
  sizes.warm_ms = sizes.dlrm.warm_ms = 0;
  sizes.dlrm.batch = 32;
  sizes.dlrm.field_rows = 200;
  sizes.dlrm.dim = 16;
  sizes.dlrm.bottom = {16, 8};
  sizes.dlrm.shards = 2;
  sizes.dlrm.threads = 2;
  sizes.dlrm.warm_steps = 2;
  sizes.dlrm.windows = 2;
  sizes.dlrm.window_steps = 2;
  return sizes;
}

BarSizes BusyHostSizes(uint32_t batch) {
  BarSizes sizes = TinySizes();
  sizes.mlp_widths = {12, 8, 1};
  sizes.dlrm.batch = batch;
  sizes.dlrm.field_rows = uint64_t{5} * batch;
  sizes.dlrm.dim = 8;
  sizes.dlrm.bottom = {8};
  sizes.dlrm.shards = 16;
  sizes.dlrm.warm_steps = 12;
  sizes.dlrm.windows = 5;
  sizes.dlrm.window_steps = 8;
  return sizes;
}

absl::StatusOr<BarSizes> FitSizes(const BarSizes& sizes, size_t free_bytes,
                                  const std::function<size_t(const BarSizes&)>& wanted,
                                  std::string* note) {
  note->clear();
  BarSizes fitting = sizes;
  const size_t most = free_bytes / 10 * 9;
  for (uint32_t parts = 1; parts <= 1024; parts *= 2) {
    fitting.table_bytes = sizes.table_bytes / parts;
    fitting.batch_bytes = sizes.batch_bytes / parts;
    fitting.copy_bytes = sizes.copy_bytes / parts;
    if (wanted(fitting) > most) continue;
    if (parts > 1) {
      *note = absl::StrCat("1/", parts, " of the bar's size: ", free_bytes, " B are free");
    }
    return fitting;
  }
  return absl::ResourceExhaustedError(absl::StrCat(wanted(fitting), " bytes wanted at the least, ",
                                                   free_bytes, " bytes free on the device"));
}

uint32_t FloorLog2(uint64_t n) { return static_cast<uint32_t>(std::bit_width(n)) - 1; }

}  // namespace strata::gpu_check
