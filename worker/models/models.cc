#include "worker/models/models.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/models/model_kinds.h"

namespace strata {
namespace {

absl::Status CheckTensors(const ModelTables& tables, size_t expected) {
  if (tables.tables.size() == 2 && tables.tensor_count() == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the model has ", tables.tables.size(),
                                                 " tables and ", tables.tensor_count(),
                                                 " tensors; expected 2 and ", expected));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> MakeModel(const ModelTables& tables) {
  const size_t linear = tables.numeric > 0 ? 2 : 1;
  switch (tables.type) {
    case ModelType::kLr:
      if (absl::Status s = CheckTensors(tables, linear); !s.ok()) return s;
      return MakeLr(tables);
    case ModelType::kFm:
      if (absl::Status s = CheckTensors(tables, tables.numeric > 0 ? 3 : 1); !s.ok()) return s;
      return MakeFm(tables);
    case ModelType::kDeepFm:
      if (absl::Status s = CheckTensors(tables, linear + 2 * (tables.hidden.size() + 1)); !s.ok()) {
        return s;
      }
      return MakeDeepFm(tables);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown model type ", static_cast<int>(tables.type)));
}

}  // namespace strata
