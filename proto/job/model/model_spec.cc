#include "proto/job/model/model_spec.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/job/checks/spec_checks.h"

namespace strata::spec {
namespace {

using Widths = google::protobuf::RepeatedField<uint32_t>;

absl::Status CheckWidths(absl::string_view field, const Widths& widths) {
  STRATA_RETURN_IF_BAD(CheckRange(absl::StrCat(field, " (layers)"), widths.size(), 0, 32));
  for (int i = 0; i < widths.size(); ++i) {
    STRATA_RETURN_IF_BAD(CheckRange(absl::StrCat(field, "[", i, "]"), widths[i], 1, 16384));
  }
  return absl::OkStatus();
}

void SetIfEmpty(Widths* widths, std::initializer_list<uint32_t> defaults) {
  if (!widths->empty()) return;
  for (uint32_t w : defaults) widths->Add(w);
}

using Types = std::initializer_list<absl::string_view>;

// Fields that only some types read: told rather than ignored, because who sets them wants it.
absl::Status CheckOnlyOf(const ModelSpec& model, Types owners, absl::string_view field,
                         bool given) {
  if (!given || std::find(owners.begin(), owners.end(), model.type()) != owners.end()) {
    return absl::OkStatus();
  }
  return Bad(field, absl::StrCat("is for spec.model.type ", absl::StrJoin(owners, " and "),
                                 ", and this job's is ", model.type(), "; remove it"));
}

absl::Status ResolveCross(ModelSpec& model) {
  STRATA_RETURN_IF_BAD(
      CheckOnlyOf(model, {"dcn_v2"}, "spec.model.crossLayers", model.has_cross_layers()));
  STRATA_RETURN_IF_BAD(
      CheckOnlyOf(model, {"dcn_v2"}, "spec.model.crossRank", model.has_cross_rank()));
  if (model.type() != "dcn_v2") return absl::OkStatus();
  if (!model.has_cross_layers()) model.set_cross_layers(3);
  if (!model.has_cross_rank()) model.set_cross_rank(0);
  STRATA_RETURN_IF_BAD(CheckRange("spec.model.crossLayers", model.cross_layers(), 1, 32));
  return CheckRange("spec.model.crossRank", model.cross_rank(), 0, 16384);
}

absl::Status ResolveInitFrom(ModelSpec& model) {
  if (!model.has_init_from()) return absl::OkStatus();
  InitFromSpec& init = *model.mutable_init_from();
  if (init.ByteSizeLong() == 0) {
    model.clear_init_from();
    return absl::OkStatus();
  }
  if (init.checkpoint().empty()) {
    return Bad("spec.model.initFrom.checkpoint", "is missing; name the folder of one checkpoint");
  }
  if (init.new_tensors().empty()) init.set_new_tensors("refuse");
  if (init.dropped_tensors().empty()) init.set_dropped_tensors("refuse");
  if (init.optimizer_state().empty()) init.set_optimizer_state("keep");
  STRATA_RETURN_IF_BAD(
      CheckChoice("spec.model.initFrom.newTensors", init.new_tensors(), {"refuse", "allow"}));
  STRATA_RETURN_IF_BAD(CheckChoice("spec.model.initFrom.droppedTensors", init.dropped_tensors(),
                                   {"refuse", "allow"}));
  STRATA_RETURN_IF_BAD(
      CheckChoice("spec.model.initFrom.optimizerState", init.optimizer_state(), {"keep", "reset"}));
  std::set<std::string> names;
  for (const auto& [from, to] :
       std::map<std::string, std::string>(init.rename().begin(), init.rename().end())) {
    if (!to.empty() && !names.insert(to).second) {
      return Bad(
          "spec.model.initFrom.rename",
          absl::StrCat("'", from, "' becomes '", to, "', which is the new name of another one"));
    }
  }
  return absl::OkStatus();
}

// What mmoe alone reads.
absl::Status ResolveExperts(ModelSpec& model) {
  STRATA_RETURN_IF_BAD(CheckOnlyOf(model, {"mmoe"}, "spec.model.experts", model.has_experts()));
  STRATA_RETURN_IF_BAD(
      CheckOnlyOf(model, {"mmoe"}, "spec.model.expertHidden", !model.expert_hidden().empty()));
  if (model.type() != "mmoe") return absl::OkStatus();
  if (!model.hidden().empty()) {
    return Bad("spec.model.hidden",
               "is not for spec.model.type mmoe, whose layers are expertHidden and towerHidden; "
               "remove it");
  }
  if (!model.has_experts()) model.set_experts(4);
  SetIfEmpty(model.mutable_expert_hidden(), {64});
  STRATA_RETURN_IF_BAD(CheckRange("spec.model.experts", model.experts(), 1, 256));
  return CheckWidths("spec.model.expertHidden", model.expert_hidden());
}

absl::Status ResolveHidden(ModelSpec& model) {
  STRATA_RETURN_IF_BAD(
      CheckOnlyOf(model, {"dlrm"}, "spec.model.bottomHidden", !model.bottom_hidden().empty()));
  if (model.type() == "dlrm") {
    SetIfEmpty(model.mutable_bottom_hidden(), {256, 64});
    SetIfEmpty(model.mutable_hidden(), {256, 128});
  } else if (model.type() == "din") {
    SetIfEmpty(model.mutable_hidden(), {200, 80});
  } else if (model.type() != "lr" && model.type() != "fm" && model.type() != "mmoe") {
    SetIfEmpty(model.mutable_hidden(), {400, 400, 400});
  }
  STRATA_RETURN_IF_BAD(CheckWidths("spec.model.hidden", model.hidden()));
  STRATA_RETURN_IF_BAD(CheckWidths("spec.model.bottomHidden", model.bottom_hidden()));
  STRATA_RETURN_IF_BAD(CheckOnlyOf(model, {"shared_bottom", "mmoe"}, "spec.model.towerHidden",
                                   !model.tower_hidden().empty()));
  if (model.type() == "shared_bottom" || model.type() == "mmoe") {
    SetIfEmpty(model.mutable_tower_hidden(), {32});
  }
  return CheckWidths("spec.model.towerHidden", model.tower_hidden());
}

}  // namespace

absl::Status ResolveModel(ModelSpec& model) {
  STRATA_RETURN_IF_BAD(CheckChoice(
      "spec.model.type", model.type(),
      {"lr", "fm", "wide_deep", "deepfm", "dcn_v2", "dlrm", "shared_bottom", "mmoe", "din"}));
  if (!model.has_embedding_dim()) model.set_embedding_dim(kDefaultEmbeddingDim);
  STRATA_RETURN_IF_BAD(CheckRange("spec.model.embeddingDim", model.embedding_dim(), 1, 4096));
  STRATA_RETURN_IF_BAD(ResolveExperts(model));
  STRATA_RETURN_IF_BAD(ResolveHidden(model));
  STRATA_RETURN_IF_BAD(ResolveCross(model));
  STRATA_RETURN_IF_BAD(ResolveInitFrom(model));
  if (!model.has_hash_seed()) model.set_hash_seed(0);
  if (!model.has_init_scale()) model.set_init_scale(0.01f);
  return CheckReal("spec.model.initScale", model.init_scale(), 0.0f, Low::kNotAllowed, 100.0f);
}

absl::Status ResolveAttention(JobSpec& job) {
  constexpr char kField[] = "spec.model.attentionHidden";
  ModelSpec& model = *job.mutable_model();
  const bool given = !model.attention_hidden().empty();
  STRATA_RETURN_IF_BAD(CheckOnlyOf(model, {"din"}, kField, given));
  if (model.type() != "din") return absl::OkStatus();
  const bool sequences = std::any_of(job.fields().begin(), job.fields().end(),
                                     [](const FieldConfig& f) { return f.kind() == "sequence"; });
  if (!sequences && given) {
    return Bad(kField,
               "is for sequences, and the job has none; give the history a field of kind sequence "
               "in spec.fields, or remove it");
  }
  if (sequences) SetIfEmpty(model.mutable_attention_hidden(), {36});
  return CheckWidths(kField, model.attention_hidden());
}

}  // namespace strata::spec
