// What an estimate of memory must know of a job's training data.
#ifndef STRATA_TOOLS_CLI_DATA_DATA_MEASURE_H_
#define STRATA_TOOLS_CLI_DATA_DATA_MEASURE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/strata/job.pb.h"
#include "worker/step/feature_counts.h"

namespace strata {

struct DataMeasure {
  uint64_t lines = 0;
  uint64_t line_bytes = 0;  // on average
  // On average over those lines of a task of the index that are longest.
  uint64_t task_line_bytes = 0;
  uint32_t fields = 0;  // DataShape
  uint32_t numeric = 0;
  double features_per_example = 0;
  // The most that so many lines have which lie behind each other in the files.
  uint64_t features_per_batch = 0;
  FeatureCounts of_lines;      // training and held-out ones
  bool pooled = false;         // some field of an example has several features, but for sequences
  uint64_t eval_lines = 0;     // held-out lines
  uint64_t distinct_keys = 0;  // DistinctCounter's estimate
  // Distinct keys of one batch, of a worker's lanes' batches and of all lanes' batches: the most
  // over windows of so many lines of the files, from the first to the last.
  uint64_t keys_per_batch = 0;
  uint64_t keys_per_push = 0;
  uint64_t keys_per_step = 0;
  // Asynchronous modes: of the batches that a lane pulls for at once, likewise; and of a lane's
  // share of the lines: of the first of the files.
  uint64_t batches_per_pull = 1;
  uint64_t keys_per_pull = 0;
  uint64_t keys_of_lane = 0;
  // The same by number of the table, where there are several hashed ones.
  struct OfTable {
    uint64_t rows = 0;
    uint64_t per_batch = 0;
    uint64_t per_push = 0;
    uint64_t per_step = 0;
  };
  std::vector<OfTable> of_table;
};

// Reads the training files and the held-out ones of a resolved job once, whole. Errors are those of
// the index pass and of bad lines.
absl::StatusOr<DataMeasure> MeasureData(const JobSpec& spec);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DATA_DATA_MEASURE_H_
