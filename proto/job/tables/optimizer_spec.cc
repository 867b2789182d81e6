#include "proto/job/tables/optimizer_spec.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/job/checks/spec_checks.h"

namespace strata::spec {
namespace {

constexpr uint64_t kMaxSteps = 1000000000000ull;

// A field that only some types read.
struct Use {
  absl::string_view field;
  bool given;
  std::vector<absl::string_view> types;
};

// Told rather than ignored, because who sets such a field wants it.
absl::Status CheckUses(const std::string& at, const std::string& type,
                       const std::vector<Use>& uses) {
  for (const Use& use : uses) {
    if (!use.given || std::count(use.types.begin(), use.types.end(), type) > 0) continue;
    return Bad(absl::StrCat(at, ".", use.field),
               absl::StrCat("is for type ", absl::StrJoin(use.types, ", "), ", and the type is ",
                            type, "; remove it or change ", at, ".type"));
  }
  return absl::OkStatus();
}

// `value` must be a share: at most 1, and at least or above 0.
absl::Status CheckShare(const std::string& field, float value, Low zero) {
  if (value <= 1.0f && (zero == Low::kAllowed ? value >= 0.0f : value > 0.0f)) {
    return absl::OkStatus();
  }
  return Bad(field, absl::StrCat(value, " is outside the limits; give a number ",
                                 zero == Low::kAllowed ? "from 0 to 1" : "above 0 and at most 1"));
}

absl::Status ResolveSchedule(const std::string& at, ScheduleSpec& s) {
  if (s.type().empty()) s.set_type("constant");
  STRATA_RETURN_IF_BAD(CheckChoice(at + ".type", s.type(), {"constant", "step", "cosine", "poly"}));
  STRATA_RETURN_IF_BAD(CheckUses(at, s.type(),
                                 {{"decaySteps", s.has_decay_steps(), {"step", "cosine", "poly"}},
                                  {"gamma", s.has_gamma(), {"step"}},
                                  {"power", s.has_power(), {"poly"}},
                                  {"finalFactor", s.has_final_factor(), {"cosine", "poly"}}}));
  if (!s.has_warmup_steps()) s.set_warmup_steps(0);
  STRATA_RETURN_IF_BAD(CheckRange(at + ".warmupSteps", s.warmup_steps(), 0, kMaxSteps));
  if (s.type() == "constant") return absl::OkStatus();
  if (!s.has_decay_steps()) {
    return Bad(at + ".decaySteps",
               absl::StrCat("is missing; type ", s.type(), " needs ",
                            s.type() == "step" ? "the steps between two falls of the rate"
                                               : "the steps that the descent takes"));
  }
  STRATA_RETURN_IF_BAD(CheckRange(at + ".decaySteps", s.decay_steps(), 1, kMaxSteps));
  if (s.type() == "step") {
    if (!s.has_gamma()) s.set_gamma(0.1f);
    return CheckShare(at + ".gamma", s.gamma(), Low::kNotAllowed);
  }
  if (!s.has_final_factor()) s.set_final_factor(0.0f);
  STRATA_RETURN_IF_BAD(CheckShare(at + ".finalFactor", s.final_factor(), Low::kAllowed));
  if (s.type() == "cosine") return absl::OkStatus();
  if (!s.has_power()) s.set_power(1.0f);
  return CheckReal(at + ".power", s.power(), 0.0f, Low::kNotAllowed, 100.0f);
}

// What every type has.
absl::Status ResolveCommon(const std::string& at, OptimizerConfig& o) {
  const absl::string_view type = o.type();
  if (!o.has_learning_rate()) {
    o.set_learning_rate(type == "adagrad" || type == "rowwise_adagrad" ? 0.05f
                        : type == "adam"                               ? 0.001f
                                                                       : 0.01f);
  }
  STRATA_RETURN_IF_BAD(
      CheckReal(at + ".learningRate", o.learning_rate(), 0.0f, Low::kNotAllowed, 1e6f));
  if (type == "ftrl" && o.has_weight_decay()) {
    return Bad(at + ".weightDecay", absl::StrCat("is not for type ftrl, which has l2 for that; "
                                                 "remove it and set ",
                                                 at, ".l2"));
  }
  if (type != "ftrl" && !o.has_weight_decay()) o.set_weight_decay(0.0f);
  if (!o.has_clip_value()) o.set_clip_value(0.0f);
  if (!o.has_clip_norm()) o.set_clip_norm(0.0f);
  STRATA_RETURN_IF_BAD(CheckReal(at + ".weightDecay", o.weight_decay(), 0.0f, Low::kAllowed, 1e6f));
  STRATA_RETURN_IF_BAD(CheckReal(at + ".clipValue", o.clip_value(), 0.0f, Low::kAllowed, 1e30f));
  STRATA_RETURN_IF_BAD(CheckReal(at + ".clipNorm", o.clip_norm(), 0.0f, Low::kAllowed, 1e30f));
  return ResolveSchedule(at + ".schedule", *o.mutable_schedule());
}

absl::Status ResolveAdaptive(const std::string& at, OptimizerConfig& o) {
  const bool adam = o.type() == "adam";
  if (!o.has_epsilon()) o.set_epsilon(o.type() == "adagrad" ? 1e-10f : 1e-8f);
  STRATA_RETURN_IF_BAD(CheckReal(at + ".epsilon", o.epsilon(), 0.0f, Low::kNotAllowed, 1e6f));
  if (!adam) {
    if (!o.has_initial_accumulator()) o.set_initial_accumulator(0.0f);
    return CheckReal(at + ".initialAccumulator", o.initial_accumulator(), 0.0f, Low::kAllowed,
                     1e6f);
  }
  if (!o.has_beta1()) o.set_beta1(0.9f);
  if (!o.has_beta2()) o.set_beta2(0.999f);
  STRATA_RETURN_IF_BAD(CheckReal(at + ".beta1", o.beta1(), 0.0f, Low::kAllowed, 1.0f));
  return CheckReal(at + ".beta2", o.beta2(), 0.0f, Low::kAllowed, 1.0f);
}

absl::Status ResolveMomentum(const std::string& at, OptimizerConfig& o) {
  if (!o.has_momentum()) o.set_momentum(0.9f);
  if (!o.has_nesterov()) o.set_nesterov(false);
  return CheckReal(at + ".momentum", o.momentum(), 0.0f, Low::kAllowed, 1.0f);
}

absl::Status ResolveFtrl(const std::string& at, OptimizerConfig& o) {
  if (!o.has_beta()) o.set_beta(1.0f);
  if (!o.has_l1()) o.set_l1(1.0f);
  if (!o.has_l2()) o.set_l2(1.0f);
  STRATA_RETURN_IF_BAD(CheckReal(at + ".beta", o.beta(), 0.0f, Low::kNotAllowed, 1e6f));
  STRATA_RETURN_IF_BAD(CheckReal(at + ".l1", o.l1(), 0.0f, Low::kAllowed, 1e6f));
  return CheckReal(at + ".l2", o.l2(), 0.0f, Low::kAllowed, 1e6f);
}

absl::Status ResolveOptimizer(const std::string& at, absl::string_view default_type,
                              OptimizerConfig& o) {
  if (o.type().empty()) o.set_type(std::string(default_type));
  STRATA_RETURN_IF_BAD(CheckChoice(
      at + ".type", o.type(), {"sgd", "momentum", "adagrad", "rowwise_adagrad", "adam", "ftrl"}));
  STRATA_RETURN_IF_BAD(CheckUses(
      at, o.type(),
      {{"epsilon", o.has_epsilon(), {"adagrad", "rowwise_adagrad", "adam"}},
       {"initialAccumulator", o.has_initial_accumulator(), {"adagrad", "rowwise_adagrad"}},
       {"beta1", o.has_beta1(), {"adam"}},
       {"beta2", o.has_beta2(), {"adam"}},
       {"momentum", o.has_momentum(), {"momentum"}},
       {"nesterov", o.has_nesterov(), {"momentum"}},
       {"beta", o.has_beta(), {"ftrl"}},
       {"l1", o.has_l1(), {"ftrl"}},
       {"l2", o.has_l2(), {"ftrl"}}}));
  STRATA_RETURN_IF_BAD(ResolveCommon(at, o));
  if (o.type() == "momentum") return ResolveMomentum(at, o);
  if (o.type() == "ftrl") return ResolveFtrl(at, o);
  if (o.type() == "sgd") return absl::OkStatus();
  return ResolveAdaptive(at, o);
}

// The models whose features have a 1-dimensional weight beside an embedding.
bool HasLinearBesideEmbedding(absl::string_view model) {
  return model == "fm" || model == "wide_deep" || model == "deepfm";
}

// Without a type of its own, `config` is as `whole` but for what it gives.
void MergeInto(const OptimizerConfig& whole, OptimizerConfig& config) {
  if (!config.type().empty()) return;
  OptimizerConfig merged = whole;
  merged.MergeFrom(config);
  config = merged;
}

absl::Status NoLinear(const std::string& at, const ModelSpec& model, absl::string_view instead) {
  return Bad(at, absl::StrCat("is for the weights that fm, wide_deep and deepfm have beside "
                              "embeddings, and spec.model.type is ",
                              model.type(), "; remove it and set ", instead));
}

// `sparse` is resolved.
absl::Status ResolveLinear(const ModelSpec& model, OptimizersSpec& optimizers) {
  const std::string at = "spec.optimizer.linear";
  if (!HasLinearBesideEmbedding(model.type())) {
    if (!optimizers.has_linear()) return absl::OkStatus();
    return NoLinear(at, model, "spec.optimizer.sparse");
  }
  OptimizerConfig& linear = *optimizers.mutable_linear();
  MergeInto(optimizers.sparse(), linear);
  return ResolveOptimizer(at, "", linear);
}

}  // namespace

absl::Status ResolveOptimizers(const ModelSpec& model, OptimizersSpec& optimizers) {
  STRATA_RETURN_IF_BAD(
      ResolveOptimizer("spec.optimizer.sparse", "adagrad", *optimizers.mutable_sparse()));
  STRATA_RETURN_IF_BAD(ResolveLinear(model, optimizers));
  return ResolveOptimizer("spec.optimizer.dense", "adam", *optimizers.mutable_dense());
}

absl::Status ResolveTableOptimizers(const std::string& at, const ModelSpec& model,
                                    const OptimizersSpec& optimizers, TableConfig& table) {
  OptimizerConfig& sparse = *table.mutable_optimizer();
  MergeInto(optimizers.sparse(), sparse);
  STRATA_RETURN_IF_BAD(ResolveOptimizer(at + ".optimizer", "", sparse));
  if (!HasLinearBesideEmbedding(model.type())) {
    if (!table.has_linear()) return absl::OkStatus();
    return NoLinear(at + ".linear", model, at + ".optimizer");
  }
  OptimizerConfig& linear = *table.mutable_linear();
  MergeInto(optimizers.linear(), linear);
  return ResolveOptimizer(at + ".linear", "", linear);
}

}  // namespace strata::spec
