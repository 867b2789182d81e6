// Which files a job's list of paths, folders and globs means.
// Tested by tests/worker/data/files/text_files_test.cc
#ifndef STRATA_WORKER_DATA_FILES_FILE_LIST_H_
#define STRATA_WORKER_DATA_FILES_FILE_LIST_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/job_places.h"

namespace strata {

// Whether a path may be read, asked before it is looked at. Empty: any may.
using MayRead = std::function<absl::Status(const std::string& path)>;

struct FileListOptions {
  MayRead may_read = nullptr;
  // What will be written, whether it is there or not: no folder and no wildcard may give it, or it
  // would be read as one of the others, at once or the next time.
  std::vector<WrittenFile> written = {};
};

// The files that `paths` mean, in their order:
//   a folder: the files in it, by name; it has no folder in it, for nothing is left out unsaid;
//   a path with *, ? or [...] that is no file itself: what matches, by path; each stands for
//     characters of one name, and a match that is a folder for its files; a part of the path that
//     is there as it is written, as a folder "d[1]" is, stands for that alone;
//   all else, "-" too: the path itself, whether there is a file or not.
// Names that begin with "." or "_" are left out where a folder or a wildcard gives them.
// INVALID_ARGUMENT begins with `field` and the number of the path: a glob or a folder without
// files, or that gives a pipe or a device; a folder in a folder; "**"; a file that two paths give
// of which one is no plain path; one that is written. Others are those of `may_read`
// and of the file system: what a folder names and cannot be looked at is never left out.
absl::StatusOr<std::vector<std::string>> ListFiles(absl::string_view field,
                                                   const std::vector<std::string>& paths,
                                                   const FileListOptions& options = {},
                                                   FileSystem& files = FileSystem::Kernel());

}  // namespace strata

#endif  // STRATA_WORKER_DATA_FILES_FILE_LIST_H_
