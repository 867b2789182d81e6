#include "scheduler/store/lock_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/runtime/files/record_file.h"

namespace strata::scheduler {
namespace {

constexpr absl::string_view kPrefix = "LOCK.";
constexpr uint64_t kMaxBytes = uint64_t{1} << 16;
constexpr uint32_t kFormat = 1;
constexpr int kLooks = 3;
// No scheduler comes there, and cuts are counted from multiples of numbers.
constexpr uint64_t kMostNumber = uint64_t{1} << 40;

std::string PathOf(const std::string& directory, uint64_t number) {
  return absl::StrCat(directory, "/", kPrefix, number);
}

// Of LOCK.7 and of what was written on the way to it (LOCK.7.tmp); 0: neither. `whole`: the former.
// One that is too large for a number is the largest.
uint64_t NumberOf(absl::string_view name, bool* whole) {
  if (!absl::ConsumePrefix(&name, kPrefix)) return 0;
  const size_t digits = static_cast<size_t>(
      std::find_if_not(name.begin(), name.end(), absl::ascii_isdigit) - name.begin());
  *whole = digits == name.size();
  uint64_t number = 0;
  if (absl::SimpleAtoi(name.substr(0, digits), &number)) return number;
  return digits > 0 ? UINT64_MAX : 0;
}

absl::StatusOr<std::vector<std::string>> Names(const std::string& directory, FileSystem& files) {
  std::vector<std::string> names;
  const int listed = files.List(directory, names);
  if (listed < 0 && listed != -ENOENT) return PlainFileError(-listed, "list", directory);
  return names;
}

absl::StatusOr<uint64_t> Highest(const std::string& directory, FileSystem& files) {
  const auto names = Names(directory, files);
  if (!names.ok()) return names.status();
  uint64_t highest = 0;
  for (const std::string& name : *names) {
    bool whole = false;
    const uint64_t number = NumberOf(name, &whole);
    if (!whole) continue;
    if (number >= kMostNumber) {
      return absl::FailedPreconditionError(
          absl::StrCat(directory, "/", name,
                       " is no scheduler's: locks do not come to such numbers; remove it"));
    }
    highest = std::max(highest, number);
  }
  return highest;
}

// What is in the way of nobody: it may stay.
void RemoveBelow(const std::string& directory, uint64_t number, FileSystem& files) {
  const auto names = Names(directory, files);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    bool whole = false;
    const uint64_t of = NumberOf(name, &whole);
    if (of != 0 && of < number) files.Remove(absl::StrCat(directory, "/", name));
  }
}

bool SameOwner(const CheckpointLock& a, const CheckpointLock& b) {
  return a.cluster_id() == b.cluster_id() && a.job_uid() == b.job_uid();
}

// And by the same process of its scheduler.
bool SameHolder(const CheckpointLock& a, const CheckpointLock& b) {
  return SameOwner(a, b) && a.term() == b.term() && a.start_id() == b.start_id();
}

// Whether the number was free and is ours now.
absl::StatusOr<bool> Make(const std::string& directory, uint64_t number,
                          const CheckpointLock& record, FileSystem& files) {
  const std::string path = PathOf(directory, number);
  const std::string written =
      absl::StrCat(path, ".", record.job_uid(), ".", record.term(), ".", record.start_id());
  if (absl::Status s = WriteRecordFile(written, record, files); !s.ok()) return s;
  const int linked = files.Link(written, path);
  files.Remove(written);
  if (linked == 0) return true;
  if (linked == -EEXIST) {
    // A share may say so of a link that it has just made, and whose answer was lost.
    CheckpointLock there;
    return ReadRecordFile(path, "lock", &there, files).ok() && SameHolder(there, record);
  }
  if (linked != -EPERM && linked != -EOPNOTSUPP && linked != -ENOSYS && linked != -EMLINK) {
    return PlainFileError(-linked, "link", path);
  }
  const int made = files.Open(path, O_WRONLY | O_CREAT | O_EXCL);
  if (made == -EEXIST) return false;
  if (made < 0) return PlainFileError(-made, "create", path);
  files.Close(made);
  if (absl::Status s = WriteRecordFile(path, record, files); !s.ok()) {
    files.Remove(path);
    return s;
  }
  return true;
}

bool Counts(const LockSeen& seen, uint64_t number, const CheckpointLock& record) {
  if (seen.number > number) return false;
  if (!seen.lock) return true;
  return SameHolder(*seen.lock, record) ||
         (SameOwner(*seen.lock, record) && seen.lock->term() < record.term());
}

}  // namespace

absl::StatusOr<LockSeen> LookAtLock(const std::string& directory, FileSystem& files) {
  // One that goes between the two looks was lower than another by then.
  for (int i = 0; i < kLooks; ++i) {
    const auto number = Highest(directory, files);
    if (!number.ok()) return number.status();
    LockSeen seen{.number = *number};
    if (seen.number == 0) return seen;
    const std::string path = PathOf(directory, seen.number);
    auto text = ReadPlainFile(path, kMaxBytes, files);
    if (absl::IsNotFound(text.status())) continue;
    if (absl::IsDataLoss(text.status())) return seen;  // too long
    if (!text.ok()) return text.status();
    seen.text = *std::move(text);
    CheckpointLock lock;
    const absl::Status read = ReadRecordFile(path, "lock", &lock, files);
    if (absl::IsNotFound(read)) continue;
    if (!read.ok() && !absl::IsDataLoss(read)) return read;
    if (read.ok() && lock.format() == kFormat) seen.lock = lock;
    return seen;
  }
  return absl::AbortedError(
      absl::StrCat("the locks in ", directory, " come and go; look who writes there"));
}

absl::StatusOr<bool> TakeLock(const std::string& directory, uint64_t number,
                              const CheckpointLock& record, FileSystem& files) {
  const auto made = Make(directory, number, record, files);
  if (!made.ok() || !*made) return made;
  if (absl::Status s = SyncPlainFolder(directory, files); !s.ok()) return s;
  const auto highest = Highest(directory, files);
  if (!highest.ok()) return highest.status();
  if (*highest > number) {  // free long ago, and taken since
    files.Remove(PathOf(directory, number));
    return false;
  }
  RemoveBelow(directory, number, files);
  return true;
}

absl::StatusOr<LockSeen> RenewLock(const std::string& directory, uint64_t number,
                                   const CheckpointLock& record, FileSystem& files) {
  auto seen = LookAtLock(directory, files);
  if (!seen.ok() || !Counts(*seen, number, record)) return seen;
  const std::string path = PathOf(directory, number);
  absl::Status s = WriteRecordFile(path, record, files);
  if (absl::IsNotFound(s)) {
    s = MakeDurableFolders(directory, files);
    if (s.ok()) s = WriteRecordFile(path, record, files);
  }
  if (!s.ok()) return s;
  seen = LookAtLock(directory, files);
  if (seen.ok() && seen->number > number) files.Remove(path);
  return seen;
}

absl::Status ReleaseLock(const std::string& directory, uint64_t number,
                         const CheckpointLock& record, FileSystem& files) {
  const auto seen = LookAtLock(directory, files);
  if (!seen.ok()) return seen.status();
  if (seen->number != number || !Counts(*seen, number, record)) return absl::OkStatus();
  const absl::Status s = WriteRecordFile(PathOf(directory, number), record, files);
  return absl::IsNotFound(s) ? absl::OkStatus() : s;
}

}  // namespace strata::scheduler
