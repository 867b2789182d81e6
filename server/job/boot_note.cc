#include "server/job/boot_note.h"

#include <fcntl.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/record_file.h"
#include "server/job/boot_note.pb.h"
#include "storage/io/file_io.h"

namespace strata::server {
namespace {

constexpr char kBoot[] = "/BOOT";
constexpr char kWhat[] = "note of the machine's start";
constexpr uint32_t kBootFormat = 1;

absl::Status Write(const std::string& folder, const std::string& boot_id, bool closed) {
  BootRecord record;
  record.set_format(kBootFormat);
  record.set_boot_id(boot_id);
  record.set_closed(closed);
  if (absl::Status s = WriteRecordFile(folder + kBoot, record); !s.ok()) return s;
  return storage::SyncFolder(folder);
}

absl::Status SyncFiles(const std::string& folder) {
  const auto names = ListFolder(folder);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    const std::string path = absl::StrCat(folder, "/", name);
    FileInfo info;
    if (FileSystem::Kernel().Look(path, info) != 0 || info.kind != FileKind::kFile) continue;
    auto file = storage::File::Open(path, O_RDONLY);
    if (absl::IsNotFound(file.status())) continue;
    if (!file.ok()) return file.status();
    if (absl::Status s = file->SyncData(); !s.ok()) return s;
  }
  return storage::SyncFolder(folder);
}

}  // namespace

absl::Status CheckLogEnd(const std::string& folder, const std::string& boot_id) {
  BootRecord record;
  const std::string path = folder + kBoot;
  const absl::Status s = ReadRecordFile(path, kWhat, &record);
  if (absl::IsNotFound(s) || boot_id.empty()) return absl::OkStatus();
  if (!s.ok()) return s;
  if (absl::Status f = CheckFormat(kWhat, path, record.format(), kBootFormat); !f.ok()) return f;
  if (record.closed() || record.boot_id() == boot_id || STRATA_MUTATION("chain.any_boot_id")) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      folder, ": the machine was started anew (boot id ", record.boot_id(), ", now ", boot_id,
      ") while the log was open, and at level replicated no commit waits for the disk: the log's "
      "end may be gone"));
}

absl::Status NoteLogOpen(const std::string& folder, const std::string& boot_id) {
  return boot_id.empty() ? absl::OkStatus() : Write(folder, boot_id, /*closed=*/false);
}

absl::Status NoteLogClosed(const std::string& folder, const std::string& boot_id) {
  if (boot_id.empty()) return absl::OkStatus();
  if (absl::Status s = SyncFiles(folder + "/log"); !s.ok()) return s;
  if (absl::Status s = SyncFiles(folder); !s.ok()) return s;
  return Write(folder, boot_id, /*closed=*/true);
}

}  // namespace strata::server
