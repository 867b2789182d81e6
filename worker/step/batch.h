// Parsed examples.
// Tested by tests/worker/data/reading/file_batch_source_test.cc
// Tested by tests/worker/data/formats/parsers_test.cc
#ifndef STRATA_WORKER_STEP_BATCH_H_
#define STRATA_WORKER_STEP_BATCH_H_

#include <cstdint>
#include <vector>

#include "worker/step/key_runs.h"
#include "worker/step/shared_keys.h"

namespace strata {

// A minibatch of one lane. Features of an example stand in field order.
struct Batch {
  uint32_t size = 0;              // examples
  uint32_t numeric = 0;           // numeric inputs of each example
  uint32_t tasks = 1;             // labels of each example
  std::vector<float> labels;      // (size, tasks); no number: the example has none for that task
  std::vector<float> weights;     // (size), multiples of kWeightUnit; or empty: all weigh 1
  std::vector<float> dense;       // (size, numeric)
  std::vector<uint32_t> offsets;  // (size + 1): example i has features offsets[i] .. offsets[i+1]-1
  std::vector<uint64_t> keys;     // (offsets[size])
  std::vector<float> values;      // (offsets[size]), or empty when every value is 1
  // (offsets[size]): field of each feature, ascending within an example, below the index's count of
  // fields; or empty when the ordinal of a feature within its example is its field. The features of
  // one field are pooled to one embedding, the sum of value times row (mean pooling comes as values
  // of 1 / count, or weight / sum of weights), or where the job says so the greatest of each
  // element, before a model looks at it; but not those of a sequence.
  std::vector<uint32_t> fields;
  // Fields that are not pooled: where a sequence begins among the features, and how many values it
  // has, 0 to the field's maxLength. A batch holds no more than these values: nothing pads them, so
  // a model reads `length` of them and has nothing to mask. The value at position p of a sequence,
  // from 0, the oldest that was kept, is feature first + p.
  uint32_t sequences = 0;                 // of each example, in the order of their fields
  std::vector<uint32_t> sequence_first;   // (size, sequences)
  std::vector<uint32_t> sequence_length;  // (size, sequences)
  uint64_t bad_lines = 0;                 // lines of this batch that were skipped

  void Clear() {
    size = numeric = 0;
    tasks = 1;
    bad_lines = 0;
    labels.clear();
    weights.clear();
    dense.clear();
    offsets.assign(1, 0);
    keys.clear();
    values.clear();
    fields.clear();
    sequences = 0;
    sequence_first.clear();
    sequence_length.clear();
  }
};

// How much is read into a batch: at most so many lines, up to the one with which it has so many
// features, but at least the `least` first ones whatever they have.
struct BatchLimit {
  uint64_t lines = 0;
  uint64_t features = ~uint64_t{0};
  uint64_t least = 1;
};

// The distinct keys of one or more batches, ready to pull and to push. What makes a key is its
// table and its number: two tables may have the same numbers.
struct RoutedKeys {
  SharedKeys keys;                  // (unique), ascending by table, then by position
  SharedKeys positions;             // (unique)
  KeyRuns runs;                     // of keys, by table
  std::vector<uint32_t> unique_of;  // (features of the batch): index into keys
  // Where each unique key occurs, in batch order: occurrences[first[u] .. first[u+1]-1].
  std::vector<uint32_t> first;        // (unique + 1)
  std::vector<uint32_t> occurrences;  // (features): feature index
};

}  // namespace strata

#endif  // STRATA_WORKER_STEP_BATCH_H_
