// Sums of the gradients of keys that occur several times in a batch, on a device: the unique keys
// ascending, and for each the sum over its occurrences in the order of EXACT.md rule 6, to the bit
// of CoalesceRows (ops/coalesce.h). Keys are sorted by a library (integers only); the sums are
// ours. A key with many occurrences is summed by many threads: chunks of 32 side by side, then
// levels of the tree.
#ifndef STRATA_OPS_CUDA_ROWS_COALESCE_H_
#define STRATA_OPS_CUDA_ROWS_COALESCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/cuda/api/api.h"
#include "ops/cuda/api/memory.h"

namespace strata::ops::gpu {

// The unique keys of a batch and where each occurs, in device memory; u < *count.
struct GroupedKeys {
  const void* keys = nullptr;             // (features) of key_bytes; ascending
  const uint32_t* first = nullptr;        // (features + 1): key u's first occurrence
  const uint32_t* occurrences = nullptr;  // (features): of key u, ascending, first[u] .. first[u+1]
  const uint32_t* count = nullptr;        // unique keys
  uint32_t features = 0;
  // Runs of more than one chunk: key u's chunks are chunk_first[u] .. chunk_first[u + 1] - 1.
  const uint32_t* chunk_first = nullptr;  // (features + 1)
  const uint32_t* chunks = nullptr;       // of all keys
};

// Memory for batches of up to most_features and rows of up to most_dim; one batch at a time, on one
// stream. Immutable but for what stands in its memory: a graph may hold its work.
class Coalescer {
 public:
  struct Options {
    uint32_t most_features = 0;
    uint32_t most_dim = 0;   // of Sum
    uint32_t key_bytes = 8;  // 4 or 8: unsigned integers
    bool groups = true;      // false: for sums over keys that were grouped elsewhere; takes
                             // most_features x most_dim / 4 bytes
  };
  // Takes about most_features x (2 key_bytes + 20 + most_dim / 4) bytes of `arena`, and gives
  // `stream` a kernel that the first batch must come after.
  static absl::StatusOr<std::unique_ptr<Coalescer>> Create(CudaApi* api, Arena* arena,
                                                           const Options& options,
                                                           StreamHandle stream);

  // What Create takes of an arena, to the byte.
  static absl::StatusOr<size_t> Bytes(CudaApi* api, const Options& options);

  // keys: (features) in device memory, of which the low `bits` bits differ. What `grouped` names
  // is valid until the next Group. Asynchronous.
  absl::Status Group(const void* keys, uint32_t features, uint32_t bits, GroupedKeys* grouped,
                     StreamHandle stream);

  // sums row u (at u * sum_stride, dim floats) = sum of gradients row f (at f * gradient_stride)
  // over u's occurrences f, u < *grouped.count. Asynchronous.
  absl::Status Sum(const GroupedKeys& grouped, uint32_t dim, const float* gradients,
                   size_t gradient_stride, float* sums, size_t sum_stride, StreamHandle stream);

  // Partial sums, for CoalesceRowsOf (coalesce_rows.h): (PartialRows(most_features), quads of
  // most_dim).
  float* partials() const { return partials_.as<float>(); }
  uint32_t most_dim() const { return options_.most_dim; }

 private:
  Coalescer(CudaApi* api, const Options& options) : api_(api), options_(options) {}
  // The buffers and their bytes.
  absl::Status Each(const std::function<absl::Status(Buffer*, size_t)>& buffer);

  CudaApi* const api_;
  const Options options_;
  Buffer features_;                   // (most_features): 0, 1, 2...
  Buffer sorted_keys_, occurrences_;  // (most_features)
  Buffer unique_keys_;                // (most_features)
  Buffer first_, chunk_first_;        // (most_features + 1)
  Buffer counts_;                     // unique keys, chunks
  Buffer tiles_;                      // (ScanTiles(most_features))
  Buffer partials_;
  Buffer sort_scratch_;
};

}  // namespace strata::ops::gpu

#endif  // STRATA_OPS_CUDA_ROWS_COALESCE_H_
