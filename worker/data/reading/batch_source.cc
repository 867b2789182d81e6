#include "worker/data/reading/batch_source.h"

#include "absl/strings/str_cat.h"

namespace strata {

absl::StatusOr<uint64_t> ReadIndexedLines(BatchSource* source, uint64_t first, uint64_t lines,
                                          const BatchLimit& most, Batch* out) {
  absl::StatusOr<uint64_t> read = source->ReadLines(first, most, out);
  if (!read.ok() || *read > 0) return read;
  return absl::InternalError(absl::StrCat("reading stopped after ", first, " of the ", lines,
                                          " lines that were indexed, which is an error of this "
                                          "program; submit the job again"));
}

}  // namespace strata
