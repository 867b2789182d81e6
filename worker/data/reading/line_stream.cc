#include "worker/data/reading/line_stream.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "worker/data/files/data_file.h"
#include "worker/data/formats/csv_columns.h"
#include "worker/data/formats/line_parser.h"

namespace strata {
namespace {

// As parsers take lines.
absl::string_view WithoutReturn(absl::string_view line) {
  absl::ConsumeSuffix(&line, "\r");
  return line;
}

}  // namespace

absl::Status OfInputs(const absl::Status& status) {
  absl::string_view said = status.message();
  if (!absl::ConsumeSuffix(&said, kCheckData)) return status;
  return absl::Status(status.code(), absl::StrCat(said, "; check its path"));
}

absl::Status LineStream::OpenNext() {
  auto input = TextStream::Open(o_.paths[opened_], o_.standard_input);
  if (!input.ok()) return OfInputs(input.status());
  input_ = *std::move(input);
  ++opened_;
  lines_ = 0;
  buffer_.clear();
  begin_ = seen_ = 0;
  end_ = std::string::npos;
  return absl::OkStatus();
}

absl::Status LineStream::Look() {
  if (end_ != std::string::npos) return absl::OkStatus();
  end_ = buffer_.find('\n', seen_);
  seen_ = buffer_.size();
  if ((end_ == std::string::npos ? seen_ : end_) - begin_ <= kMaxLineBytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      input_->name(), ":", lines_ + 1, ": the line is longer than the limit of ", kMaxLineBytes,
      " bytes; is the format right, and does the input have line ends?"));
}

absl::Status LineStream::ReadMore() {
  // What was taken goes first, so that the buffer holds no more than a line and a read.
  buffer_.erase(0, begin_);
  seen_ -= begin_;
  begin_ = 0;
  if (absl::Status s = input_->Read(o_.cancelled, &buffer_); !s.ok()) return s;
  return Look();
}

absl::StatusOr<bool> LineStream::Take(Line* line) {
  absl::Status s = Look();
  while (s.ok() && end_ == std::string::npos && !input_->ended()) {
    s = ReadMore();
  }
  if (!s.ok()) return s;
  if (end_ == std::string::npos && begin_ == buffer_.size()) return false;
  const bool whole = end_ != std::string::npos;
  line->text = absl::string_view(buffer_).substr(begin_, (whole ? end_ : seen_) - begin_);
  line->number = ++lines_;
  if (lines_ == 1) absl::ConsumePrefix(&line->text, "\xef\xbb\xbf");
  begin_ = seen_ = whole ? end_ + 1 : buffer_.size();
  end_ = std::string::npos;
  return true;
}

absl::Status LineStream::Start() {
  if (started_) return absl::OkStatus();
  if (absl::Status s = OpenNext(); !s.ok()) return s;
  started_ = true;
  Line line;
  absl::StatusOr<bool> any = Take(&line);
  if (!any.ok()) return any.status();
  if (!*any && o_.header) return NoData();
  if (*any) first_line_ = std::string(line.text);
  return absl::OkStatus();
}

absl::Status LineStream::NoData() const {
  return absl::InvalidArgumentError(absl::StrCat("input file ", input_->name(),
                                                 lines_ == 0 ? " is empty" : " has no line of data",
                                                 "; leave it out, or write data to it"));
}

absl::Status LineStream::CheckHeader(const Line& line) {
  if (WithoutReturn(line.text) == WithoutReturn(first_line_)) return absl::OkStatus();
  const std::string other = HeaderDifference(line.text, first_line_, o_.delimiter);
  if (other.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      input_->name(), ":1: the header differs from that of ", NameForMessages(o_.paths[0]), ": ",
      other,
      "; all inputs must name the same columns in the same order: mend it, or predict it alone"));
}

absl::StatusOr<bool> LineStream::Next(Line* line) {
  if (absl::Status s = Start(); !s.ok()) return s;
  if (!first_taken_) {
    first_taken_ = true;
    if (lines_ == 1 && !o_.header) {
      *line = {first_line_, 1};
      return true;
    }
  }
  while (true) {
    const absl::StatusOr<bool> any = Take(line);
    if (!any.ok()) return any;
    if (*any) {
      if (line->number > 1 || !o_.header) return true;
      if (absl::Status s = CheckHeader(*line); !s.ok()) return s;
      continue;
    }
    if (lines_ <= (o_.header ? 1 : 0)) {
      return NoData();
    }
    if (opened_ == o_.paths.size()) return false;
    if (absl::Status s = OpenNext(); !s.ok()) return s;
  }
}

absl::StatusOr<bool> LineStream::Ready() {
  if (!first_taken_) return true;
  absl::Status s = Look();
  while (s.ok() && end_ == std::string::npos && !input_->ended()) {
    if (!input_->ready()) return false;
    s = ReadMore();
  }
  if (!s.ok()) return s;
  if (end_ != std::string::npos || begin_ < buffer_.size()) return true;
  return opened_ == o_.paths.size() || o_.paths[opened_] != "-";
}

std::string LineStream::Where(const Line& line) const {
  return absl::StrCat(input_->name(), ":", line.number);
}

}  // namespace strata
