// Which data a job trains on, in 64 bits.
#ifndef STRATA_PROTO_JOB_INDEX_FINGERPRINT_H_
#define STRATA_PROTO_JOB_INDEX_FINGERPRINT_H_

#include <cstdint>
#include <string>

#include "proto/strata/control.pb.h"

namespace strata {

// Of files (path, size, fingerprint), tasks, lines and shape, of both indexes of a job. Never 0.
// Equal indexes have equal ones in all versions: servers keep it on disk.
uint64_t IndexFingerprint(const InputIndex& train, const InputIndex& eval);

// Of sizes and fingerprints of the files, in order, wherever they lie: 32 hexadecimal digits.
std::string DataFingerprint(const InputIndex& index);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_INDEX_FINGERPRINT_H_
