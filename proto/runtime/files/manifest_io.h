// Checkpoints as folders: the manifest file, and what lies where. All calls do blocking file IO;
// any thread.
//
// A checkpoint directory (spec.checkpoint.directory) holds one folder per checkpoint, named
// `step-<12 digits>`. The folder is a checkpoint only when its manifest, MANIFEST.json, is there
// and whole: it is written last. MANIFEST.json is the JSON of the Manifest message, one line,
// followed by one line `crc32c <8 hexadecimal digits>` over the first line without its newline.
#ifndef STRATA_PROTO_RUNTIME_FILES_MANIFEST_IO_H_
#define STRATA_PROTO_RUNTIME_FILES_MANIFEST_IO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/core/ids.h"
#include "proto/core/uid.h"
#include "proto/runtime/files/file_system.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata {

inline constexpr char kManifestName[] = "MANIFEST.json";
// What a manifest is named while its checkpoint is removed: it says what is left to remove, and is
// no checkpoint's.
inline constexpr char kRemovedName[] = "MANIFEST.json.removed";
inline constexpr uint32_t kManifestFormat = 4;

// "step-000000000042". Names of steps beyond 12 digits sort otherwise than their numbers do.
std::string CheckpointFolderName(uint64_t step);
// Of a folder's plain name, which has 12 digits or more. Nothing: it is none of a checkpoint.
std::optional<uint64_t> StepOfFolder(absl::string_view name);

// The model hash of a checkpoint taken at `step`: the files' 128-bit sums plus the step, mod 2^128,
// as 32 hexadecimal digits.
std::string ModelHashText(const std::vector<CheckpointFile>& files, uint64_t step);

// Who wrote the file, as its manifest says. DATA_LOSS: it does not say.
absl::StatusOr<FileWriter> WriterOf(const CheckpointFile& file);
void SetWriter(const FileWriter& writer, CheckpointFile* file);

// The manifest's files as they are to be restored: an increment after what it follows.
std::vector<CheckpointFile> FilesInOrder(const Manifest& manifest);

// Writes `folder`/MANIFEST.json: temporary file, fsync, rename, fsync of the folder and of the one
// that holds it. Makes the folder where it is missing (a model may have no row). `manifest.format`
// is set here. Errors carry the path: RESOURCE_EXHAUSTED (disk full, no file handle left),
// PERMISSION_DENIED, INTERNAL (other system errors), INVALID_ARGUMENT (a file name with a folder in
// it). The manifest that was there stays then, except where a folder's fsync failed: it is the old
// one or the new one, each whole, and which of them a power failure leaves is not known.
absl::Status WriteManifest(const std::string& folder, const Manifest& manifest,
                           FileSystem& files = FileSystem::Kernel());

// NOT_FOUND: no manifest there (not a checkpoint). DATA_LOSS: damaged; names the file and what is
// wrong. UNIMPLEMENTED: another format, older or newer.
absl::StatusOr<Manifest> ReadManifest(const std::string& folder,
                                      FileSystem& files = FileSystem::Kernel());
// The same of a checkpoint whose removal did not come to its end. NOT_FOUND: there is none.
absl::StatusOr<Manifest> ReadRemovedManifest(const std::string& folder,
                                             FileSystem& files = FileSystem::Kernel());

// Every file that the manifest names: there, of its size and CRC32C. DATA_LOSS names the first that
// is not. Reads all bytes. Others: a size cannot be looked up now.
absl::Status VerifyCheckpointFiles(const std::string& folder, const Manifest& manifest);

struct CheckpointEntry {
  uint64_t step = 0;
  std::string folder;  // full path
  // That the step and the sizes were checked of: another one may have its place by now.
  Manifest manifest = {};
};

struct DamagedCheckpoint {
  uint64_t step = 0;  // as the folder's name says
  std::string folder;
  absl::Status error;  // DATA_LOSS, UNIMPLEMENTED, or why it cannot be read or looked at now
};

struct CheckpointList {
  std::vector<CheckpointEntry> complete;   // ascending by step
  std::vector<DamagedCheckpoint> damaged;  // ascending by step; have a manifest that is not valid
  bool empty_directory = true;             // false: something, of whatever kind, is in there
};

// Folders without a manifest are ignored; manifests are read and their sizes of files checked, not
// their contents. A directory that does not exist is an empty list.
absl::StatusOr<CheckpointList> ListCheckpoints(const std::string& directory);

// The complete one of the highest step, or nothing.
absl::StatusOr<std::optional<CheckpointEntry>> NewestCheckpoint(const std::string& directory);

// Removes a checkpoint: its manifest becomes kRemovedName (from then on it is no checkpoint), the
// files go that it names, then that, then the folder if nothing else is in it. Other files stay.
// One that did not come to its end is gone on with. OK when there is no manifest of either name.
// DATA_LOSS: a damaged manifest; nothing was removed.
absl::Status RemoveCheckpoint(const std::string& folder, FileSystem& files = FileSystem::Kernel());

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_MANIFEST_IO_H_
