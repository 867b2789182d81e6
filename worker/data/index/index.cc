#include "worker/data/index/index.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "worker/data/files/bytes_hash.h"
#include "worker/data/files/data_file.h"
#include "worker/data/formats/csv_columns.h"
#include "worker/data/formats/line_parser.h"
#include "worker/data/formats/numbered_columns.h"
#include "worker/data/formats/parser_factory.h"
#include "worker/data/formats/vocabulary.h"
#include "worker/data/index/feature_counter.h"
#include "worker/data/index/target_search.h"
#include "worker/data/index/vocabularies.h"

namespace strata {
namespace {

constexpr size_t kReadBytes = size_t{4} << 20;

// Cuts one file's lines into tasks.
class TaskCutter {
 public:
  TaskCutter(uint32_t file, InputIndex* index) : file_(file), index_(index) {}

  // `line`: with its newline, if it has one.
  void Add(uint64_t offset, absl::string_view line, uint64_t line_number) {
    if (task_ == nullptr || task_->lines() == kTaskLines) {
      End();
      task_ = index_->add_tasks();
      task_->set_file(file_);
      task_->set_offset(offset);
      task_->set_first_line(line_number);
    }
    task_->set_bytes(task_->bytes() + line.size());
    hash_.Add(line);
    task_->set_lines(task_->lines() + 1);
    index_->set_lines(index_->lines() + 1);
  }

  // The file has no more lines.
  void End() {
    if (task_ != nullptr) task_->set_hash(hash_.value());
    hash_.Reset();
  }

  bool empty() const { return task_ == nullptr; }

 private:
  const uint32_t file_;
  InputIndex* const index_;
  InputTask* task_ = nullptr;
  BytesHash hash_;  // of the task at hand
};

class Indexer {
 public:
  Indexer(const JobSpec& spec, TextFiles* files, const IndexOptions& options, InputIndex* index)
      : spec_(spec),
        data_(spec.data()),
        files_(files),
        options_(options),
        cancelled_(options.cancelled),
        index_(index),
        features_(data_),
        targets_(spec, options.labels) {}

  absl::Status AddVocabularies();
  absl::Status AddFile(const std::string& path);
  absl::Status SetShape();

 private:
  // Bytes of a byte order mark.
  static absl::StatusOr<uint64_t> FirstByte(const DataFile& file);
  absl::Status AddLines(const DataFile& file, uint64_t offset, TaskCutter* tasks);
  absl::Status AddLine(const DataFile& file, absl::string_view line, uint64_t number);

  bool counts_features() const { return !IsCriteo(data_) && data_.format() != "csv"; }

  const JobSpec& spec_;
  const DataSpec& data_;
  TextFiles* const files_;
  const IndexOptions& options_;
  const Cancelled& cancelled_;
  InputIndex* const index_;
  FeatureCounter features_;
  Vocabularies vocabularies_;
  TargetSearch targets_;
  bool have_first_line_ = false;
  std::string first_line_;              // of the first file, where NeedsFirstLine
  std::unique_ptr<LineParser> parser_;  // of it
};

absl::StatusOr<uint64_t> Indexer::FirstByte(const DataFile& file) {
  char start[3] = {};
  const size_t size = static_cast<size_t>(std::min<uint64_t>(sizeof(start), file.size()));
  if (absl::Status s = file.Read(0, size, start); !s.ok()) return s;
  return absl::string_view(start, size) == "\xef\xbb\xbf" ? 3 : 0;
}

absl::Status Indexer::AddLine(const DataFile& file, absl::string_view line, uint64_t number) {
  if (counts_features()) features_.Add(line);
  if (number > 1 || !NeedsFirstLine(data_)) {
    if (targets_.wanted()) targets_.Add(*parser_, line, file.path(), number);
    return absl::OkStatus();
  }
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (!have_first_line_) {
    have_first_line_ = true;
    first_line_ = std::string(line);
    absl::StatusOr<std::unique_ptr<LineParser>> parser =
        MakeLineParser(spec_, options_.training, first_line_, vocabularies_);
    if (!parser.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.path(), ":1: ", parser.status().message()));
    }
    parser_ = *std::move(parser);
  }
  if (!HasHeader(data_)) {
    if (targets_.wanted()) targets_.Add(*parser_, line, file.path(), number);
    return absl::OkStatus();
  }
  if (line == first_line_) return absl::OkStatus();
  const std::string other = HeaderDifference(line, first_line_, ColumnDelimiter(data_));
  if (other.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(file.path(), ":1: the header differs from that of ",
                   NameForMessages(index_->files(0).path()), ": ", other,
                   "; all files of a job must name the same columns in the same order: mend it, or "
                   "start a job on such files alone (spec.model.initFrom)"));
}

