// What a server notes of a job beside the files of a generation: enough for a scheduler that lost
// its records of the job to go on with it. `generation-G/NOTE`, a KeptJob
// (proto/strata/control.proto). Tested by tests/server/job/job_note_test.cc
#ifndef STRATA_SERVER_JOB_JOB_NOTE_H_
#define STRATA_SERVER_JOB_JOB_NOTE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/uid.h"
#include "proto/strata/control.pb.h"

namespace strata::server {

// What there is to note of a job that is opened; its spec has its defaults resolved.
KeptJob NoteOf(const ServerJobDirective& directive);

// Into the folder of its generation; durable when it returns. One that says the same stays. Errors
// name the path.
absl::Status WriteJobNote(const std::string& folder, const KeptJob& note);

// That of the newest generation that was opened in the job's folder. NOT_FOUND: it has none.
// DATA_LOSS: it is damaged, or of another generation than its folder. The texts name the path.
absl::StatusOr<KeptJob> ReadJobNote(const std::string& root, const JobIdentity& identity);

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_JOB_NOTE_H_
