// Which data a job trains on, in 64 bits.
#ifndef STRATA_SCHEDULER_JOB_INDEX_FINGERPRINT_H_
#define STRATA_SCHEDULER_JOB_INDEX_FINGERPRINT_H_

#include <cstdint>
#include <string>

#include "proto/strata/control.pb.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {

// Of files (path, size, fingerprint), tasks, lines and shape, of both indexes. Never 0. Equal
// indexes have equal ones in all versions: servers keep it on disk.
uint64_t IndexFingerprint(const JobIndexRecord& index);

// Of sizes and fingerprints of the files, in order, wherever they lie: 32 hexadecimal digits.
std::string DataFingerprint(const InputIndex& index);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_JOB_INDEX_FINGERPRINT_H_
