// Whose certificates lie in a folder of them.
// Tested by tests/proto/runtime/credentials/certificate_list_test.cc
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_ROLE_FOLDERS_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_ROLE_FOLDERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

// The names in a folder, ascending; none where it is missing.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder, FileSystem& files);

// "ROLE/NAME" of each that has a folder of its own there, by role and name.
absl::StatusOr<std::vector<std::string>> IdentitiesIn(const std::string& folder, FileSystem& files);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_ROLE_FOLDERS_H_
