// What servers of a small model answer to pulls, in messages or by a device's memory.
#ifndef STRATA_TESTS_WORKER_CLIENT_SERVED_ROWS_H_
#define STRATA_TESTS_WORKER_CLIENT_SERVED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/job/tables/model_tables.h"
#include "proto/strata/job.pb.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"

namespace strata::testing {

// A resolved job of deepfm in 64 partitions.
JobSpec SmallSpec(uint32_t embedding_dim = 3, const std::vector<uint32_t>& hidden = {100});
// Its tables on five fields and two numbers; rows have a float more than the embedding.
ModelTables SmallTables(uint32_t embedding_dim = 3, const std::vector<uint32_t>& hidden = {100});

float WeightOf(uint64_t key, size_t j);

// What a server does with a pull: WeightOf each key. REQUIRES: a well-formed request, of which all
// groups of table 0 and no others have a place on a device, or none.
Buffer ServePull(const ModelTables& tables, const Buffer& request,
                 const wire::ServerState& state = {}, const wire::Ticket& ticket = {});

}  // namespace strata::testing

#endif  // STRATA_TESTS_WORKER_CLIENT_SERVED_ROWS_H_
