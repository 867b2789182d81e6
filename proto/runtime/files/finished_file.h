// Whether the files of a cut are there before a manifest says so.
#ifndef STRATA_PROTO_RUNTIME_FILES_FINISHED_FILE_H_
#define STRATA_PROTO_RUNTIME_FILES_FINISHED_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "proto/runtime/files/file_system.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata {

// Of every file that the manifest names, reads the size and the last bytes, not the contents.
// DATA_LOSS: one is not in `folder`, has another size than the manifest says, or does not end as a
// finished file of that size does; names it. Others: PlainFileError's.
absl::Status CheckFinished(const std::string& folder, const Manifest& manifest,
                           FileSystem& files = FileSystem::Kernel());

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_FINISHED_FILE_H_
