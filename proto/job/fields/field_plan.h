// The fields of a job as programs use them: a pure function of the job, whichever form it was
// written in.
// Tested by tests/proto/job/fields/field_spec_test.cc
#ifndef STRATA_PROTO_JOB_FIELDS_FIELD_PLAN_H_
#define STRATA_PROTO_JOB_FIELDS_FIELD_PLAN_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "proto/strata/job.pb.h"

namespace strata {

enum class FieldKind : uint8_t { kCategorical, kMultiValued, kSequence, kNumeric };
enum class FieldPooling : uint8_t { kSum, kMean, kMax };
enum class TransformType : uint8_t { kNone, kLog, kBucketise, kStandardise, kClip };
// What becomes of a sequence that is too long.
enum class Truncation : uint8_t {
  kOldest,  // its first values go
  kNewest,  // its last values go
  kNever,   // the line is bad
};

struct FieldTransform {
  TransformType type = TransformType::kNone;
  std::vector<double> bounds;  // strictly ascending
  double mean = 0;
  double deviation = 1;
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

struct VocabularyPlan {
  std::string file;
  uint32_t out_of_vocabulary = 1;
};

struct FieldPlan {
  std::string name;
  std::string column;  // csv: a name of the header, or a position; else C1, I1, or a number
  FieldKind kind = FieldKind::kCategorical;
  std::string table;  // empty: numbers
  // Of a number: its place among the numbers of an example. Else Batch.fields.
  uint32_t number = 0;
  char separator = '|';
  char weight_separator = 0;  // 0: values have no weights
  FieldPooling pooling = FieldPooling::kSum;
  uint32_t max_length = 0;  // of a sequence
  Truncation truncation = Truncation::kOldest;
  FieldTransform transform;
  std::optional<VocabularyPlan> vocabulary;
  std::optional<std::string> default_value;
  // What keys are hashed with (worker/data/formats/feature_hash.h): the seed, and the name, or
  // where that is empty the number.
  uint64_t hash_seed = 0;
  std::string seed_name;

  // Whether examples have it as a number, not as keys of rows.
  bool is_number() const {
    return kind == FieldKind::kNumeric && transform.type != TransformType::kBucketise;
  }
};

struct FieldsPlan {
  std::vector<FieldPlan> fields;  // in the order of the job
  uint32_t features = 0;          // those with keys: Batch.fields is below this
  uint32_t numbers = 0;

  // By Batch.fields.
  std::vector<const FieldPlan*> ByNumber() const;
  // By Batch.fields, or empty where none is max: sum and mean are values of features.
  std::vector<bool> MaxPooled() const;
};

// `spec` has its defaults resolved. Which fields there are, and in which order, csv says in
// spec.fields or data.columns, and other formats themselves (there spec.fields names them):
// criteo's C1 .. C26 and I1 .. I13, one field of libfm and libsvm, and `libffm_fields` of libffm.
FieldsPlan PlanFields(const JobSpec& spec, uint32_t libffm_fields = 0);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_FIELDS_FIELD_PLAN_H_
