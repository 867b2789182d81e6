// How large the dlrm bar's job may be on a device and its host, and how many servers it has.
#ifndef STRATA_TOOLS_GPU_DLRM_SIZES_H_
#define STRATA_TOOLS_GPU_DLRM_SIZES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/gpu/bars/bar.h"
#include "tools/gpu/dlrm/spec.h"

namespace strata::gpu_check {

// Slots in HBM, of the rows, so that all rows are there: buckets are filled by a hash, and at two
// thirds of their slots one in some thousands is full.
inline constexpr double kSlotsForAllRows = 1.5;

// With the hidden widths of `top` (inputs, hidden, outputs); all rows in HBM, one server.
DlrmSpec DlrmSpecOf(const DlrmSizes& sizes, const std::vector<uint32_t>& top);

// What the job takes at most while it trains: tables, what their calls need, the worker's step, and
// the rows and gradients of two steps between server and worker. Estimates, some too large.
struct DlrmBytes {
  uint64_t device = 0;
  uint64_t host = 0;
};
absl::StatusOr<DlrmBytes> DlrmBytesOf(const DlrmSizes& sizes, const std::vector<uint32_t>& top);

// Rows and batch halved until the job fits into nine tenths of what is free; `note` says so, or
// stays empty. RESOURCE_EXHAUSTED: even 1/1024 of them does not.
absl::StatusOr<DlrmSizes> FitDlrm(const DlrmSizes& sizes, const std::vector<uint32_t>& top,
                                  const DlrmBytes& free, std::string* note);

// The most steps before the first window, of a case that wants so many examples a second: what
// sizes.warm_ms may take at one and a half times that speed, at least sizes.warm_steps. No more
// than kMostWarmSteps else: the batches of all of them are made before.
inline constexpr uint32_t kMostWarmSteps = 128;
uint32_t MostWarmSteps(const DlrmSizes& sizes, double examples_per_s);

// Bytes of memory that the host can give this process.
uint64_t FreeHostBytes();

// The fewest servers, a power of two that is at most sizes.shards, whose replies stay below the
// limit of a message when `distinct` rows and the dense part go in them.
uint32_t ServersForMessages(const DlrmSizes& sizes, uint64_t distinct, uint64_t dense_bytes);

}  // namespace strata::gpu_check

#endif  // STRATA_TOOLS_GPU_DLRM_SIZES_H_
