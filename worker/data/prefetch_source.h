// Reads batches ahead of need.
#ifndef STRATA_WORKER_DATA_PREFETCH_SOURCE_H_
#define STRATA_WORKER_DATA_PREFETCH_SOURCE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "proto/core/ids.h"
#include "worker/data/batch_source.h"

namespace strata {

struct PrefetchOptions {
  std::vector<LaneId> lanes;  // hosted: those read ahead, in order of need within a step
  Step first{1};              // where reading begins
  Step last{0};               // the job's last step; nothing after it is read
  size_t depth = 4;           // batches of a lane that are ready or being read, >= 1
  size_t threads = 1;         // >= 1
};

// Read gives what `source` gives, from batches that own threads have parsed ahead: the next `depth`
// steps of each hosted lane, earliest step first. A Read of another step than the next restarts
// that lane's reading there; lanes that are not hosted, ReadWindow and ReadLines go straight to
// `source`. Thread-safe; one caller per lane at a time. An error is given at the step it belongs
// to. Memory: lanes x depth batches. The destructor stops the threads after the batch each is
// reading.
std::unique_ptr<BatchSource> MakePrefetchSource(std::unique_ptr<BatchSource> source,
                                                PrefetchOptions options);

}  // namespace strata

#endif  // STRATA_WORKER_DATA_PREFETCH_SOURCE_H_
