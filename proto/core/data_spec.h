// Defaults and limits of spec.data.
#ifndef STRATA_PROTO_CORE_DATA_SPEC_H_
#define STRATA_PROTO_CORE_DATA_SPEC_H_

#include "absl/status/status.h"
#include "proto/strata/job.pb.h"

namespace strata::spec {

// See ResolveJob (job_spec.h).
absl::Status ResolveData(DataSpec& data);

// Whether one of the files is "-".
bool ReadsStandardInput(const DataSpec& data);

}  // namespace strata::spec

#endif  // STRATA_PROTO_CORE_DATA_SPEC_H_
