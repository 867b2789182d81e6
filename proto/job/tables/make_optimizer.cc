#include "proto/job/tables/make_optimizer.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace strata {
namespace {

absl::StatusOr<OptimizerType> ParseOptimizer(absl::string_view field, const std::string& type) {
  if (type == "sgd") return OptimizerType::kSgd;
  if (type == "momentum") return OptimizerType::kMomentum;
  if (type == "adagrad") return OptimizerType::kAdagrad;
  if (type == "rowwise_adagrad") return OptimizerType::kRowwiseAdagrad;
  if (type == "adam") return OptimizerType::kAdam;
  if (type == "ftrl") return OptimizerType::kFtrl;
  return absl::InvalidArgumentError(
      absl::StrCat(field, ".type is '", type,
                   "'; it must be sgd, momentum, adagrad, rowwise_adagrad, adam or ftrl"));
}

absl::StatusOr<ScheduleType> ParseSchedule(absl::string_view field, const std::string& type) {
  if (type.empty() || type == "constant") return ScheduleType::kConstant;
  if (type == "step") return ScheduleType::kStep;
  if (type == "cosine") return ScheduleType::kCosine;
  if (type == "poly") return ScheduleType::kPoly;
  return absl::InvalidArgumentError(absl::StrCat(field, ".schedule.type is '", type,
                                                 "'; it must be constant, step, cosine or poly"));
}

}  // namespace

absl::StatusOr<OptimizerSpec> MakeOptimizer(absl::string_view field,
                                            const OptimizerConfig& config) {
  const absl::StatusOr<OptimizerType> type = ParseOptimizer(field, config.type());
  if (!type.ok()) return type.status();
  const ScheduleSpec& schedule = config.schedule();
  const absl::StatusOr<ScheduleType> schedule_type = ParseSchedule(field, schedule.type());
  if (!schedule_type.ok()) return schedule_type.status();
  OptimizerSpec out;
  out.type = *type;
  out.learning_rate = config.learning_rate();
  out.epsilon = config.epsilon();
  out.initial_accumulator = config.initial_accumulator();
  out.beta1 = config.beta1();
  out.beta2 = config.beta2();
  out.momentum = config.momentum();
  out.nesterov = config.nesterov();
  out.beta = config.beta();
  out.l1 = config.l1();
  out.l2 = config.l2();
  out.weight_decay = config.weight_decay();
  out.clip_value = config.clip_value();
  out.clip_norm = config.clip_norm();
  out.schedule.type = *schedule_type;
  out.schedule.warmup_steps = schedule.warmup_steps();
  out.schedule.decay_steps = std::max<uint64_t>(1, schedule.decay_steps());
  out.schedule.gamma = schedule.gamma();
  out.schedule.power = schedule.power();
  out.schedule.final_factor = schedule.final_factor();
  return out;
}

}  // namespace strata
