// Small text files, whole.
#ifndef STRATA_TOOLS_CLI_BASE_TEXT_FILE_H_
#define STRATA_TOOLS_CLI_BASE_TEXT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace strata {

// An error of the system about `path`, from errno: NOT_FOUND, PERMISSION_DENIED,
// RESOURCE_EXHAUSTED (disk full), INTERNAL. The text is "path: reason".
absl::Status FileError(absl::string_view path, int error);

absl::StatusOr<std::string> ReadTextFile(const std::string& path);

// Makes the folders that are missing, writes a temporary file beside it and renames: readers see
// the old text or the new.
absl::Status WriteTextFile(const std::string& path, absl::string_view text);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_BASE_TEXT_FILE_H_
