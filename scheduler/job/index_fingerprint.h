// Which data a job trains on, in 64 bits.
#ifndef STRATA_SCHEDULER_JOB_INDEX_FINGERPRINT_H_
#define STRATA_SCHEDULER_JOB_INDEX_FINGERPRINT_H_

#include <cstdint>

#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

// Of files (path, size, fingerprint), tasks, lines and shape, of both indexes. Never 0. Equal
// indexes have equal ones in all versions: servers keep it on disk.
uint64_t IndexFingerprint(const JobIndexRecord& index);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_INDEX_FINGERPRINT_H_
