#include "storage/gpu/table.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "storage/gpu/rows.h"
#include "storage/gpu/shape.h"

namespace strata::storage::gpu {

absl::StatusOr<std::unique_ptr<RowTable>> MakeGpuTable(const GpuTableOptions& options,
                                                       std::unique_ptr<RowTable> below,
                                                       const GpuBackendFactory& make_backend) {
  if (below == nullptr) return absl::InvalidArgumentError("a GPU table needs a table below");
  if (options.last < options.first) {
    return absl::InvalidArgumentError(absl::StrCat("the range of positions ends at ",
                                                   options.last.value, ", before its start ",
                                                   options.first.value));
  }
  auto shape = GpuShapeFor(options.hbm_limit_bytes, options.row_bytes, options.bucket_slots,
                           options.eviction);
  if (!shape.ok()) return shape.status();
  auto backend = make_backend(*shape);
  if (!backend.ok()) return backend.status();
  return std::make_unique<GpuTable>(options.first, options.last, *shape, std::move(below),
                                    *std::move(backend));
}

}  // namespace strata::storage::gpu
