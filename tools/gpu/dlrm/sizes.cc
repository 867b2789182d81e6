#include "tools/gpu/dlrm/sizes.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/cuda/products/blas.h"
#include "proto/job/job_spec.h"
#include "proto/wire/message_limits.h"
#include "storage/row/layout.h"
#include "worker/device/step.h"

namespace strata::gpu_check {
namespace {

// Of a shard's table, for its calls (storage/gpu/device/memory.h), on either side.
constexpr uint64_t kCallBytes = uint64_t{12} << 20;
// Of a row in DRAM: its index, and what grows in steps.
constexpr double kDramOverhead = 1.3;
// Copies of a step's rows or gradients that may be there: of two steps each between server and
// worker, and what rows weighed before the last one or two.
constexpr uint64_t kStepsUnderWay = 6;
// Shards have different numbers of keys, by chance.
constexpr double kSkew = 1.02;

// A number in a file's line that begins with `name`; 0: there is none.
uint64_t NumberIn(const char* path, const std::string& name) {
  std::ifstream in(path);
  std::string word;
  while (in >> word) {
    uint64_t number = 0;
    if (word == name && in >> number) return number;
  }
  return 0;
}

}  // namespace

DlrmSpec DlrmSpecOf(const DlrmSizes& sizes, const std::vector<uint32_t>& top) {
  DlrmSpec spec;
  spec.fields = sizes.fields;
  spec.numeric = sizes.numeric;
  spec.dim = sizes.dim;
  spec.bottom = sizes.bottom;
  spec.top.assign(top.begin() + 1, top.end() - 1);
  spec.rows = sizes.field_rows * sizes.fields;
  spec.hbm_slots = kSlotsForAllRows;
  spec.batch = sizes.batch;
  spec.shards = sizes.shards;
  spec.threads =
      sizes.threads > 0 ? sizes.threads : std::max(1u, std::thread::hardware_concurrency());
  return spec;
}

absl::StatusOr<DlrmBytes> DlrmBytesOf(const DlrmSizes& sizes, const std::vector<uint32_t>& top) {
  DlrmSpec spec = DlrmSpecOf(sizes, top);
  const auto job = MakeDlrmJob(spec);
  if (!job.ok()) return job.status();
  const auto tables = DlrmTables(spec, *job);
  if (!tables.ok()) return tables.status();
  const auto hbm = ParseBytes(job->spec().storage().gpu_bytes_per_server());
  if (!hbm.ok()) return hbm.status();
  const uint32_t features = sizes.batch * sizes.fields;
  const device::StepBytes step = device::DeviceStepBytes(*tables, ops::gpu::MatmulPrecision::kBf16,
                                                         {sizes.batch, features, features, 0},
                                                         ops::gpu::Blas::Options::kBytes);
  const uint64_t between = kStepsUnderWay * features * sizes.dim * sizeof(float);
  const uint32_t warm =
      sizes.warm_ms > 0 ? std::max(sizes.warm_steps, kMostWarmSteps) : sizes.warm_steps;
  const uint64_t steps = warm + sizes.windows * (sizes.window_steps + 1) + 1;
  const uint64_t batch_bytes = sizes.batch * (8 * sizes.fields + 4 * sizes.numeric + 8);
  const size_t row_bytes = storage::RowLayout::For(tables->tables[0]).row_bytes();
  DlrmBytes bytes;
  bytes.device = *hbm + sizes.shards * kCallBytes + step.device + between;
  bytes.host = static_cast<uint64_t>(static_cast<double>(spec.rows * row_bytes) * kDramOverhead) +
               sizes.shards * kCallBytes + step.pinned + step.pinned_rows + between +
               steps * batch_bytes;
  return bytes;
}

absl::StatusOr<DlrmSizes> FitDlrm(const DlrmSizes& sizes, const std::vector<uint32_t>& top,
                                  const DlrmBytes& free, std::string* note) {
  note->clear();
  DlrmBytes wanted;
  for (uint32_t parts = 1; parts <= 1024; parts *= 2) {
    DlrmSizes fitting = sizes;
    fitting.field_rows = std::max<uint64_t>(1, sizes.field_rows / parts);
    fitting.batch = std::max(1u, sizes.batch / parts);
    const auto bytes = DlrmBytesOf(fitting, top);
    if (!bytes.ok()) return bytes.status();
    wanted = *bytes;
    if (wanted.device > free.device / 10 * 9 || wanted.host > free.host / 10 * 9) continue;
    if (parts > 1) {
      *note = absl::StrCat("1/", parts, " of the bar's size: ", free.device,
                           " B are free on the device, ", free.host, " B on the host");
    }
    return fitting;
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      wanted.device, " bytes of the device and ", wanted.host, " of the host wanted at the least; ",
      free.device, " and ", free.host, " are free"));
}

uint32_t MostWarmSteps(const DlrmSizes& sizes, double examples_per_s) {
  constexpr double kFaster = 1.5;
  const double steps = std::ceil(kFaster * sizes.warm_ms * 1e-3 * examples_per_s / sizes.batch);
  return std::max(sizes.warm_steps, static_cast<uint32_t>(std::min<double>(steps, kMostWarmSteps)));
}

uint64_t FreeHostBytes() {
  const uint64_t available = NumberIn("/proc/meminfo", "MemAvailable:") * 1024;
  // Of a container; "max" is no number.
  std::ifstream limit_file("/sys/fs/cgroup/memory.max"), used_file("/sys/fs/cgroup/memory.current");
  uint64_t limit = 0, used = 0;
  if (limit_file >> limit && used_file >> used && limit > used) {
    return available == 0 ? limit - used : std::min(available, limit - used);
  }
  return available;
}

uint32_t ServersForMessages(const DlrmSizes& sizes, uint64_t distinct, uint64_t dense_bytes) {
  const double rows = static_cast<double>(distinct * sizes.dim * sizeof(float)) * kSkew;
  uint32_t servers = 1;
  while (servers * 2 <= sizes.shards && rows / servers + static_cast<double>(dense_bytes) >
                                            static_cast<double>(kMaxMessageBytes)) {
    servers *= 2;
  }
  return servers;
}

}  // namespace strata::gpu_check
