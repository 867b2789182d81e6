// The models behind models.h, one file each.
// Tested by tests/worker/models/models_test.cc
#ifndef STRATA_WORKER_MODELS_MODEL_KINDS_H_
#define STRATA_WORKER_MODELS_MODEL_KINDS_H_

#include <memory>

#include "proto/job/tables/model_tables.h"
#include "worker/step/model.h"

namespace strata {

std::unique_ptr<Model> MakeLr(const ModelTables& tables);
std::unique_ptr<Model> MakeFm(const ModelTables& tables);
std::unique_ptr<Model> MakeWideDeep(const ModelTables& tables);
std::unique_ptr<Model> MakeDeepFm(const ModelTables& tables);
std::unique_ptr<Model> MakeDcnV2(const ModelTables& tables);
std::unique_ptr<Model> MakeDlrm(const ModelTables& tables);
std::unique_ptr<Model> MakeSharedBottom(const ModelTables& tables);
std::unique_ptr<Model> MakeMmoe(const ModelTables& tables);
std::unique_ptr<Model> MakeDin(const ModelTables& tables);

}  // namespace strata

#endif  // STRATA_WORKER_MODELS_MODEL_KINDS_H_
