#include "worker/data/reading/file_batch_source.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "worker/data/files/data_file.h"
#include "worker/data/files/text_files.h"
#include "worker/data/formats/line_parser.h"
#include "worker/data/formats/parser_factory.h"
#include "worker/data/formats/vocabulary.h"
#include "worker/data/index/epoch_plan.h"
#include "worker/data/index/job_epoch_plan.h"
#include "worker/data/index/vocabularies.h"
#include "worker/data/reading/raw_lines.h"

namespace strata {
namespace {

// Text of about so many bytes is read before it is parsed, where lines are read in order.
constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

// The epoch's stream: tasks in order and how many lines lie before each.
struct EpochStream {
  uint64_t epoch = 0;
  std::vector<uint32_t> tasks;
  std::vector<uint64_t> first;  // (tasks + 1)
};

// Lines of one shuffle block and their permuted order.
struct Block {
  Block(const InputTasks* input, TextFiles* files) : reader(input, files) {}

  TaskReader reader;
  RawLines raw;
  std::vector<uint32_t> order;
  bool loaded = false;
  uint64_t owner = 0;  // epoch of a lane's block, or TaskId
  uint64_t number = 0;
};

struct LaneState {
  LaneState(const InputTasks* input, TextFiles* files) : block(input, files) {}

  absl::Mutex mu;
  Block block ABSL_GUARDED_BY(mu);
};

// The way to the files, and the decompressed ones, which stay while the source lives.
struct OpenTexts {
  std::shared_ptr<TextFiles> files;
  std::vector<std::shared_ptr<const DataFile>> decompressed;
};

class FileBatchSource : public BatchSource {
 public:
  FileBatchSource(InputTasks input, EpochPlan plan, std::unique_ptr<LineParser> parser,
                  uint64_t max_bad_lines, OpenTexts texts);

  absl::Status Read(Step step, LaneId lane, Batch* out) override;
  absl::Status ReadWindow(TaskId task, uint64_t window, Batch* out) override;
  absl::StatusOr<uint64_t> ReadLines(uint64_t first, const BatchLimit& most, Batch* out) override;
  std::string first_bad_line() const override ABSL_LOCKS_EXCLUDED(bad_mu_);

 private:
  std::shared_ptr<const EpochStream> StreamOf(uint64_t epoch) ABSL_LOCKS_EXCLUDED(streams_mu_);
  // Fills `block` with block `number` of the lane's positions.
  absl::Status LoadLaneBlock(uint64_t epoch, LaneId lane, uint64_t number, Block* block);
  absl::Status LoadTaskBlock(TaskId task, uint32_t input_task, uint64_t number, Block* block);
  absl::Status ReadTaskWindow(TaskId task, uint64_t window, Block* block, Batch* out);
  std::unique_ptr<Block> TakeTaskBlock(TaskId task) ABSL_LOCKS_EXCLUDED(idle_mu_);
  void ReturnTaskBlock(std::unique_ptr<Block> block) ABSL_LOCKS_EXCLUDED(idle_mu_);
  // Has the piece hold line `line`, counted over all files.
  absl::Status LoadPiece(uint64_t line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequential_mu_);
  // The block's line that comes i-th in the permuted order.
  absl::Status ParseNext(const Block& block, uint64_t i, Batch* out);
  absl::Status ParseLine(const RawLines& raw, size_t i, Batch* out) ABSL_LOCKS_EXCLUDED(bad_mu_);

  const InputTasks input_;
  const EpochPlan plan_;
  const std::unique_ptr<LineParser> parser_;
  const uint64_t max_bad_lines_;
  const OpenTexts texts_;
  std::vector<std::unique_ptr<LaneState>> lanes_;  // by lane

  absl::Mutex streams_mu_;
  // At most kStreams, newest last.
  std::vector<std::shared_ptr<const EpochStream>> streams_ ABSL_GUARDED_BY(streams_mu_);
  static constexpr size_t kStreams = 2;

  absl::Mutex idle_mu_;
  // Blocks of tasks nobody reads now, at most as many as lanes, the least recently used first.
  std::vector<std::unique_ptr<Block>> idle_ ABSL_GUARDED_BY(idle_mu_);

  absl::Mutex sequential_mu_;
  TaskReader sequential_ ABSL_GUARDED_BY(sequential_mu_);
  // Lines of one task that lie behind each other, and the first one's number over all files.
  RawLines piece_ ABSL_GUARDED_BY(sequential_mu_);
  uint64_t piece_first_ ABSL_GUARDED_BY(sequential_mu_) = 0;

