// Raw lines of indexed input in memory, and the reader that fetches them.
// Tested by tests/worker/data/reading/file_batch_source_test.cc
#ifndef STRATA_WORKER_DATA_READING_RAW_LINES_H_
#define STRATA_WORKER_DATA_READING_RAW_LINES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/strata/control.pb.h"
#include "worker/data/files/bytes_hash.h"
#include "worker/data/files/data_file.h"
#include "worker/data/files/text_files.h"

namespace strata {

// Most bytes of lines held at once by one reader: 1 GiB. (Lines of a few hundred bytes take 4 MiB
// per 16384.)
inline constexpr size_t kMaxRawBytes = size_t{1} << 30;

// An InputIndex as the readers use it. Immutable; any thread.
struct InputTasks {
  struct Task {
    uint32_t file = 0;
    uint32_t lines = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint64_t first_line = 0;  // in its file, from 1
    uint64_t hash = 0;        // as InputTask has it
  };

  std::vector<std::string> files;
  // (files): as InputFile has them.
  struct Mark {
    uint64_t bytes = 0;
    uint64_t fingerprint = 0;
  };
  std::vector<Mark> marks;
  std::vector<Task> tasks;
  std::vector<uint64_t> first;  // (tasks + 1): lines before each task, in file order

  // INVALID_ARGUMENT: the index contradicts itself.
  static absl::StatusOr<InputTasks> From(const InputIndex& index);
};

// Lines copied out of files, without their newlines.
class RawLines {
 public:
  void Clear();
  size_t size() const { return lines_.size(); }
  size_t bytes() const { return bytes_.size(); }
  absl::string_view line(size_t i) const {
    return {bytes_.data() + lines_[i].offset, lines_[i].bytes};
  }
  // Brings line i, or only where it lies, into the cache: shuffled lines are read in an order that
  // no hardware guesses.
  void PrefetchText(size_t i) const {
    const char* at = bytes_.data() + lines_[i].offset;
    for (uint32_t b = 0; b < lines_[i].bytes && b < 512; b += 64) __builtin_prefetch(at + b);
    __builtin_prefetch(at + lines_[i].bytes);
  }
  void PrefetchPlace(size_t i) const { __builtin_prefetch(&lines_[i]); }
  // "file:line" of line i, for messages.
  std::string Where(size_t i, const InputTasks& input) const;

 private:
  friend class TaskReader;
  struct Line {
    uint64_t offset;
    uint32_t bytes;
  };
  // Lines from index `first` on are lines `line`, `line` + 1, ... of the task.
  struct Run {
    size_t first;
    uint32_t task;
    uint32_t line;
  };
  std::vector<char> bytes_;
  std::vector<Line> lines_;
  std::vector<Run> runs_;
};

// Reads lines of tasks; continuing where the last call ended costs no second read. One thread at a
// time; keeps one file open, and what that is a copy of.
class TaskReader {
 public:
  TaskReader(const InputTasks* input, TextFiles* files) : input_(input), files_(files) {}

  // Appends lines from .. from + count - 1 of the task. FAILED_PRECONDITION: the file is not what
  // was indexed. INVALID_ARGUMENT: a line over kMaxLineBytes. RESOURCE_EXHAUSTED: `out` would pass
  // kMaxRawBytes.
  absl::Status Append(uint32_t task, uint32_t from, uint32_t count, RawLines* out);
  // Appends lines from `from` on, at least one, up to the end of the task or until they have about
  // so many bytes: less than twice as many, or one line more. Errors are those of Append.
  // REQUIRES: most_bytes >= 1, and the task has line `from`.
  absl::Status AppendSome(uint32_t task, uint32_t from, uint64_t most_bytes, RawLines* out);
  // Reads what is left of the task of the last call, and says whether all of it is what was
  // indexed: for who reads no more of it. Errors are those of Append. REQUIRES: the last call
  // succeeded.
  absl::Status CheckRest();

 private:
  // Lines from .. to - 1, or fewer, as AppendSome.
  absl::Status AppendUpTo(uint32_t task, uint32_t from, uint32_t to, uint64_t most_bytes,
                          RawLines* out);
  // The same of the open file.
  absl::Status ReadUpTo(uint32_t task, uint32_t from, uint32_t to, uint64_t most_bytes,
                        RawLines* out);
  absl::Status OpenFile(uint32_t file);
  // Whether the open file is what was indexed: whoever replaces it while the job trains, or writes
  // into it, changes neither its name nor, maybe, its lines' lengths. Costs a look at its size and
  // time, and its fingerprint where these are others than at the last look.
  absl::Status CheckIsIndexed(uint32_t file, const DataFile& written);
  // Moves line_ and offset_ forward to line `to` of task_.
  absl::Status Skip(uint32_t to);
  // Takes whole lines out of out->bytes_ from `begin` on (searching from `scan`), at most `count`;
  // returns where the unfinished rest begins.
  absl::StatusOr<size_t> Split(size_t begin, size_t scan, uint32_t count, RawLines* out);
  const InputTasks::Task& task() const { return input_->tasks[task_]; }
  absl::Status Changed() const;
  // FAILED_PRECONDITION: the task was read to its end, and is not what was indexed.
  absl::Status CheckTask() const;

  const InputTasks* const input_;
  TextFiles* const files_;
  std::shared_ptr<const DataFile> file_;  // null: none is open
  std::shared_ptr<const DataFile>
      written_;  // what others may write: itself, or what it is a copy of
  uint32_t file_number_ = 0;
  std::map<uint32_t, DataFileIdentity> checked_;  // by number: what was found to be the file
  // The next line to read and its place in the task.
  uint32_t task_ = 0;
  uint32_t line_ = 0;
  uint64_t offset_ = 0;
  BytesHash hash_;  // of the task's bytes before offset_
};

}  // namespace strata

#endif  // STRATA_WORKER_DATA_READING_RAW_LINES_H_
