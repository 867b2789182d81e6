// What servers of a small model answer to pulls, in messages or by a device's memory.
#ifndef STRATA_TESTS_WORKER_SERVED_ROWS_H_
#define STRATA_TESTS_WORKER_SERVED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/core/buffer.h"
#include "proto/core/model_tables.h"

namespace strata::testing {

// Of deepfm on five fields and two numbers; rows have a float more than the embedding.
ModelTables SmallTables(uint32_t embedding_dim = 3, const std::vector<uint32_t>& hidden = {100});

float WeightOf(uint64_t key, size_t j);

// What a server does with a pull: WeightOf each key. REQUIRES: a well-formed request, of which all
// groups of table 0 and no others have a place on a device, or none.
Buffer ServePull(const ModelTables& tables, const Buffer& request);

}  // namespace strata::testing

#endif  // STRATA_TESTS_WORKER_SERVED_ROWS_H_
