// Files and folders that one opener has at a time.
#ifndef STRATA_PROTO_RUNTIME_FILES_LOCKED_FILE_H_
#define STRATA_PROTO_RUNTIME_FILES_LOCKED_FILE_H_

#include <string>
#include <vector>

#include "proto/runtime/files/file_system.h"

namespace strata {

// Opens `path` to read and write, makes it where it is missing, and locks it for as long as the
// descriptor is open. The descriptor, or -errno; -EWOULDBLOCK: somebody else has it.
int OpenLocked(const std::string& path, FileSystem& files = FileSystem::Kernel());

// The same of a file to be written anew, which gets another name, or goes, when it is whole: it is
// emptied, and is the one of that name. So what a dead writer left is taken over. Who renames or
// removes it does so before closing it.
int OpenAlone(const std::string& path, FileSystem& files = FileSystem::Kernel());

// A file that becomes NAME when it is whole, where several may write NAME at a time and the last
// one counts. The first of UnfinishedNames that nobody has, opened as OpenAlone does; so no two
// write to one file, and what a dead writer left is taken over. Where the file system locks
// nothing, or does not say whose it is, it is the first, whoever has it.
struct UnfinishedFile {
  std::string path;
  int fd = -1;  // or -errno; -EWOULDBLOCK: others have all of them
};
UnfinishedFile OpenUnfinished(const std::string& name, FileSystem& files = FileSystem::Kernel());
// NAME.tmp, NAME.1.tmp, NAME.2.tmp, NAME.3.tmp.
std::vector<std::string> UnfinishedNames(const std::string& name);

// A folder that is there, for as long as the descriptor is open. Where the file system does not
// lock folders, the errno says so.
int LockFolderSurely(const std::string& path, FileSystem& files = FileSystem::Kernel());
// The same, but nobody is kept out where the file system does not lock folders.
int LockFolder(const std::string& path, FileSystem& files = FileSystem::Kernel());

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_LOCKED_FILE_H_
