// Which errors of files may pass by themselves.
// Tested by tests/proto/runtime/files/folders_test.cc
#ifndef STRATA_PROTO_RUNTIME_FILES_MAY_PASS_H_
#define STRATA_PROTO_RUNTIME_FILES_MAY_PASS_H_

#include "absl/status/status.h"

namespace strata {

// Whether a later try of the same thing may work though nobody changes what was asked for: a disk
// or a quota that is full, a device or a mount that does not answer or answers with errors, a
// process that begins again. Not: no right to write, a place that is none, a read-only file system,
// damage. A code that is no error, or not known, is none of these.
bool MayPass(absl::StatusCode code);
inline bool MayPass(const absl::Status& status) { return MayPass(status.code()); }

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_MAY_PASS_H_