  mutable absl::Mutex bad_mu_;
  std::string first_bad_line_ ABSL_GUARDED_BY(bad_mu_);
};

FileBatchSource::FileBatchSource(InputTasks input, EpochPlan plan,
                                 std::unique_ptr<LineParser> parser, uint64_t max_bad_lines,
                                 OpenTexts texts)
    : input_(std::move(input)),
      plan_(std::move(plan)),
      parser_(std::move(parser)),
      max_bad_lines_(max_bad_lines),
      texts_(std::move(texts)),
      sequential_(&input_, texts_.files.get()) {
  for (uint32_t l = 0; l < plan_.options().lanes; ++l) {
    lanes_.push_back(std::make_unique<LaneState>(&input_, texts_.files.get()));
  }
}

std::string FileBatchSource::first_bad_line() const {
  absl::MutexLock lock(&bad_mu_);
  return first_bad_line_;
}

absl::Status FileBatchSource::ParseLine(const RawLines& raw, size_t i, Batch* out) {
  LineError error;
  if (parser_->Parse(raw.line(i), out, &error) != LineOutcome::kBad) return absl::OkStatus();
  ++out->bad_lines;
  absl::MutexLock lock(&bad_mu_);
  if (!first_bad_line_.empty() && max_bad_lines_ > 0) return absl::OkStatus();
  std::string text = absl::StrCat(raw.Where(i, input_), ":", error.column, ": ", error.reason);
  if (first_bad_line_.empty()) first_bad_line_ = text;
  if (max_bad_lines_ > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(text, " (mend the line, or set spec.data.maxBadLines to skip such lines)"));
}

absl::Status FileBatchSource::ParseNext(const Block& block, uint64_t i, Batch* out) {
  constexpr uint64_t kTextAhead = 4;
  constexpr uint64_t kPlaceAhead = 12;
  if (i + kPlaceAhead < block.order.size()) block.raw.PrefetchPlace(block.order[i + kPlaceAhead]);
  if (i + kTextAhead < block.order.size()) block.raw.PrefetchText(block.order[i + kTextAhead]);
  return ParseLine(block.raw, block.order[i], out);
}

std::shared_ptr<const EpochStream> FileBatchSource::StreamOf(uint64_t epoch) {
  absl::MutexLock lock(&streams_mu_);
  for (const auto& held : streams_) {
    if (held->epoch == epoch) return held;
  }
  auto stream = std::make_shared<EpochStream>();
  stream->epoch = epoch;
  stream->tasks = plan_.TaskOrder(epoch);
  stream->first.reserve(stream->tasks.size() + 1);
  stream->first.push_back(0);
  for (const uint32_t task : stream->tasks) {
    stream->first.push_back(stream->first.back() + plan_.task_lines(task));
  }
  if (streams_.size() == kStreams) streams_.erase(streams_.begin());
  streams_.push_back(stream);
  return stream;
}

absl::Status FileBatchSource::LoadLaneBlock(uint64_t epoch, LaneId lane, uint64_t number,
                                            Block* block) {
  block->loaded = false;
  block->raw.Clear();
  const std::shared_ptr<const EpochStream> stream = StreamOf(epoch);
  const LineRange range = plan_.LaneRange(lane);
  const uint64_t buffer = plan_.options().buffer_lines;
  uint64_t at = range.begin + number * buffer;
  const uint64_t end = std::min(range.end, at + buffer);
  auto task = std::upper_bound(stream->first.begin(), stream->first.end(), at) - 1;
  for (; at < end; ++task) {
    const uint64_t stop = std::min(end, *(task + 1));
    absl::Status s = block->reader.Append(stream->tasks[task - stream->first.begin()],
                                          static_cast<uint32_t>(at - *task),
                                          static_cast<uint32_t>(stop - at), &block->raw);
    if (!s.ok()) return s;
    at = stop;
  }
  // Who reads the rest of its last task may have read these lines before they were changed.
  if (absl::Status s = at == range.end ? block->reader.CheckRest() : absl::OkStatus(); !s.ok()) {
    return s;
  }
  block->order = plan_.BlockOrder(epoch, lane, number, static_cast<uint32_t>(block->raw.size()));
  block->owner = epoch;
  block->number = number;
  block->loaded = true;
  return absl::OkStatus();
}

absl::Status FileBatchSource::Read(Step step, LaneId lane, Batch* out) {
  parser_->Start(out);
  if (step.value <= plan_.options().steps_before || lane.value >= lanes_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch of step ", step.value, ", lane ", lane.value, ": steps begin at ",
                     plan_.options().steps_before + 1, ", lanes are ", lanes_.size()));
  }
  const EpochPlan::StepPlace place = plan_.PlaceOf(step);
  const LineRange range = plan_.BatchRange(place.step, lane);
  const uint64_t buffer = plan_.options().buffer_lines;
  LaneState& state = *lanes_[lane.value];
  absl::MutexLock lock(&state.mu);
  Block& block = state.block;
  for (uint64_t p = range.begin; p < range.end; ++p) {
    const uint64_t number = p / buffer;
    if (!block.loaded || block.owner != place.epoch || block.number != number) {
      absl::Status s = LoadLaneBlock(place.epoch, lane, number, &block);
      if (!s.ok()) return s;
    }
    absl::Status s = ParseNext(block, p % buffer, out);
    if (!s.ok()) return s;
  }
  LineParser::Finish(out);
  return absl::OkStatus();
}

