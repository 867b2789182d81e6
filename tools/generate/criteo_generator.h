// Criteo-shaped data with known quality: rows whose labels a planted model draws.
#ifndef STRATA_TOOLS_GENERATE_CRITEO_GENERATOR_H_
#define STRATA_TOOLS_GENERATE_CRITEO_GENERATOR_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata {

struct CriteoGeneratorOptions {
  uint64_t rows = 0;
  // Row r is a pure function of (seed, vocabulary, zipf, r): rows 0 .. N-1 and N .. N+M-1 make a
  // train and a held-out file of one teacher.
  uint64_t first_row = 0;
  uint64_t vocabulary = 100'000;  // ids over all 26 fields, at least 260
  double zipf = 1.05;             // exponent of every field's ids, in (0, 4]
  uint64_t seed = 1;
};

// Ids of each category field: Criteo's own cardinalities scaled to `vocabulary` in all. From two
// million on, the fields with over 100,000 ids share what the others leave in proportion; below, no
// field has more than a common cap.
std::array<uint64_t, 26> CriteoFieldSizes(uint64_t vocabulary);

// What is known of a row.
struct GeneratedRow {
  double probability = 0;  // of label 1, by the teacher
  bool label = false;
};

// Makes rows. Immutable; any thread.
//
// The teacher's logit is a constant plus three parts, each scaled to a fixed standard deviation:
// first order (a weight per id and a slope per integer's logarithm), pairwise (the factorisation
// machine of Rendle, ICDM 2010, with 4 factors per id) and nonlinear (soft steps of the pooled
// factors and of integers). Weights and factors shrink with the id's rank, so that what is rare
// matters little and what matters can be learned. The constant makes about one label in four a 1.
class CriteoGenerator {
 public:
  // INVALID_ARGUMENT names the option. `rows` is not used.
  static absl::StatusOr<std::unique_ptr<CriteoGenerator>> Make(
      const CriteoGeneratorOptions& options);
  virtual ~CriteoGenerator() = default;

  // Appends the row as a Criteo line with its newline.
  virtual GeneratedRow AppendRow(uint64_t row, std::string* out) const = 0;
};

struct CriteoGeneratorResult {
  uint64_t rows = 0;
  uint64_t bytes = 0;
  uint64_t positives = 0;
  // Of the teacher's probabilities against the labels: the best that any model can expect. Exact
  // over all rows up to kAucRows, else over a uniform sample of so many.
  double teacher_auc = 0;
  double teacher_logloss = 0;  // mean over all rows
  uint64_t auc_rows = 0;
  bool to_device = false;  // the rows went to standard output, a device or a pipe
};

// Memory: 8 bytes a row for the AUC, at most 32 MiB.
inline constexpr uint64_t kAucRows = uint64_t{4} << 20;

// Writes rows first_row .. first_row + rows - 1 to `path`: into "PATH.part", renamed when complete;
// into a device, a pipe or "-", standard output, as they come.
// `progress`, where given, is called with the rows done so far every few thousand rows.
// INVALID_ARGUMENT names the option; others are the file system's, with the path; the part file is
// removed.
absl::StatusOr<CriteoGeneratorResult> GenerateCriteo(
    const CriteoGeneratorOptions& options, const std::string& path,
    const std::function<void(uint64_t rows_done)>& progress = nullptr);

}  // namespace strata

#endif  // STRATA_TOOLS_GENERATE_CRITEO_GENERATOR_H_
