// Files and folders that are closed to everybody but their owner, and links that are led elsewhere
// in one step.
#ifndef STRATA_PROTO_RUNTIME_FILES_PRIVATE_FILES_H_
#define STRATA_PROTO_RUNTIME_FILES_PRIVATE_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

// Errors of all are those of PlainFileError and name the path.

// Makes a folder of mode 0700 whose name outlasts a loss of power. A folder that is there already
// stays as it is. What is above it must be there.
absl::Status MakePrivateFolder(const std::string& path, FileSystem& files = FileSystem::Kernel());

// Makes a file of mode 0600, and brings its text to the device. Nobody but the owner may open it
// at any moment, if its folder is private. FAILED_PRECONDITION: there is one; it stays as it is.
// After an error there is none. The name is not durable before its folder is synced.
absl::Status WritePrivateFile(const std::string& path, absl::string_view text,
                              FileSystem& files = FileSystem::Kernel());

// PERMISSION_DENIED unless the file is closed to everybody but its owner, its group included. The
// text says the mode and how to change it.
absl::Status CheckPrivate(const std::string& path, FileSystem& files = FileSystem::Kernel());

// Makes `path` a link to `target`, in one step: whoever follows it meanwhile arrives where it led
// before, or at `target`. One caller at a time. After an error it leads where it led before, unless
// only the folder's sync failed: then nobody knows for how long it leads to `target`.
absl::Status ReplaceLink(const std::string& target, const std::string& path,
                         FileSystem& files = FileSystem::Kernel());

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_PRIVATE_FILES_H_
