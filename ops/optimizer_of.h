// From a description of an optimizer to what the kernels take: one mapping for all who update rows.
// Tested by tests/storage/row/layout_test.cc
// Tested by tests/worker/step/local_optimizer_test.cc
#ifndef STRATA_OPS_OPTIMIZER_OF_H_
#define STRATA_OPS_OPTIMIZER_OF_H_

#include "ops/optimizer.h"
#include "ops/schedule.h"

namespace strata::ops {

// `Type`: an enumeration with ScheduleKind's names.
template <typename Type>
ScheduleKind ScheduleKindOf(Type type) {
  switch (type) {
    case Type::kConstant:
      return ScheduleKind::kConstant;
    case Type::kStep:
      return ScheduleKind::kStep;
    case Type::kCosine:
      return ScheduleKind::kCosine;
    case Type::kPoly:
      return ScheduleKind::kPoly;
  }
  return ScheduleKind::kConstant;
}

// `Type`: an enumeration with OptimizerKind's names.
template <typename Type>
OptimizerKind OptimizerKindOf(Type type) {
  switch (type) {
    case Type::kSgd:
      return OptimizerKind::kSgd;
    case Type::kAdagrad:
      return OptimizerKind::kAdagrad;
    case Type::kAdam:
      return OptimizerKind::kAdam;
    case Type::kMomentum:
      return OptimizerKind::kMomentum;
    case Type::kRowwiseAdagrad:
      return OptimizerKind::kRowwiseAdagrad;
    case Type::kFtrl:
      return OptimizerKind::kFtrl;
    case Type::kAdd:
      return OptimizerKind::kAdd;
  }
  return OptimizerKind::kSgd;
}

// `Spec`: OptimizerSpec of proto/core/table_spec.h, or what has its fields. A template, because ops
// knows no type of other folders, while storage (rows of servers) and worker (copies of lanes) must
// mean the same by one description.
template <typename Spec>
OptimizerConfig OptimizerOf(const Spec& spec) {
  OptimizerConfig config;
  config.kind = OptimizerKindOf(spec.type);
  config.learning_rate = spec.learning_rate;
  config.epsilon = spec.epsilon;
  config.initial_accumulator = spec.initial_accumulator;
  config.beta1 = spec.beta1;
  config.beta2 = spec.beta2;
  config.momentum = spec.momentum;
  config.nesterov = spec.nesterov;
  config.beta = spec.beta;
  config.l1 = spec.l1;
  config.l2 = spec.l2;
  config.clip_value = spec.clip_value;
  config.clip_norm = spec.clip_norm;
  config.weight_decay = spec.weight_decay;
  config.schedule.kind = ScheduleKindOf(spec.schedule.type);
  config.schedule.warmup_steps = spec.schedule.warmup_steps;
  config.schedule.decay_steps = spec.schedule.decay_steps;
  config.schedule.gamma = spec.schedule.gamma;
  config.schedule.power = spec.schedule.power;
  config.schedule.final_factor = spec.schedule.final_factor;
  return config;
}

}  // namespace strata::ops

#endif  // STRATA_OPS_OPTIMIZER_OF_H_
