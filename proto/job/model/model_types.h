// The types of models, by name, and what each can: the one list of it.
// Tested by tests/proto/job/tables/model_tables_test.cc
#ifndef STRATA_PROTO_JOB_MODEL_MODEL_TYPES_H_
#define STRATA_PROTO_JOB_MODEL_MODEL_TYPES_H_

#include <cstdint>
#include <iterator>

#include "absl/strings/string_view.h"

namespace strata {

enum class ModelType : uint8_t {
  kLr = 0,
  kFm = 1,
  kDeepFm = 2,
  kWideDeep = 3,
  kDcnV2 = 4,
  kDlrm = 5,
  kSharedBottom = 6,
  kMmoe = 7,
  kDin = 8,
};

struct ModelTypeInfo {
  const char* name;  // spec.model.type
  ModelType type;
  bool embedding = true;   // rows have a segment `embedding`
  bool weight = false;     // rows have a segment `weight`
  bool any_width = false;  // its fields may lie in tables of several widths
  bool sequences = false;  // it reads fields of kind sequence
};

// By ModelType.
inline constexpr ModelTypeInfo kModelTypes[] = {
    {.name = "lr", .type = ModelType::kLr, .embedding = false, .weight = true},
    {.name = "fm", .type = ModelType::kFm, .weight = true},
    {.name = "deepfm", .type = ModelType::kDeepFm, .weight = true},
    {.name = "wide_deep", .type = ModelType::kWideDeep, .weight = true},
    {.name = "dcn_v2", .type = ModelType::kDcnV2},
    {.name = "dlrm", .type = ModelType::kDlrm},
    {.name = "shared_bottom", .type = ModelType::kSharedBottom},
    {.name = "mmoe", .type = ModelType::kMmoe, .any_width = true},
    {.name = "din", .type = ModelType::kDin, .any_width = true, .sequences = true},
};

static_assert([] {
  for (uint8_t i = 0; i < std::size(kModelTypes); ++i) {
    if (kModelTypes[i].type != ModelType{i}) return false;
  }
  return true;
}());

constexpr const ModelTypeInfo& InfoOf(ModelType type) {
  return kModelTypes[static_cast<uint8_t>(type)];
}

// Null: there is none of that name.
inline const ModelTypeInfo* FindModelType(absl::string_view name) {
  for (const ModelTypeInfo& info : kModelTypes) {
    if (name == info.name) return &info;
  }
  return nullptr;
}

// Of a name that there is not, which ResolveJob refuses, what most can.
inline ModelTypeInfo InfoOf(absl::string_view name) {
  const ModelTypeInfo* const found = FindModelType(name);
  return found != nullptr ? *found : ModelTypeInfo{.name = "", .type = ModelType::kLr};
}

}  // namespace strata

#endif  // STRATA_PROTO_JOB_MODEL_MODEL_TYPES_H_
