// One field of spec.fields: from the text of a column to keys or a number.
// Tested by tests/worker/data/formats/fields_parser_test.cc
#ifndef STRATA_WORKER_DATA_FORMATS_FIELD_READER_H_
#define STRATA_WORKER_DATA_FORMATS_FIELD_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/job/fields/field_plan.h"
#include "worker/data/formats/number_text.h"
#include "worker/data/formats/vocabulary.h"
#include "worker/step/batch.h"

namespace strata {

// The seed that keys of the field are hashed with (feature_hash.h).
uint64_t SeedOf(const FieldPlan& field);

// Immutable; any thread.
class FieldReader {
 public:
  // `vocabulary`: of a field that has one.
  FieldReader(FieldPlan plan, std::shared_ptr<const Vocabulary> vocabulary);

  const FieldPlan& plan() const { return plan_; }

  // The number that `text` stands for. Empty on success, else the reason. REQUIRES: is_number().
  std::string ReadNumber(absl::string_view text, float* out) const;

  // Appends the features that `text` stands for: keys, and of each a value and the field's number.
  // Empty on success, else the reason; then there may be features to take back. REQUIRES: not
  // is_number().
  std::string AppendFeatures(absl::string_view text, Batch* batch) const;

  // Whether the row of a key of the field is one that values out of its vocabulary share.
  bool IsShared(uint64_t key) const;
  // The line of a value in the field's vocabulary, from 1; 0: it has not. Nothing without one.
  std::optional<uint64_t> LineOf(absl::string_view value) const;

 private:
  // The key of a value; empty: of a missing one.
  uint64_t KeyOf(absl::string_view value) const;
  // The key of a number's bucket. REQUIRES: the field is bucketised.
  uint64_t KeyOfBucket(double number) const;
  std::string AppendBucket(absl::string_view text, Batch* batch) const;
  std::string AppendValues(absl::string_view text, Batch* batch) const;
  std::string AppendSequence(absl::string_view text, Batch* batch) const;
  std::string AppendWeighted(absl::string_view part, Batch* batch) const;
  // Mean pooling comes as values.
  std::string DivideBySum(size_t first, Batch* batch) const;
  std::string NotANumber(absl::string_view text, NumberError error) const;
  void Append(uint64_t key, float value, Batch* batch) const;

  const FieldPlan plan_;
  const uint64_t seed_;
  const std::vector<uint64_t> bucket_keys_;  // of a field that is bucketised
  const std::shared_ptr<const Vocabulary> vocabulary_;
};

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FORMATS_FIELD_READER_H_
