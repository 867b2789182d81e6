#include "ops/cuda/rows/coalesce.h"

#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/coalesce_sum.h"
#include "ops/cuda/kernel/kernel.h"
#include "ops/cuda/kernel/scan.h"
#include "ops/cuda/kernel/vector4.h"
#include "ops/cuda/rows/coalesce_rows.h"
#include "ops/inline.h"

namespace strata::ops::gpu {
namespace {

// out[i] = i.
struct FillOrdinals {
  static constexpr uint32_t kLanes = 1;
  uint32_t* out;
  uint32_t n;
  STRATA_HD_MEMBER uint64_t items() const { return n; }
  template <typename Group>
  STRATA_HD_MEMBER void operator()(const Group&, uint64_t i) const {
    out[i] = static_cast<uint32_t>(i);
  }
};

// Where runs of equal keys begin (ops/cuda/kernel/scan.h).
template <typename Key>
struct RunHeads {
  const Key* sorted;
  uint32_t n;
  Key* unique;
  uint32_t* first;
  uint32_t* count;

  STRATA_HD_MEMBER uint32_t items() const { return n; }
  STRATA_HD_MEMBER uint32_t value(uint32_t i) const {
    return i == 0 || sorted[i] != sorted[i - 1] ? 1 : 0;
  }
  STRATA_HD_MEMBER void emit(uint32_t i, uint32_t before, uint32_t head) const {
    if (head == 0) return;
    unique[before] = sorted[i];
    first[before] = i;
  }
  STRATA_HD_MEMBER void finish(uint32_t total) const {
    first[total] = n;
    *count = total;
  }
};

// Chunks of the runs that have more than one (ops/cuda/kernel/scan.h).
struct LongRuns {
  const uint32_t* first;
  const uint32_t* count;
  uint32_t* chunk_first;
  uint32_t* chunks;

