#include "proto/job/tables/life_cycle_spec.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/job/checks/byte_size.h"
#include "proto/job/checks/spec_checks.h"

namespace strata::spec {
namespace {

constexpr uint64_t kMaxSteps = 1ull << 31;  // rows keep 32 bits of their last step
constexpr uint64_t kLeastFilterBytes = 1024;

absl::Status CheckUnused(absl::string_view field, bool given, const std::string& type,
                         absl::string_view types) {
  if (!given) return absl::OkStatus();
  return Bad(absl::StrCat("spec.lifeCycle.admission.", field),
             absl::StrCat("is for type ", types, ", and the type is ", type,
                          "; remove it or change spec.lifeCycle.admission.type"));
}

absl::Status CheckSize(absl::string_view field, const std::string& text, uint64_t least) {
  const absl::StatusOr<uint64_t> bytes = ParseBytes(text);
  if (!bytes.ok()) return Bad(field, bytes.status().message());
  return CheckRange(field, *bytes, least, uint64_t{1} << 60);
}

absl::Status Missing(absl::string_view field, absl::string_view what) {
  return Bad(field, absl::StrCat("is missing; give ", what));
}

absl::Status ResolveAdmission(const StorageSpec& storage, AdmissionSpec& a) {
  constexpr char kAt[] = "spec.lifeCycle.admission";
  if (a.type().empty()) a.set_type("always");
  STRATA_RETURN_IF_BAD(CheckChoice(absl::StrCat(kAt, ".type"), a.type(),
                                   {"always", "exact", "counting", "probability"}));
  const bool counts = a.type() == "exact" || a.type() == "counting";
  const bool chance = a.type() == "probability";
  if (!counts) {
    STRATA_RETURN_IF_BAD(CheckUnused("minSteps", a.has_min_steps(), a.type(), "exact, counting"));
    STRATA_RETURN_IF_BAD(
        CheckUnused("filterBytes", !a.filter_bytes().empty(), a.type(), "exact, counting"));
  }
  if (!chance) {
    STRATA_RETURN_IF_BAD(CheckUnused("probability", a.has_probability(), a.type(), "probability"));
  }
  if (counts) {
    const std::string steps = absl::StrCat(kAt, ".minSteps");
    if (!a.has_min_steps()) return Missing(steps, "the steps that must touch a feature, 2 to 255");
    STRATA_RETURN_IF_BAD(CheckRange(steps, a.min_steps(), 2, 255));
    if (a.filter_bytes().empty()) a.set_filter_bytes("64MiB");
    STRATA_RETURN_IF_BAD(CheckSize(absl::StrCat(kAt, ".filterBytes"), a.filter_bytes(),
                                   kLeastFilterBytes * storage.partitions()));
  }
  if (chance) {
    const std::string field = absl::StrCat(kAt, ".probability");
    if (!a.has_probability()) return Missing(field, "the chance of a step, above 0, at most 1");
    if (!(a.probability() > 0.0f && a.probability() <= 1.0f)) {
      return Bad(field, absl::StrCat(a.probability(),
                                     " is outside the limits; give a number above 0, at most 1"));
    }
  }
  return absl::OkStatus();
}

absl::Status ResolveCount(CountRule& r) {
  constexpr char kAt[] = "spec.lifeCycle.removal.count";
  if (!r.has_below()) return Missing(absl::StrCat(kAt, ".below"), "a number of updates");
  if (!r.has_idle_steps()) return Missing(absl::StrCat(kAt, ".idleSteps"), "a number of steps");
  STRATA_RETURN_IF_BAD(CheckRange(absl::StrCat(kAt, ".below"), r.below(), 2, 1ull << 31));
  return CheckRange(absl::StrCat(kAt, ".idleSteps"), r.idle_steps(), 1, kMaxSteps);
}

absl::Status ResolveScore(const TrainingSpec& training, ScoreRule& r) {
  constexpr char kAt[] = "spec.lifeCycle.removal.score";
  if (training.mode() == "easgd") {
    return Bad(kAt,
               "needs gradients, and spec.training.mode easgd pushes differences of weights; "
               "remove it or use bsp, async or downpour");
  }
  if (!r.has_below()) return Missing(absl::StrCat(kAt, ".below"), "the least score of a row");
  if (!r.has_show_weight()) r.set_show_weight(0.1f);
  if (!r.has_click_weight()) r.set_click_weight(1.0f);
  if (!r.has_decay()) r.set_decay(0.98f);
  if (!r.has_decay_steps()) r.set_decay_steps(1000);
  const auto field = [&](absl::string_view name) { return absl::StrCat(kAt, ".", name); };
  STRATA_RETURN_IF_BAD(CheckReal(field("below"), r.below(), 0.0f, Low::kNotAllowed, 1e9f));
  STRATA_RETURN_IF_BAD(CheckReal(field("showWeight"), r.show_weight(), 0.0f, Low::kAllowed, 1e6f));
  STRATA_RETURN_IF_BAD(
      CheckReal(field("clickWeight"), r.click_weight(), 0.0f, Low::kAllowed, 1e6f));
  if (!(r.decay() > 0.0f && r.decay() <= 1.0f)) {
    return Bad(field("decay"), absl::StrCat(r.decay(),
                                            " is outside the limits; give a number "
                                            "above 0, at most 1"));
  }
  return CheckRange(field("decaySteps"), r.decay_steps(), 1, kMaxSteps);
}

absl::Status ResolveNorm(NormRule& r) {
  constexpr char kAt[] = "spec.lifeCycle.removal.norm";
  if (!r.has_below()) return Missing(absl::StrCat(kAt, ".below"), "the least norm of a row");
  if (!r.has_idle_steps()) r.set_idle_steps(0);
  STRATA_RETURN_IF_BAD(
      CheckReal(absl::StrCat(kAt, ".below"), r.below(), 0.0f, Low::kNotAllowed, 1e18f));
  return CheckRange(absl::StrCat(kAt, ".idleSteps"), r.idle_steps(), 0, kMaxSteps);
}

absl::Status ResolveRemoval(const TrainingSpec& training, RemovalSpec& r) {
  if (!r.has_every_steps()) r.set_every_steps(1000);
  if (!r.has_ttl_steps()) r.set_ttl_steps(0);
  if (r.bytes_per_partition().empty()) r.set_bytes_per_partition("0");
  constexpr char kAt[] = "spec.lifeCycle.removal";
  STRATA_RETURN_IF_BAD(CheckRange(absl::StrCat(kAt, ".everySteps"), r.every_steps(), 1, kMaxSteps));
  STRATA_RETURN_IF_BAD(CheckRange(absl::StrCat(kAt, ".ttlSteps"), r.ttl_steps(), 0, kMaxSteps));
  STRATA_RETURN_IF_BAD(
      CheckSize(absl::StrCat(kAt, ".bytesPerPartition"), r.bytes_per_partition(), 0));
  if (r.has_count()) STRATA_RETURN_IF_BAD(ResolveCount(*r.mutable_count()));
  if (r.has_score()) STRATA_RETURN_IF_BAD(ResolveScore(training, *r.mutable_score()));
  if (r.has_norm()) STRATA_RETURN_IF_BAD(ResolveNorm(*r.mutable_norm()));
  return absl::OkStatus();
}

AdmissionType TypeOf(const std::string& type) {
  if (type == "exact") return AdmissionType::kExact;
  if (type == "counting") return AdmissionType::kCounting;
  if (type == "probability") return AdmissionType::kProbability;
  return AdmissionType::kAlways;
}

}  // namespace

absl::Status ResolveLifeCycle(const TrainingSpec& training, const StorageSpec& storage,
                              LifeCycleSpec& l) {
  STRATA_RETURN_IF_BAD(ResolveAdmission(storage, *l.mutable_admission()));
  return ResolveRemoval(training, *l.mutable_removal());
}

absl::Status CheckClicks(const JobSpec& job) {
  if (job.labels().empty() || job.labels(0).kind() == "binary") return absl::OkStatus();
  const auto check = [&](const std::string& at, const LifeCycleSpec& l) -> absl::Status {
    if (!l.removal().has_score() || l.removal().score().click_weight() == 0) {
      return absl::OkStatus();
    }
    return Bad(absl::StrCat(at, ".removal.score.clickWeight"),
               absl::StrCat("clicks are lines whose first label is 1, and label '",
                            job.labels(0).name(), "' is of kind ", job.labels(0).kind(),
                            "; put a binary label first, or set clickWeight to 0"));
  };
  STRATA_RETURN_IF_BAD(check("spec.lifeCycle", job.life_cycle()));
  for (int i = 0; i < job.tables_size(); ++i) {
    STRATA_RETURN_IF_BAD(
        check(absl::StrCat("spec.tables[", i, "].lifeCycle"), job.tables(i).life_cycle()));
  }
  return absl::OkStatus();
}

bool HasLifeCycle(const JobSpec& job) {
  return job.has_life_cycle() ||
         std::any_of(job.tables().begin(), job.tables().end(),
                     [](const TableConfig& t) { return t.has_life_cycle(); });
}

absl::StatusOr<LifeCycleRules> MakeLifeCycleRules(const LifeCycleSpec& l, uint32_t partitions) {
  LifeCycleRules rules;
  AdmissionRules& admission = rules.admission;
  admission.type = TypeOf(l.admission().type());
  if (admission.type == AdmissionType::kProbability) {
    admission.probability = l.admission().probability();
  } else if (admission.type != AdmissionType::kAlways) {
    const auto bytes = ParseBytes(l.admission().filter_bytes());
    if (!bytes.ok()) return bytes.status();
    admission.min_steps = l.admission().min_steps();
    admission.partition_bytes = *bytes / partitions;
  }
  if (!l.has_removal()) return rules;
  RemovalRules& removal = rules.removal;
  const RemovalSpec& r = l.removal();
  removal.every_steps = std::max<uint64_t>(r.every_steps(), 1);
  removal.ttl_steps = r.ttl_steps();
  removal.count_below = r.count().below();
  removal.count_idle_steps = r.count().idle_steps();
  if (r.has_score()) {
    removal.scored = true;
    removal.score_below = r.score().below();
    removal.show_weight = r.score().show_weight();
    removal.click_weight = r.score().click_weight();
    removal.decay = r.score().decay();
    removal.decay_steps = std::max<uint64_t>(r.score().decay_steps(), 1);
  }
  removal.norm_below = r.norm().below();
  removal.norm_idle_steps = r.norm().idle_steps();
  const auto bytes = ParseBytes(r.bytes_per_partition().empty() ? "0" : r.bytes_per_partition());
  if (!bytes.ok()) return bytes.status();
  removal.partition_bytes = *bytes;
  return rules;
}

}  // namespace strata::spec
