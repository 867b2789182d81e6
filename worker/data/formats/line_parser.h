// One physical line of input to one example.
// Tested by tests/worker/data/formats/parsers_test.cc
// Tested by tests/worker/data/formats/formats_test.cc
#ifndef STRATA_WORKER_DATA_FORMATS_LINE_PARSER_H_
#define STRATA_WORKER_DATA_FORMATS_LINE_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "worker/step/batch.h"

namespace strata {

// A longer line stops the job whatever maxBadLines says: it is not what these formats hold.
inline constexpr size_t kMaxLineBytes = size_t{16} << 20;

enum class LineOutcome : uint8_t {
  kExample,  // appended to the batch
  kBlank,    // nothing on it; not counted
  kBad,      // the batch is unchanged, the error says why
};

// Whether a line says what is to be predicted.
enum class Labels : uint8_t {
  kRequired,  // to learn from; of spec.labels each may be empty
  kOptional,  // to be scored: a label that is not there is no number
};

struct LineError {
  uint64_t column = 1;  // byte of the line, from 1
  std::string reason;
};

// Parses lines of one format. Immutable: any thread, many at once.
class LineParser {
 public:
  virtual ~LineParser() = default;

  // Begins a batch: empties it and sets its number of numeric inputs.
  void Start(Batch* batch) const;

  // `line` has no newline; one carriage return at its end is taken off. REQUIRES: Start(batch).
  LineOutcome Parse(absl::string_view line, Batch* batch, LineError* error) const;

  // Ends a batch: values that are all 1, and fields that are all the ordinal of their feature, are
  // dropped, as Batch says.
  static void Finish(Batch* batch);

  // Numeric inputs of every example.
  virtual uint32_t numeric() const = 0;
  // Sequences of every example.
  virtual uint32_t sequences() const { return 0; }
  // Labels of every example.
  virtual uint32_t tasks() const { return 1; }

 private:
  // As Parse, without a carriage return or NUL in `line`. On kBad, `batch` must be as it was.
  virtual LineOutcome ParseExample(absl::string_view line, Batch* batch,
                                   LineError* error) const = 0;
};

// Where a batch ended before an example, to take back what a bad line left.
class BatchMark {
 public:
  explicit BatchMark(const Batch& batch)
      : dense_(batch.dense.size()),
        keys_(batch.keys.size()),
        values_(batch.values.size()),
        fields_(batch.fields.size()),
        labels_(batch.labels.size()),
        weights_(batch.weights.size()),
        sequences_(batch.sequence_first.size()) {}

  void Restore(Batch* batch) const {
    batch->dense.resize(dense_);
    batch->keys.resize(keys_);
    batch->values.resize(values_);
    batch->fields.resize(fields_);
    batch->labels.resize(labels_);
    batch->weights.resize(weights_);
    batch->sequence_first.resize(sequences_);
    batch->sequence_length.resize(sequences_);
  }

 private:
  size_t dense_;
  size_t keys_;
  size_t values_;
  size_t fields_;
  size_t labels_;
  size_t weights_;
  size_t sequences_;
};

// Fills `error`; always kBad, so that a parser can return it.
LineOutcome BadLine(size_t column, std::string reason, LineError* error);

// Completes an example whose keys, numbers and labels are already in the batch.
inline void EndExample(Batch* batch) {
  batch->offsets.push_back(static_cast<uint32_t>(batch->keys.size()));
  ++batch->size;
}

// The same of one whose one label is not.
inline void AppendExample(float label, Batch* batch) {
  batch->labels.push_back(label);
  EndExample(batch);
}

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_LINE_PARSER_H_
