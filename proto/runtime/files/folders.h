// Folders: made with those above them, listed, removed with what is in them. No call throws, waits
// for a pipe, or follows a link to what it removes.
#ifndef STRATA_PROTO_RUNTIME_FILES_FOLDERS_H_
#define STRATA_PROTO_RUNTIME_FILES_FOLDERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

// Errors of all are those of ErrnoStatus and name the path.

// Makes the folder and those above it where they are missing.
absl::Status MakeFolders(const std::string& path, FileSystem& files = FileSystem::Kernel());
// The negative errno, or 0.
int TryMakeFolders(const std::string& path, FileSystem& files = FileSystem::Kernel());
// The same; and the names of those that it makes outlast a loss of power when it returns, as far as
// this process may open what is above them.
absl::Status MakeDurableFolders(const std::string& path, FileSystem& files = FileSystem::Kernel());
int TryMakeDurableFolders(const std::string& path, FileSystem& files = FileSystem::Kernel());

// The names in it, ascending. NOT_FOUND: there is none.
absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path,
                                                    FileSystem& files = FileSystem::Kernel());

// Removes a file, a link, or a folder with all that is in it. Missing is fine.
absl::Status RemoveTree(const std::string& path, FileSystem& files = FileSystem::Kernel());

// False: nothing is there, or what is above it is no folder.
absl::StatusOr<bool> IsThere(const std::string& path, FileSystem& files = FileSystem::Kernel());

// NOT_FOUND: there is none.
absl::StatusOr<uint64_t> FileBytes(const std::string& path,
                                   FileSystem& files = FileSystem::Kernel());

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_FOLDERS_H_
