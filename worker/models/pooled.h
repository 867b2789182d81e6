// Fields with several features each, for models that know one.
// Tested by tests/worker/models/models_test.cc
#ifndef STRATA_WORKER_MODELS_POOLED_H_
#define STRATA_WORKER_MODELS_POOLED_H_

#include <memory>

#include "proto/job/tables/model_tables.h"
#include "worker/step/model.h"

namespace strata {

// A model that gives `model` batches with at most one feature per field: where a field of an
// example has more, their pooled row (the sum of value times row, weights included) stands for
// them, and the gradient by it goes on to each, times its value. Of a field that is pooled by max
// it is the greatest of each element, and the gradient by an element goes to the first feature that
// has it. A batch that needs no pooling
// passes as it is, with the same bits as if it had been pooled.
std::unique_ptr<Model> MakePooled(const ModelTables& tables, std::unique_ptr<Model> model);

}  // namespace strata

#endif  // STRATA_WORKER_MODELS_POOLED_H_
