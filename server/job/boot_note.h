// Whether the end of a copy's log may be gone (rule R17 of tests/model/README.md): a log that no
// commit syncs outlives kills, and not the start of its machine anew. `BOOT`, beside OPEN, says
// under which start the log was open last, and whether it was closed.
#ifndef STRATA_SERVER_JOB_BOOT_NOTE_H_
#define STRATA_SERVER_JOB_BOOT_NOTE_H_

#include <string>

#include "absl/status/status.h"

namespace strata::server {

// `folder`: of the generation. `boot_id`: MachineId (proto/runtime/files/machine_id.h); where that
// is not known nothing is noted and nothing is lost. Errors are those of the files, and name them.

// OK: what was appended last is there. DATA_LOSS: the machine was started anew while the log was
// open. A folder without the note is of an earlier version, of which nobody knows.
absl::Status CheckLogEnd(const std::string& folder, const std::string& boot_id);

// Before anything is appended: durable when it returns.
absl::Status NoteLogOpen(const std::string& folder, const std::string& boot_id);

// After the last append: has the disk take the log and the images, and notes that.
absl::Status NoteLogClosed(const std::string& folder, const std::string& boot_id);

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_BOOT_NOTE_H_
