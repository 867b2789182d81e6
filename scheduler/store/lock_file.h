// The files LOCK.1, LOCK.2 ... of a checkpoint directory. Blocking file IO; any thread.
#ifndef STRATA_SCHEDULER_STORE_LOCK_FILE_H_
#define STRATA_SCHEDULER_STORE_LOCK_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/runtime/files/file_system.h"
#include "proto/strata/checkpoint.pb.h"
#include "scheduler/store/checkpoint_lock.h"

namespace strata::scheduler {

// Errors of all name the path; they are those of PlainFileError, and ABORTED: look again.

// A directory that is not there has no lock.
absl::StatusOr<LockSeen> LookAtLock(const std::string& directory,
                                    FileSystem& files = FileSystem::Kernel());

// Makes the lock of that number, by a link of a file written before; where the file system has no
// links, by a file that nobody had made. Lower ones go. False: it or a higher one is there.
absl::StatusOr<bool> TakeLock(const std::string& directory, uint64_t number,
                              const CheckpointLock& record,
                              FileSystem& files = FileSystem::Kernel());

// Replaces what the owner's own lock says, and looks before and after that whether it still counts.
// What counts then; of a lower number there is nothing left. The directory is made anew where it is
// missing.
absl::StatusOr<LockSeen> RenewLock(const std::string& directory, uint64_t number,
                                   const CheckpointLock& record,
                                   FileSystem& files = FileSystem::Kernel());

// The same without making anything anew: what is gone needs no release.
absl::Status ReleaseLock(const std::string& directory, uint64_t number,
                         const CheckpointLock& record, FileSystem& files = FileSystem::Kernel());

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_STORE_LOCK_FILE_H_
