// A file's batches, parsed once and kept in memory, so that what reading costs can be told.
#ifndef STRATA_TOOLS_BENCH_JOB_PREPARSED_DATA_H_
#define STRATA_TOOLS_BENCH_JOB_PREPARSED_DATA_H_

#include <memory>

#include "worker/data/reading/data_access.h"

namespace strata::bench {

// The index is that of the files. A source holds the bsp batches of the first epoch, of all lanes,
// and gives them again in every epoch; only Read may be called.
std::unique_ptr<DataAccess> MakePreparsedData();

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_JOB_PREPARSED_DATA_H_
