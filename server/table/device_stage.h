// Rows on their way between the host's memory and that of a table's device, for messages whose
// values lie there (proto/wire/device_values.h).
// Tested by tests/server/table/shard_table_device_test.cc
#ifndef STRATA_SERVER_TABLE_DEVICE_STAGE_H_
#define STRATA_SERVER_TABLE_DEVICE_STAGE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "storage/row/device_rows.h"

namespace strata::server {

// Moves rows of `dim` floats in pieces, each of which is one call of the device and at most so many
// bytes (or a row). Touched by the shard's executor only. Errors are the device's.
class DeviceStage {
 public:
  static constexpr size_t kBytes = size_t{4} << 20;

  // device: outlives this; null: nothing is ever moved. max_batch: of its table.
  DeviceStage(storage::DeviceRows* device, size_t max_batch, size_t piece_bytes = kBytes)
      : device_(device), max_batch_(max_batch), piece_bytes_(piece_bytes) {}

  // fill(k, row): writes the row that goes to there + numbers[k] * dim. numbers: distinct.
  using Fill = std::function<void(size_t k, float* row)>;
  absl::Status Upload(std::span<const uint32_t> numbers, uint32_t dim, float* there,
                      const Fill& fill);

  // take(first, n, rows): rows (n, dim) are those of numbers[first] .. numbers[first + n - 1],
  // until it returns.
  using Take = std::function<void(size_t first, size_t n, const float* rows)>;
  absl::Status Download(const float* there, std::span<const uint32_t> numbers, uint32_t dim,
                        const Take& take);

  // All of `there` (n, dim) to `rows`, whole batches at a time.
  absl::Status DownloadAll(const float* there, size_t n, uint32_t dim, float* rows);

 private:
  size_t PieceRows(uint32_t dim) const;

  storage::DeviceRows* const device_;
  const size_t max_batch_, piece_bytes_;
  std::vector<float> rows_;          // a piece
  std::vector<uint32_t> ascending_;  // 0, 1, ..: of DownloadAll
};

}  // namespace strata::server

#endif  // STRATA_SERVER_TABLE_DEVICE_STAGE_H_