  STRATA_HD_MEMBER uint32_t items() const { return *count; }
  STRATA_HD_MEMBER uint32_t value(uint32_t u) const {
    const uint32_t n = first[u + 1] - first[u];
    return n <= kCoalesceChunk ? 0 : (n + kCoalesceChunk - 1) / kCoalesceChunk;
  }
  STRATA_HD_MEMBER void emit(uint32_t u, uint32_t before, uint32_t) const {
    chunk_first[u] = before;
  }
  STRATA_HD_MEMBER void finish(uint32_t total) const {
    chunk_first[*count] = total;
    *chunks = total;
  }
};

// Rows of an array, one per feature (coalesce_rows.h).
struct StoredRows {
  const float* gradients;
  size_t stride;
  bool aligned;
  STRATA_HD_MEMBER Vector4 operator()(uint32_t feature, uint32_t, uint32_t column,
                                      uint32_t n) const {
    return LoadConst4(gradients + feature * stride + column, n, aligned);
  }
};

}  // namespace

absl::Status Coalescer::Each(const std::function<absl::Status(Buffer*, size_t)>& buffer) {
  const size_t n = options_.most_features, key = options_.key_bytes;
  const size_t quads = (size_t{options_.most_dim} + 3) / 4;
  absl::Status status =
      buffer(&partials_, PartialRows(options_.most_features) * quads * sizeof(Vector4));
  if (!status.ok() || !options_.groups) return status;
  size_t sort_bytes = 0;
  status = api_->SortScratchBytes(options_.most_features, options_.key_bytes, &sort_bytes);
  if (!status.ok()) return status;
  const std::initializer_list<std::pair<Buffer*, size_t>> wanted = {
      {&features_, n * 4},
      {&sorted_keys_, n * key},
      {&occurrences_, n * 4},
      {&unique_keys_, n * key},
      {&first_, (n + 1) * 4},
      {&chunk_first_, (n + 1) * 4},
      {&counts_, 8},
      {&tiles_, size_t{ScanTiles(options_.most_features)} * 4},
      {&sort_scratch_, sort_bytes},
  };
  for (const auto& [one, bytes] : wanted) {
    status = buffer(one, bytes);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> Coalescer::Bytes(CudaApi* api, const Options& options) {
  size_t sum = 0;
  const absl::Status status = Coalescer(api, options).Each([&sum](Buffer*, size_t bytes) {
    sum += ArenaBytes(bytes);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return sum;
}

absl::StatusOr<std::unique_ptr<Coalescer>> Coalescer::Create(CudaApi* api, Arena* arena,
                                                             const Options& options,
                                                             StreamHandle stream) {
  if (options.key_bytes != 4 && options.key_bytes != 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("keys of ", options.key_bytes, " bytes; they have 4 or 8"));
  }
  std::unique_ptr<Coalescer> coalescer(new Coalescer(api, options));
  absl::Status status = coalescer->Each([arena](Buffer* buffer, size_t bytes) {
    auto taken = arena->Allocate(bytes);
    if (!taken.ok()) return taken.status();
    *buffer = *std::move(taken);
    return absl::OkStatus();
  });
  if (status.ok() && options.groups) {
    status = LaunchOver(*api, "fill ordinals",
                        FillOrdinals{coalescer->features_.as<uint32_t>(), options.most_features},
                        options.most_features, stream);
  }
  if (!status.ok()) return status;
  return coalescer;
}

absl::Status Coalescer::Group(const void* keys, uint32_t features, uint32_t bits,
                              GroupedKeys* grouped, StreamHandle stream) {
  if (!options_.groups) {
    return absl::FailedPreconditionError("the coalescer was made for sums alone");
  }
  if (features == 0 || features > options_.most_features) {
    return absl::InvalidArgumentError(
        absl::StrCat(features, " features; the coalescer takes 1 to ", options_.most_features));
  }
  SortArguments sort;
  sort.keys = keys;
  sort.sorted_keys = sorted_keys_.as<void>();
  sort.values = features_.as<uint32_t>();
  sort.sorted_values = occurrences_.as<uint32_t>();
  sort.n = features;
  sort.key_bytes = options_.key_bytes;
  sort.bits = bits;
  sort.scratch = sort_scratch_.as<void>();
  sort.scratch_bytes = sort_scratch_.bytes();
  absl::Status status = api_->Sort(sort, stream);
  if (!status.ok()) return status;

  uint32_t* const count = counts_.as<uint32_t>();
  uint32_t* const tiles = tiles_.as<uint32_t>();
  uint32_t* const first = first_.as<uint32_t>();
  if (options_.key_bytes == 8) {
    status = Scan(*api_, "run heads",
                  RunHeads<uint64_t>{sorted_keys_.as<uint64_t>(), features,
                                     unique_keys_.as<uint64_t>(), first, count},
                  features, tiles, stream);
  } else {
    status = Scan(*api_, "run heads",
                  RunHeads<uint32_t>{sorted_keys_.as<uint32_t>(), features,
                                     unique_keys_.as<uint32_t>(), first, count},
                  features, tiles, stream);
  }
  if (!status.ok()) return status;
  grouped->keys = unique_keys_.as<void>();
  grouped->first = first;
  grouped->occurrences = occurrences_.as<uint32_t>();
  grouped->count = count;
  grouped->features = features;
  grouped->chunk_first = chunk_first_.as<uint32_t>();
  grouped->chunks = count + 1;
  return Scan(*api_, "long runs", LongRuns{first, count, chunk_first_.as<uint32_t>(), count + 1},
              features, tiles, stream);
}

absl::Status Coalescer::Sum(const GroupedKeys& grouped, uint32_t dim, const float* gradients,
                            size_t gradient_stride, float* sums, size_t sum_stride,
                            StreamHandle stream) {
  const StoredRows rows = {gradients, gradient_stride, IsAligned4(gradients, gradient_stride)};
  return CoalesceRowsOf(*api_, *this, grouped, rows, dim, sums, sum_stride, stream);
}

}  // namespace strata::ops::gpu