std::unique_ptr<Block> FileBatchSource::TakeTaskBlock(TaskId task) {
  absl::MutexLock lock(&idle_mu_);
  auto found = std::find_if(idle_.begin(), idle_.end(),
                            [&](const auto& b) { return b->loaded && b->owner == task.value; });
  if (found == idle_.end()) {
    if (idle_.size() < lanes_.size()) return std::make_unique<Block>(&input_, texts_.files.get());
    found = idle_.begin();
  }
  std::unique_ptr<Block> block = std::move(*found);
  idle_.erase(found);
  return block;
}

void FileBatchSource::ReturnTaskBlock(std::unique_ptr<Block> block) {
  absl::MutexLock lock(&idle_mu_);
  if (idle_.size() == lanes_.size()) idle_.erase(idle_.begin());
  idle_.push_back(std::move(block));
}

absl::Status FileBatchSource::LoadTaskBlock(TaskId task, uint32_t input_task, uint64_t number,
                                            Block* block) {
  block->loaded = false;
  block->raw.Clear();
  const uint32_t buffer = plan_.options().buffer_lines;
  const uint32_t from = static_cast<uint32_t>(number * buffer);
  const uint32_t size = std::min(buffer, plan_.task_lines(input_task) - from);
  absl::Status s = block->reader.Append(input_task, from, size, &block->raw);
  if (!s.ok()) return s;
  block->order = plan_.TaskBlockOrder(task, number, size);
  block->owner = task.value;
  block->number = number;
  block->loaded = true;
  return absl::OkStatus();
}

absl::Status FileBatchSource::ReadTaskWindow(TaskId task, uint64_t window, Block* block,
                                             Batch* out) {
  if (task.value < plan_.options().tasks_before) {
    return absl::InvalidArgumentError(
        absl::StrCat("task ", task.value, ": tasks begin at ", plan_.options().tasks_before));
  }
  const EpochPlan::TaskPlace place = plan_.PlaceOf(task);
  const uint32_t input_task = StreamOf(place.epoch)->tasks[place.index];
  const uint32_t lines = plan_.task_lines(input_task);
  if (window >= plan_.Windows(lines)) {
    return absl::InvalidArgumentError(absl::StrCat("window ", window, " of task ", task.value,
                                                   ": it has ", plan_.Windows(lines)));
  }
  const uint64_t batch = plan_.options().batch_size;
  const uint64_t buffer = plan_.options().buffer_lines;
  const uint64_t end = std::min<uint64_t>(lines, (window + 1) * batch);
  for (uint64_t p = window * batch; p < end; ++p) {
    const uint64_t number = p / buffer;
    if (!block->loaded || block->owner != task.value || block->number != number) {
      absl::Status s = LoadTaskBlock(task, input_task, number, block);
      if (!s.ok()) return s;
    }
    absl::Status s = ParseNext(*block, p % buffer, out);
    if (!s.ok()) return s;
  }
  LineParser::Finish(out);
  return absl::OkStatus();
}

absl::Status FileBatchSource::ReadWindow(TaskId task, uint64_t window, Batch* out) {
  parser_->Start(out);
  std::unique_ptr<Block> block = TakeTaskBlock(task);
  absl::Status s = ReadTaskWindow(task, window, block.get(), out);
  ReturnTaskBlock(std::move(block));
  return s;
}

// A call that begins where the last one ended finds the piece there, and the file behind it.
absl::Status FileBatchSource::LoadPiece(uint64_t line) {
  if (line >= piece_first_ && line - piece_first_ < piece_.size()) return absl::OkStatus();
  const auto task = std::upper_bound(input_.first.begin(), input_.first.end(), line) - 1;
  piece_.Clear();
  piece_first_ = line;
  absl::Status s =
      sequential_.AppendSome(static_cast<uint32_t>(task - input_.first.begin()),
                             static_cast<uint32_t>(line - *task), kPieceBytes, &piece_);
  if (!s.ok()) piece_.Clear();
  return s;
}

