#include "worker/data/reading/scored_lines.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "worker/data/formats/parser_factory.h"

namespace strata {
namespace {

// A batch of another shape would be read past its end by the model.
absl::Status CheckShape(const JobSpec& spec, const DataShape& shape) {
  const std::string& format = spec.data().format();
  const std::optional<DataShape> fixed = FixedShape(spec);
  const uint32_t numeric = fixed ? fixed->numeric() : 0;
  const uint32_t fields = fixed ? fixed->fields() : shape.fields();
  if (numeric == shape.numeric() && fields == shape.fields()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "format ", format, " gives ", numeric, " numbers",
      fixed ? absl::StrCat(" and ", fields, " fields") : "", " a line, and the model takes ",
      shape.numeric(), " and ", shape.fields(), " fields; give the format it was trained on"));
}

}  // namespace

ScoredLines::ScoredLines(ScoredLinesOptions options, Vocabularies vocabularies)
    : o_(std::move(options)),
      vocabularies_(std::move(vocabularies)),
      lines_({.paths = o_.paths,
              .header = HasHeader(o_.spec.data()),
              .delimiter = ColumnDelimiter(o_.spec.data()),
              .standard_input = o_.standard_input,
              .cancelled = o_.cancelled}) {}

absl::StatusOr<std::unique_ptr<ScoredLines>> ScoredLines::Make(ScoredLinesOptions options) {
  if (absl::Status s = CheckShape(options.spec, options.shape); !s.ok()) return s;
  for (const std::string& path : options.paths) {
    const auto found = TextStream::Open(path, options.standard_input);
    if (!found.ok()) return OfInputs(found.status());
  }
  TextFiles files;
  VocabularyOptions how = options.vocabularies;
  how.cancelled = options.cancelled;
  auto vocabularies = LoadVocabularies(options.spec, &files, nullptr, how);
  if (!vocabularies.ok()) return vocabularies.status();
  return std::unique_ptr<ScoredLines>(
      new ScoredLines(std::move(options), *std::move(vocabularies)));
}

absl::Status ScoredLines::Start() {
  if (parser_ != nullptr) return absl::OkStatus();
  if (absl::Status s = lines_.Start(); !s.ok()) return s;
  auto parser = MakeScoringParser(o_.spec, o_.shape, lines_.first_line(), vocabularies_);
  if (!parser.ok()) {
    return absl::Status(
        parser.status().code(),
        absl::StrCat(NameForMessages(o_.paths[0]), ":1: ", parser.status().message(),
                     " (of the job whose checkpoint it is)"));
  }
  parser_ = *std::move(parser);
  return absl::OkStatus();
}

absl::Status ScoredLines::Parse(const LineStream::Line& line, Batch* batch) {
  LineError error;
  if (parser_->Parse(line.text, batch, &error) != LineOutcome::kBad) return absl::OkStatus();
  ++batch->bad_lines;
  if (++bad_lines_ == 1) {
    first_bad_line_ = absl::StrCat(lines_.Where(line), ":", error.column, ": ", error.reason);
  }
  if (bad_lines_ <= o_.max_bad_lines) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(first_bad_line_,
                   bad_lines_ > 1 ? absl::StrCat(", and ", bad_lines_ - 1, " more bad lines") : "",
                   " (mend the line, or give --max-bad-lines to leave such lines out)"));
}

absl::StatusOr<bool> ScoredLines::Read(const BatchLimit& most, Batch* batch) {
  if (absl::Status s = Start(); !s.ok()) return s;
  parser_->Start(batch);
  for (uint64_t lines = 0; lines < most.lines; ++lines) {
    if (lines > 0) {
      if (lines >= most.least && batch->keys.size() >= most.features) break;
      const absl::StatusOr<bool> ready = lines_.Ready();
      if (!ready.ok()) return ready;
      if (!*ready) break;
    }
    LineStream::Line line;
    const absl::StatusOr<bool> more = lines_.Next(&line);
    if (!more.ok()) return more;
    if (!*more && lines == 0) return false;
    if (!*more) break;
    if (absl::Status s = Parse(line, batch); !s.ok()) return s;
  }
  LineParser::Finish(batch);
  return true;
}

}  // namespace strata
