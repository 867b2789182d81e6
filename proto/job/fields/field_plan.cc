#include "proto/job/fields/field_plan.h"

#include <utility>

#include "proto/job/fields/data_fields.h"

namespace strata {
namespace {

FieldKind KindOf(const std::string& kind) {
  if (kind == "multiValued") return FieldKind::kMultiValued;
  if (kind == "sequence") return FieldKind::kSequence;
  if (kind == "numeric") return FieldKind::kNumeric;
  return FieldKind::kCategorical;
}

FieldPooling PoolingOf(const std::string& pooling) {
  if (pooling == "mean") return FieldPooling::kMean;
  if (pooling == "max") return FieldPooling::kMax;
  return FieldPooling::kSum;
}

Truncation TruncationOf(const std::string& side) {
  if (side == "newest") return Truncation::kNewest;
  if (side == "never") return Truncation::kNever;
  return Truncation::kOldest;
}

FieldTransform TransformOf(const TransformConfig& config) {
  FieldTransform t;
  if (config.type() == "log") t.type = TransformType::kLog;
  if (config.type() == "bucketise") t.type = TransformType::kBucketise;
  if (config.type() == "standardise") t.type = TransformType::kStandardise;
  if (config.type() == "clip") t.type = TransformType::kClip;
  t.bounds.assign(config.bounds().begin(), config.bounds().end());
  if (config.has_mean()) t.mean = config.mean();
  if (config.has_deviation()) t.deviation = config.deviation();
  if (config.has_min()) t.min = config.min();
  if (config.has_max()) t.max = config.max();
  return t;
}

FieldPlan PlanField(const JobSpec& spec, const FieldConfig& config) {
  FieldPlan f;
  f.name = config.name();
  f.column = config.column().empty() ? config.name() : config.column();
  f.kind = KindOf(config.kind());
  f.table = config.table();
  if (!config.separator().empty()) f.separator = config.separator()[0];
  if (!config.weight_separator().empty()) f.weight_separator = config.weight_separator()[0];
  f.pooling = PoolingOf(config.pooling());
  f.max_length = config.max_length();
  f.truncation = TruncationOf(config.truncate());
  f.transform = TransformOf(config.transform());
  if (config.has_vocabulary()) {
    f.vocabulary = {config.vocabulary().file(), config.vocabulary().has_out_of_vocabulary()
                                                    ? config.vocabulary().out_of_vocabulary()
                                                    : 1};
  }
  if (config.has_default_value()) f.default_value = config.default_value();
  f.hash_seed = config.has_hash_seed() ? config.hash_seed() : spec.model().hash_seed();
  // Fields of one table share its rows by value, but for those that data.columns says.
  const bool by_column = spec.tables().empty() || spec.fields().empty();
  if (spec.data().format() == "csv") f.seed_name = by_column ? f.column : f.table;
  return f;
}

}  // namespace

std::vector<const FieldPlan*> FieldsPlan::ByNumber() const {
  std::vector<const FieldPlan*> by_number(features);
  for (const FieldPlan& f : fields) {
    if (!f.is_number()) by_number[f.number] = &f;
  }
  return by_number;
}

std::vector<bool> FieldsPlan::MaxPooled() const {
  std::vector<bool> pooled(features);
  bool any = false;
  for (const FieldPlan& f : fields) {
    if (f.is_number() || f.pooling != FieldPooling::kMax) continue;
    pooled[f.number] = any = true;
  }
  return any ? pooled : std::vector<bool>();
}

FieldsPlan PlanFields(const JobSpec& spec, uint32_t libffm_fields) {
  FieldsPlan plan;
  for (const FieldConfig& config : spec::FieldsOfJob(spec, libffm_fields)) {
    FieldPlan f = PlanField(spec, config);
    f.number = f.is_number() ? plan.numbers++ : plan.features++;
    plan.fields.push_back(std::move(f));
  }
  return plan;
}

}  // namespace strata
