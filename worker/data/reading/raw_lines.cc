#include "worker/data/reading/raw_lines.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/data/formats/line_parser.h"

namespace strata {
namespace {

constexpr uint64_t kMinReadBytes = 64 << 10;
constexpr uint64_t kMaxReadBytes = 8 << 20;

}  // namespace

absl::StatusOr<InputTasks> InputTasks::From(const InputIndex& index) {
  InputTasks out;
  out.files.reserve(index.files_size());
  for (const InputFile& file : index.files()) {
    out.files.push_back(file.path());
    out.marks.push_back({file.bytes(), file.fingerprint()});
  }
  out.tasks.reserve(index.tasks_size());
  out.first.reserve(index.tasks_size() + 1);
  out.first.push_back(0);
  for (const InputTask& t : index.tasks()) {
    if (t.file() >= out.files.size() || t.lines() == 0 || t.bytes() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("input index: task ", out.tasks.size(), " names file ", t.file(), " of ",
                       out.files.size(), ", ", t.lines(), " lines, ", t.bytes(), " bytes"));
    }
    out.tasks.push_back({t.file(), t.lines(), t.offset(), t.bytes(), t.first_line(), t.hash()});
    out.first.push_back(out.first.back() + t.lines());
  }
  if (out.tasks.empty()) return absl::InvalidArgumentError("input index: no tasks");
  return out;
}

void RawLines::Clear() {
  bytes_.clear();
  lines_.clear();
  runs_.clear();
}

std::string RawLines::Where(size_t i, const InputTasks& input) const {
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), i,
                                      [](size_t at, const Run& run) { return at < run.first; });
  const Run& run = *(after - 1);
  const InputTasks::Task& task = input.tasks[run.task];
  return absl::StrCat(NameForMessages(input.files[task.file]), ":",
                      task.first_line + run.line + (i - run.first));
}

absl::Status TaskReader::OpenFile(uint32_t file) {
  if (file_ != nullptr && file_number_ == file) return absl::OkStatus();
  file_ = nullptr;
  absl::StatusOr<std::shared_ptr<const DataFile>> opened = files_->Open(input_->files[file]);
  if (!opened.ok()) return opened.status();
  std::shared_ptr<const DataFile> written = *opened;
  if ((*opened)->is_copy()) {
    absl::StatusOr<std::unique_ptr<DataFile>> raw = files_->OpenRaw(input_->files[file]);
    if (!raw.ok()) return raw.status();
    written = *std::move(raw);
  }
  if (absl::Status s = CheckIsIndexed(file, *written); !s.ok()) return s;
  file_ = *std::move(opened);
  written_ = std::move(written);
  file_number_ = file;
  return absl::OkStatus();
}

absl::Status TaskReader::CheckIsIndexed(uint32_t file, const DataFile& written) {
  const auto now = written.IdentityNow();
  if (!now.ok()) return now.status();
  const auto before = checked_.find(file);
  if (before != checked_.end() && before->second == *now) return absl::OkStatus();
  const absl::StatusOr<uint64_t> fingerprint = written.Fingerprint();
  const uint64_t bytes = std::get<2>(*now);
  const InputTasks::Mark& then = input_->marks[file];
  if (bytes == then.bytes && !fingerprint.ok()) return fingerprint.status();
  if (bytes != then.bytes || *fingerprint != then.fingerprint) {
    return absl::FailedPreconditionError(
        absl::StrCat("input file ", written.path(), " has changed since the job began (",
                     then.bytes, " bytes then, ", bytes, " now); restore it, or submit a new job"));
  }
  checked_.insert_or_assign(file, *now);
  return absl::OkStatus();
}

absl::Status TaskReader::Changed() const {
  return absl::FailedPreconditionError(
      absl::StrCat("input file ", file_->path(), " has changed since it was indexed (lines from ",
                   task().first_line, " on); restore it, or submit a new job"));
}

// What was read of it before may have been trained on: the job ends, and says so.
absl::Status TaskReader::CheckTask() const {
  if (line_ < task().lines) return absl::OkStatus();
  if (offset_ != task().bytes) return Changed();
  if (task().hash == 0 || task().hash == hash_.value()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "input file ", file_->path(), " has changed since it was indexed: lines ", task().first_line,
      " to ", task().first_line + task().lines - 1,
      " are others than then; restore it and, where training has read them, resume from a "
      "checkpoint of before, or submit a new job"));
}

absl::Status TaskReader::CheckRest() {
  std::vector<char> chunk;
  while (offset_ < task().bytes && task().hash != 0) {
    chunk.resize(std::min<uint64_t>(task().bytes - offset_, 4 * kMinReadBytes));
    absl::Status s = file_->Read(task().offset + offset_, chunk.size(), chunk.data());
    if (!s.ok()) return s;
    hash_.Add({chunk.data(), chunk.size()});
    offset_ += chunk.size();
    line_ = task().lines;
  }
  return CheckTask();
}

