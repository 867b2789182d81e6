#include "proto/runtime/files/durable_name.h"

#include <fcntl.h>

#include <cerrno>

namespace strata {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

int NameDurably(int fd, const std::string& temporary, const std::string& path, FileSystem& files) {
  int result = files.Sync(fd, SyncWhat::kAll);
  if (result == 0) result = files.Rename(temporary, path);
  if (result != 0) return result;
  const int folder = files.Open(FolderOf(path), O_RDONLY | O_DIRECTORY);
  // Whoever manages that place cares for it.
  if (folder == -EACCES || folder == -EPERM || folder == -kOutsideRoots) return 0;
  if (folder < 0) return folder;
  const int synced = files.Sync(folder, SyncWhat::kAll);
  files.Close(folder);
  return synced == -EINVAL ? 0 : synced;  // that file system keeps no folder back
}

}  // namespace strata
