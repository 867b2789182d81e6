// The lines of several inputs, one after the other, read once.
#ifndef STRATA_WORKER_DATA_READING_LINE_STREAM_H_
#define STRATA_WORKER_DATA_READING_LINE_STREAM_H_

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/data/files/text_files.h"
#include "worker/data/files/text_stream.h"

namespace strata {

// An error of opening an input, which is none of spec.data.
absl::Status OfInputs(const absl::Status& status);

struct LineStreamOptions {
  std::vector<std::string> paths;  // in order; one may be "-"
  // The first line of every input is a header, the same in all of them, and no line of data.
  bool header = false;
  char delimiter = ',';  // of a header
  int standard_input = STDIN_FILENO;
  // Asked while nothing comes; empty: nobody cancels.
  Cancelled cancelled;
};

// Physical lines of data, without their newlines; a byte order mark is skipped. Memory: what is
// read at a time, and a line. One thread at a time.
//
//   while (true) {
//     if (absl::StatusOr<bool> more = lines.Next(&line); !more.ok() || !*more) return
//     more.status(); Use(line.text);
//   }
class LineStream {
 public:
  struct Line {
    absl::string_view text;  // until the next call
    uint64_t number = 0;     // in its input, from 1
  };

  explicit LineStream(LineStreamOptions options) : o_(std::move(options)) {}

  // Opens the first input and waits for its first line. Next does it where nobody did.
  absl::Status Start();
  // The first line of the first input, header or not. REQUIRES: Start.
  const std::string& first_line() const { return first_line_; }

  // False: there is no further line. INVALID_ARGUMENT: a line longer than kMaxLineBytes, an input
  // without a line of data, a header that differs; others are those of TextStream.
  absl::StatusOr<bool> Next(Line* line);
  // Whether Next has its answer without waiting for input. REQUIRES: Start.
  absl::StatusOr<bool> Ready();
  // "file:line" of a line of the input that is read now.
  std::string Where(const Line& line) const;

 private:
  absl::Status OpenNext();
  // Takes the next physical line of the open input; false: it has no further one.
  absl::StatusOr<bool> Take(Line* line);
  // Looks for the end of the next line in what is there; `end_` says where it is.
  absl::Status Look();
  absl::Status ReadMore();
  absl::Status CheckHeader(const Line& line);
  // That of an input without a line of data.
  absl::Status NoData() const;

  const LineStreamOptions o_;
  size_t opened_ = 0;  // inputs
  std::unique_ptr<TextStream> input_;
  uint64_t lines_ = 0;  // of the input, taken
  std::string buffer_;
  size_t begin_ = 0;  // of the next line
  size_t seen_ = 0;   // bytes of the buffer in which its end was looked for
  size_t end_ = std::string::npos;
  bool started_ = false;
  bool first_taken_ = false;  // Next has given, or left out, the first line
  std::string first_line_;
};

}  // namespace strata

#endif  // STRATA_WORKER_DATA_READING_LINE_STREAM_H_