absl::Status TaskReader::Skip(uint32_t to) {
  std::vector<char> chunk;
  while (line_ < to) {
    const uint64_t rest = task().bytes - offset_;
    if (rest == 0) return Changed();
    chunk.resize(static_cast<size_t>(std::min<uint64_t>(rest, 4 * kMinReadBytes)));
    absl::Status s = file_->Read(task().offset + offset_, chunk.size(), chunk.data());
    if (!s.ok()) return s;
    const char* at = chunk.data();
    const char* const end = at + chunk.size();
    while (line_ < to) {
      const void* newline = std::memchr(at, '\n', static_cast<size_t>(end - at));
      if (newline == nullptr) {
        at = end;
        break;
      }
      at = static_cast<const char*>(newline) + 1;
      ++line_;
    }
    const size_t skipped = static_cast<size_t>(at - chunk.data());
    hash_.Add({chunk.data(), skipped});
    offset_ += skipped;
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> TaskReader::Split(size_t begin, size_t scan, uint32_t count, RawLines* out) {
  const char* const data = out->bytes_.data();
  const size_t end = out->bytes_.size();
  while (count > 0 && begin < end) {
    const char* newline = static_cast<const char*>(std::memchr(data + scan, '\n', end - scan));
    const size_t stop = newline != nullptr ? static_cast<size_t>(newline - data) : end;
    if (stop - begin > kMaxLineBytes) {
      return absl::InvalidArgumentError(absl::StrCat(file_->path(), ":", task().first_line + line_,
                                                     ": the line is longer than the limit of ",
                                                     kMaxLineBytes, " bytes"));
    }
    const uint64_t next = offset_ + (stop - begin) + (newline != nullptr ? 1 : 0);
    // Only the last line of a file may lack a newline.
    if (newline == nullptr && !(next == task().bytes && line_ + 1 == task().lines)) break;
    out->lines_.push_back({begin, static_cast<uint32_t>(stop - begin)});
    begin += static_cast<size_t>(next - offset_);
    scan = begin;
    offset_ = next;
    ++line_;
    --count;
  }
  return begin;
}

absl::Status TaskReader::Append(uint32_t task, uint32_t from, uint32_t count, RawLines* out) {
  return AppendUpTo(task, from, from + count, UINT64_MAX, out);
}

absl::Status TaskReader::AppendSome(uint32_t task, uint32_t from, uint64_t most_bytes,
                                    RawLines* out) {
  return AppendUpTo(task, from, input_->tasks[task].lines, most_bytes, out);
}

// The file is looked at after it was read: a look before says nothing of what is written meanwhile.
absl::Status TaskReader::AppendUpTo(uint32_t task, uint32_t from, uint32_t to, uint64_t most_bytes,
                                    RawLines* out) {
  const uint32_t file = input_->tasks[task].file;
  if (absl::Status s = OpenFile(file); !s.ok()) return s;
  const absl::Status read = ReadUpTo(task, from, to, most_bytes, out);
  const absl::Status indexed = CheckIsIndexed(file, *written_);
  return indexed.ok() ? read : indexed;
}

absl::Status TaskReader::ReadUpTo(uint32_t task_number, uint32_t from, uint32_t to,
                                  uint64_t most_bytes, RawLines* out) {
  const InputTasks::Task& next = input_->tasks[task_number];
  if (task_ != task_number || line_ > from) {
    task_ = task_number;
    line_ = 0;
    offset_ = 0;
    hash_.Reset();
  }
  if (absl::Status s = Skip(from); !s.ok()) return s;
  out->runs_.push_back({out->lines_.size(), task_number, from});
  const size_t first = out->bytes_.size();
  size_t begin = first;  // of the next line
  while (line_ < to && (line_ == from || out->bytes_.size() - first < most_bytes)) {
    const size_t held = out->bytes_.size() - begin;
    const uint64_t rest = next.bytes - offset_ - held;
    if (rest == 0) return Changed();
    // About as much as the lines need; all of the task when they are its last.
    const uint64_t wanted =
        to == next.lines ? rest : (to - line_) * (next.bytes / next.lines + 8) + kMinReadBytes / 4;
    const size_t size = static_cast<size_t>(std::min({rest, wanted, kMaxReadBytes, most_bytes}));
    if (out->bytes_.size() + size > kMaxRawBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(file_->path(), ":", next.first_line + line_,
                       ": the lines read at once pass the limit of ", kMaxRawBytes,
                       " bytes; lower spec.data.shuffle.bufferLines"));
    }
    const size_t scan = out->bytes_.size();
    out->bytes_.resize(scan + size);
    absl::Status s = file_->Read(next.offset + offset_ + held, size, out->bytes_.data() + scan);
    if (!s.ok()) return s;
    absl::StatusOr<size_t> split = Split(begin, scan, to - line_, out);
    if (!split.ok()) return split.status();
    hash_.Add({out->bytes_.data() + begin, *split - begin});
    begin = *split;
  }
  out->bytes_.resize(begin);
  return CheckTask();
}

}  // namespace strata