absl::StatusOr<uint64_t> FileBatchSource::ReadLines(uint64_t first, const BatchLimit& most,
                                                    Batch* out) {
  parser_->Start(out);
  absl::MutexLock lock(&sequential_mu_);
  const uint64_t begin = std::min(first, plan_.lines());
  const uint64_t lines = std::min(most.lines, plan_.lines() - begin);
  uint64_t read = 0;
  while (read < lines && (read < most.least || out->keys.size() < most.features)) {
    if (absl::Status s = LoadPiece(begin + read); !s.ok()) return s;
    if (absl::Status s = ParseLine(piece_, begin + read - piece_first_, out); !s.ok()) return s;
    ++read;
  }
  LineParser::Finish(out);
  return read;
}

// The first physical line of a file, without newline and byte order mark.
absl::StatusOr<std::string> FirstLine(TextFiles* files, const std::string& path) {
  absl::StatusOr<std::shared_ptr<const DataFile>> file = files->Open(path);
  if (!file.ok()) return file.status();
  std::string text;
  size_t newline = std::string::npos;
  while (newline == std::string::npos && text.size() < (*file)->size()) {
    const size_t had = text.size();
    const uint64_t more = std::min<uint64_t>((*file)->size() - had, 64 << 10);
    text.resize(had + static_cast<size_t>(more));
    absl::Status s = (*file)->Read(had, static_cast<size_t>(more), text.data() + had);
    if (!s.ok()) return s;
    newline = text.find('\n', had);
    if (newline == std::string::npos && text.size() > kMaxLineBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          (*file)->path(), ":1: the line is longer than the limit of ", kMaxLineBytes, " bytes"));
    }
  }
  if (newline != std::string::npos) text.resize(newline);
  return text.compare(0, 3, "\xef\xbb\xbf") == 0 ? text.substr(3) : text;
}

// Whether a vocabulary has the values that it was indexed with; an index of earlier versions knows
// its file alone.
bool SameValues(const InputFile& then, const InputFile& now) {
  if (then.values().empty()) return then.fingerprint() == now.fingerprint();
  return then.values(0).fingerprint() == now.values(0).fingerprint();
}

// That those that were read are those that were indexed.
absl::Status CheckVocabularies(const InputIndex& index, const InputIndex& read) {
  for (int i = 0; i < read.vocabularies_size(); ++i) {
    const InputFile& now = read.vocabularies(i);
    if (i < index.vocabularies_size() && SameValues(index.vocabularies(i), now)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("vocabulary file ", now.path(),
                     " has changed since the job began; restore it, or submit a new job"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> OpenFileBatchSource(
    const JobSpec& spec, const InputIndex& index, const DataShape& shape,
    std::shared_ptr<TextFiles> text_files) {
  absl::StatusOr<InputTasks> input = InputTasks::From(index);
  if (!input.ok()) return input.status();
  absl::StatusOr<EpochPlan> plan = MakeEpochPlan(spec, index);
  if (!plan.ok()) return plan.status();
  OpenTexts texts{std::move(text_files), {}};
  for (const std::string& path : input->files) {
    absl::StatusOr<std::shared_ptr<const DataFile>> text = texts.files->Open(path);
    if (!text.ok()) return text.status();
    if ((*text)->is_copy()) texts.decompressed.push_back(*std::move(text));
  }
  std::string first_line;
  if (NeedsFirstLine(spec.data())) {
    absl::StatusOr<std::string> line = FirstLine(texts.files.get(), input->files[0]);
    if (!line.ok()) return line.status();
    first_line = *std::move(line);
  }
  InputIndex read;
  const absl::StatusOr<Vocabularies> vocabularies =
      LoadVocabularies(spec, texts.files.get(), &read);
  if (!vocabularies.ok()) return vocabularies.status();
  if (absl::Status s = CheckVocabularies(index, read); !s.ok()) return s;
  absl::StatusOr<std::unique_ptr<LineParser>> parser =
      MakeLineParser(spec, shape, first_line, *vocabularies);
  if (!parser.ok()) return parser.status();
  return std::unique_ptr<BatchSource>(
      std::make_unique<FileBatchSource>(*std::move(input), *std::move(plan), *std::move(parser),
                                        spec.data().max_bad_lines(), std::move(texts)));
}

}  // namespace strata
