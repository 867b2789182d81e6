// Sizes as job files and command lines write them.
// Tested by tests/proto/job/job_spec_test.cc
#ifndef STRATA_PROTO_JOB_CHECKS_BYTE_SIZE_H_
#define STRATA_PROTO_JOB_CHECKS_BYTE_SIZE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace strata {

// "4MiB", "1.5GiB", "1048576", "2GB" (powers of 1000 without the i). INVALID_ARGUMENT otherwise.
absl::StatusOr<uint64_t> ParseBytes(absl::string_view text);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_CHECKS_BYTE_SIZE_H_
