// One label of a job as a worker needs it: what it may be, and what a wrong prediction costs.
// Tested by tests/proto/job/label_spec_test.cc
#ifndef STRATA_PROTO_JOB_FIELDS_TASK_SPEC_H_
#define STRATA_PROTO_JOB_FIELDS_TASK_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>

namespace strata {

enum class LabelKind : uint8_t {
  kBinary = 0,  // 0 or 1
  kReal = 1,    // any finite number
  kCount = 2,   // a whole number, 0 to 2^24
};

enum class TaskLoss : uint8_t {
  kLogistic = 0,
  kSquared = 1,
  kPoisson = 2,
  kHuber = 3,
};

struct TaskSpec {
  std::string name;
  std::string column;  // of csv; as FindColumn takes it
  LabelKind kind = LabelKind::kBinary;
  TaskLoss loss = TaskLoss::kLogistic;
  float weight = 1.0f;  // of the loss
  float delta = 1.0f;   // kHuber
  // What a model's sum of 0 predicts, where the job states it (LabelConfig.mean).
  std::optional<float> mean = {};

  bool binary() const { return kind == LabelKind::kBinary; }
};

// Weights of lines enter sums as whole numbers of this unit, so that their sums are exact.
inline constexpr float kWeightUnit = 0x1p-24f;
inline constexpr float kMaxSampleWeight = 65536.0f;

}  // namespace strata

#endif  // STRATA_PROTO_JOB_FIELDS_TASK_SPEC_H_
