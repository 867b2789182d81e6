// Files of a job's data that are read twice.
#ifndef STRATA_PROTO_JOB_SAME_FILES_H_
#define STRATA_PROTO_JOB_SAME_FILES_H_

#include <string>

#include "proto/strata/control.pb.h"

namespace strata {

// Whether a file to evaluate on is trained on as well, or a list has a file twice, by one name or
// by two: a warning in one line, or "". By size and fingerprint (InputFile), so links and copies
// are seen.
std::string SameFiles(const InputIndex& train, const InputIndex& eval);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_SAME_FILES_H_