absl::Status Indexer::AddLines(const DataFile& file, uint64_t offset, TaskCutter* tasks) {
  std::vector<char> buffer;
  size_t held = 0;      // bytes of an unfinished line at the front of the buffer
  uint64_t number = 0;  // of the line just seen, from 1
  uint64_t read_at = offset;
  uint64_t line_at = offset;
  while (read_at < file.size() || held > 0) {
    const bool last = file.size() - read_at <= kReadBytes;
    const size_t size = last ? static_cast<size_t>(file.size() - read_at) : kReadBytes;
    buffer.resize(held + size);
    if (absl::Status s = StillWanted(cancelled_, file.path()); !s.ok()) return s;
    if (absl::Status s = file.Read(read_at, size, buffer.data() + held); !s.ok()) return s;
    read_at += size;
    const char* at = buffer.data();
    const char* const end = at + buffer.size();
    const char* scan = at + held;
    while (at < end) {
      const char* newline = static_cast<const char*>(
          scan < end ? std::memchr(scan, '\n', static_cast<size_t>(end - scan)) : nullptr);
      const size_t text = static_cast<size_t>((newline != nullptr ? newline : end) - at);
      if (text > kMaxLineBytes) {
        return absl::InvalidArgumentError(absl::StrCat(
            file.path(), ":", number + 1, ": the line is longer than the limit of ", kMaxLineBytes,
            " bytes; is spec.data.format right, and does the file have line ends?"));
      }
      if (newline == nullptr && !last) break;
      const uint64_t bytes = text + (newline != nullptr ? 1 : 0);
      ++number;
      if (absl::Status s = AddLine(file, {at, text}, number); !s.ok()) return s;
      if (number > 1 || !HasHeader(data_)) tasks->Add(line_at, {at, bytes}, number);
      line_at += bytes;
      at += bytes;
      scan = at;
    }
    held = static_cast<size_t>(end - at);
    std::memmove(buffer.data(), at, held);
  }
  return absl::OkStatus();
}

absl::Status Indexer::AddVocabularies() {
  absl::StatusOr<Vocabularies> loaded = LoadVocabularies(
      spec_, files_, index_, {.beginnings = options_.beginnings, .cancelled = options_.cancelled});
  if (!loaded.ok()) return loaded.status();
  vocabularies_ = *std::move(loaded);
  return absl::OkStatus();
}

absl::Status Indexer::AddFile(const std::string& path) {
  if (absl::Status s = StillWanted(cancelled_, path); !s.ok()) return s;
  absl::StatusOr<std::unique_ptr<DataFile>> raw = files_->OpenRaw(path);
  if (!raw.ok()) return raw.status();
  absl::StatusOr<uint64_t> fingerprint = (*raw)->Fingerprint();
  if (!fingerprint.ok()) return fingerprint.status();
  absl::StatusOr<std::shared_ptr<const DataFile>> text = files_->Open(path, cancelled_);
  if (!text.ok()) return text.status();
  const DataFile& f = **text;
  absl::StatusOr<uint64_t> start = FirstByte(f);
  if (!start.ok()) return start.status();
  const uint32_t number = static_cast<uint32_t>(index_->files_size());
  InputFile* entry = index_->add_files();
  entry->set_path(path);
  entry->set_bytes((*raw)->size());
  entry->set_fingerprint(*fingerprint);
  TaskCutter tasks(number, index_);
  if (absl::Status s = AddLines(f, *start, &tasks); !s.ok()) return s;
  tasks.End();
  if (tasks.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("input file ", f.path(), f.size() == 0 ? " is empty" : " has no line of data",
                     "; write data to it, or move it out of what spec.data names"));
  }
  return absl::OkStatus();
}

absl::Status Indexer::SetShape() {
  absl::Status s = targets_.Check(FilesForMessages(*index_), TargetSearch::Remedy::kJob);
  if (!s.ok()) return s;
  DataShape* shape = index_->mutable_shape();
  if (const std::optional<DataShape> fixed = FixedShape(spec_)) {
    *shape = *fixed;
    if (data_.format() == "csv") {
      const auto columns =
          ReadCsvColumns(first_line_, ColumnDelimiter(data_), HasHeader(data_), options_.training);
      if (!columns.ok()) return columns.status();  // never: the parser was made of it
      if (!columns->header) shape->set_columns(static_cast<uint32_t>(columns->names.size()));
      NumberColumns(spec_, *columns, shape);
    }
  } else {
    const absl::StatusOr<uint32_t> fields = features_.Fields(index_->files(0).path());
    if (!fields.ok()) return fields.status();
    shape->set_fields(*fields);
  }
  return absl::OkStatus();
}

absl::Status CheckFingerprint(absl::string_view what, const InputFile& entry,
                              const TextFiles& files) {
  absl::StatusOr<std::unique_ptr<DataFile>> file = files.OpenRaw(entry.path());
  if (!file.ok()) return file.status();
  absl::StatusOr<uint64_t> fingerprint = (*file)->Fingerprint();
  if (!fingerprint.ok()) return fingerprint.status();
  if ((*file)->size() == entry.bytes() && *fingerprint == entry.fingerprint()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(what, " ", (*file)->path(), " has changed since the job began (", entry.bytes(),
                   " bytes then, ", (*file)->size(), " now); restore it, or submit a new job"));
}

}  // namespace

absl::StatusOr<InputIndex> BuildIndex(const JobSpec& spec, const std::vector<std::string>& files,
                                      TextFiles* text_files, const IndexOptions& options) {
  if (files.empty()) return absl::InvalidArgumentError("no input files; set spec.data.train");
  InputIndex index;
  Indexer indexer(spec, text_files, options, &index);
  if (absl::Status s = indexer.AddVocabularies(); !s.ok()) return s;
  for (const std::string& path : files) {
    if (absl::Status s = indexer.AddFile(path); !s.ok()) return s;
  }
  if (absl::Status s = indexer.SetShape(); !s.ok()) return s;
  return index;
}

absl::Status CheckFingerprints(const InputIndex& index, const TextFiles& files) {
  for (const InputFile& entry : index.files()) {
    if (absl::Status s = CheckFingerprint("input file", entry, files); !s.ok()) return s;
  }
  for (const InputFile& entry : index.vocabularies()) {
    if (absl::Status s = CheckFingerprint("vocabulary file", entry, files); !s.ok()) {
      return OfVocabulary(s, "restore it, or submit a new job");
    }
  }
  return absl::OkStatus();
}

}  // namespace strata
