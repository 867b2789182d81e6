// The shape of a job's tables: what a row holds, how it is born and how it is updated. Pure values,
// the same on every server and worker of a job; derived from the job by
// proto/job/tables/model_tables.h.
// Tested by tests/proto/core/values_test.cc
// Tested by tests/server/table/shard_table_test.cc
#ifndef STRATA_PROTO_CORE_TABLE_SPEC_H_
#define STRATA_PROTO_CORE_TABLE_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/core/ids.h"
#include "proto/core/life_cycle_rules.h"
#include "proto/core/position.h"

namespace strata {

enum class OptimizerType : uint8_t {
  kSgd = 0,
  kAdagrad = 1,
  kAdam = 2,
  kMomentum = 3,
  kRowwiseAdagrad = 4,
  kFtrl = 5,
  // row += sum, and nothing else: no division by examples, rate, clipping or decay. For sums that
  // are differences of weights already (easgd's exchange); no job file names it.
  kAdd = 6,
};

enum class ScheduleType : uint8_t { kConstant = 0, kStep = 1, kCosine = 2, kPoly = 3 };

// The learning rate's factor by step; equations at ScheduleSpec of job.proto.
struct RateSchedule {
  ScheduleType type = ScheduleType::kConstant;
  uint64_t warmup_steps = 0;
  uint64_t decay_steps = 1;   // step, cosine, poly; >= 1
  float gamma = 0.1f;         // step
  float power = 1.0f;         // poly
  float final_factor = 0.0f;  // cosine, poly
  friend bool operator==(const RateSchedule&, const RateSchedule&) = default;
};

// Parameters of ALGORITHMS section 1; those of other types are ignored.
struct OptimizerSpec {
  OptimizerType type = OptimizerType::kSgd;
  float learning_rate = 0.01f;
  float epsilon = 1e-10f;
  float initial_accumulator = 0.0f;  // adagrad, rowwise_adagrad
  float beta1 = 0.9f;                // adam
  float beta2 = 0.999f;              // adam
  float momentum = 0.9f;             // momentum
  bool nesterov = false;             // momentum
  float beta = 1.0f;                 // ftrl; > 0
  float l1 = 1.0f;                   // ftrl
  float l2 = 1.0f;                   // ftrl
  float weight_decay = 0.0f;         // all but ftrl
  float clip_value = 0.0f;           // 0: no limit
  float clip_norm = 0.0f;            // 0: no limit
  RateSchedule schedule;
  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};

enum class InitializerType : uint8_t {
  kZero = 0,
  kUniform = 1,  // uniform in [-scale, scale)
  kNormal = 2,   // mean 0, standard deviation `scale`
};

struct InitializerSpec {
  InitializerType type = InitializerType::kZero;
  float scale = 0.0f;
  friend bool operator==(const InitializerSpec&, const InitializerSpec&) = default;
};

// A run of a row's weights with its own birth and update. A row's weights are its segments in
// order.
struct SegmentSpec {
  std::string name;
  uint32_t dim = 0;  // floats, >= 1
  InitializerSpec initializer;
  OptimizerSpec optimizer;
  friend bool operator==(const SegmentSpec&, const SegmentSpec&) = default;
};

// A dense tensor cut into fixed-size rows of a dense table. Rows are consecutive positions starting
// at `first`, all inside one partition; the tail of the last row is padding, kept at zero.
struct TensorSpec {
  std::string name;
  uint64_t elements = 0;
  Position first;
  InitializerSpec initializer;

  uint64_t Rows(uint32_t row_dim) const { return (elements + row_dim - 1) / row_dim; }
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

enum class TableKind : uint8_t {
  kHashed = 0,  // keys are feature ids; position = mix64(key ^ salt)
  kDense = 1,   // keys are positions; rows belong to tensors
};

struct TableSpec {
  TableId id;
  std::string name;
  TableKind kind = TableKind::kHashed;
  // Hashed: one or more. Dense: exactly one; its initializer is unused (each tensor has its own).
  std::vector<SegmentSpec> segments;
  // Dense tables only: ascending by `first`, never overlapping.
  std::vector<TensorSpec> tensors;
  // Hashed tables only.
  LifeCycleRules life_cycle;
  // Hashed tables only: its weight where they share DRAM (dram_parts.h); >= 1.
  uint32_t dram_share = 1;

  // Floats of weights in a row: what a pull returns per key.
  uint32_t dim() const {
    uint32_t d = 0;
    for (const SegmentSpec& s : segments) d += s.dim;
    return d;
  }
  // What a push carries per key: the gradients and, where rows have a score, shows and clicks.
  uint32_t push_dim() const { return dim() + (life_cycle.scored() ? kCountColumns : 0); }
  Position PositionOfKey(Key key) const {
    return kind == TableKind::kDense ? Position(key.value) : PositionOf(key, TableSalt(id));
  }
  Key KeyAtPosition(Position p) const {
    return kind == TableKind::kDense ? Key(p.value) : KeyOf(p, TableSalt(id));
  }
  friend bool operator==(const TableSpec&, const TableSpec&) = default;
};

}  // namespace strata

#endif  // STRATA_PROTO_CORE_TABLE_SPEC_H_
