// A file that holds one message: its JSON in one line (protobuf's mapping), then one line
// `crc32c <8 hexadecimal digits>` over the first without its newline.
#ifndef STRATA_PROTO_RUNTIME_FILES_RECORD_FILE_H_
#define STRATA_PROTO_RUNTIME_FILES_RECORD_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

// Replaces the file as a whole (WritePlainFile). Errors carry the path.
absl::Status WriteRecordFile(const std::string& path, const google::protobuf::Message& record,
                             FileSystem& files = FileSystem::Kernel());

// NOT_FOUND: no such file. DATA_LOSS: damaged; the text begins with `what`, names the file and says
// what is wrong. Fields that this program does not know are ignored.
absl::Status ReadRecordFile(const std::string& path, absl::string_view what,
                            google::protobuf::Message* record,
                            FileSystem& files = FileSystem::Kernel());

// The number `format` of such a file, 0 without one, whatever else is in it: what another version
// wrote may hold fields of the same names and of other kinds. Errors as of ReadRecordFile.
absl::StatusOr<uint64_t> ReadRecordFormat(const std::string& path, absl::string_view what,
                                          FileSystem& files = FileSystem::Kernel());

// UNIMPLEMENTED unless the file is of the format that this program reads: names the file and both.
absl::Status CheckFormat(absl::string_view what, absl::string_view path, uint64_t found,
                         uint64_t wanted);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_RECORD_FILE_H_
