// job.proto as protoc reads it, comments included; made when Strata is built, so it is never stale.
// Tested by tests/tools/cli/describe/explain_test.cc
#ifndef STRATA_TOOLS_CLI_DESCRIBE_JOB_DESCRIPTOR_H_
#define STRATA_TOOLS_CLI_DESCRIBE_JOB_DESCRIPTOR_H_

#include "absl/strings/string_view.h"

namespace strata {

// A serialized google.protobuf.FileDescriptorSet with source_code_info; static.
absl::string_view JobDescriptorSet();

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_DESCRIBE_JOB_DESCRIPTOR_H_
