#include "worker/models/models.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/models/model_kinds.h"
#include "worker/models/pooled.h"

namespace strata {
namespace {

// How many tensors the model takes.
size_t TensorsOf(const ModelTables& t) {
  const size_t linear = t.numeric > 0 ? 2 : 1;
  const size_t interaction = t.task_count() > 1 ? 1 : 0;
  switch (t.type) {
    case ModelType::kLr:
      return linear;
    case ModelType::kFm:
      return (t.numeric > 0 ? 3 : 1) + interaction;
    case ModelType::kWideDeep:
      return linear + 2 * (t.hidden.size() + 1);
    case ModelType::kDeepFm:
      return linear + 2 * (t.hidden.size() + 1) + interaction;
    case ModelType::kDcnV2:
      return (t.cross_rank > 0 ? 3 : 2) * t.cross_layers + 2 * (t.hidden.size() + 1);
    case ModelType::kDlrm:
      return (t.numeric > 0 ? 2 * (t.bottom_hidden.size() + 1) : 0) + 2 * (t.hidden.size() + 1);
    case ModelType::kSharedBottom:
      return 2 * (t.hidden.size() + t.task_count() * (t.tower_hidden.size() + 1));
    case ModelType::kMmoe:
      return 2 *
             (t.experts * t.expert_hidden.size() + t.task_count() * (t.tower_hidden.size() + 2));
    case ModelType::kDin:
      return 2 * (t.sequences.size() * (t.attention_hidden.size() + 1) + t.hidden.size() + 1);
  }
  return 0;
}

// A model that, but for mmoe and din, knows at most one feature per field; null for a type that
// does not exist.
std::unique_ptr<Model> MakeSingle(const ModelTables& tables) {
  switch (tables.type) {
    case ModelType::kLr:
      return MakeLr(tables);
    case ModelType::kFm:
      return MakeFm(tables);
    case ModelType::kWideDeep:
      return MakeWideDeep(tables);
    case ModelType::kDeepFm:
      return MakeDeepFm(tables);
    case ModelType::kDcnV2:
      return MakeDcnV2(tables);
    case ModelType::kDlrm:
      return MakeDlrm(tables);
    case ModelType::kSharedBottom:
      return MakeSharedBottom(tables);
    case ModelType::kMmoe:
      return MakeMmoe(tables);
    case ModelType::kDin:
      return MakeDin(tables);
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> MakeModel(const ModelTables& tables) {
  if (tables.tables.size() < 2 || tables.tensor_count() != TensorsOf(tables)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has ", tables.tables.size(), " tables and ", tables.tensor_count(),
                     " tensors; expected at least 2 and ", TensorsOf(tables)));
  }
  std::unique_ptr<Model> model = MakeSingle(tables);
  if (model == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown model type ", static_cast<int>(tables.type)));
  }
  // Mmoe and din pool by themselves, and a sum of weights is the same however it is grouped.
  if (tables.any_width() || (tables.type == ModelType::kLr && tables.max_pooled.empty()))
    return model;
  return MakePooled(tables, std::move(model));
}

}  // namespace strata
