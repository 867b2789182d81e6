#include "tools/cli/base/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/cli/base/job_text.h"

namespace strata {
namespace {

constexpr char kEraseLine[] = "\r\x1b[K";
constexpr char kDim[] = "\x1b[2m";
constexpr char kPlain[] = "\x1b[0m";

// What is told after the step while there are more.
std::string Training(const JobStatus& s) {
  std::string text = absl::StrCat(WithCommas(std::llround(s.examples_per_second())), " examples/s");
  if (s.step() > 0) {
    absl::StrAppend(&text, "  ", TrainingText(s, "  auc"));
  }
  if (s.examples_per_second() > 0 && s.total_examples() >= s.examples()) {
    absl::StrAppend(
        &text, "  eta ",
        Duration(static_cast<double>(s.total_examples() - s.examples()) / s.examples_per_second()));
  }
  if (s.checkpoint_bytes() > 0) absl::StrAppend(&text, "  checkpoint ", CheckpointText(s));
  return text;
}

using Conditions = google::protobuf::RepeatedPtrField<JobCondition>;

bool Same(const JobCondition& a, const JobCondition& b) {
  return a.time_unix_ms() == b.time_unix_ms() && a.reason() == b.reason() &&
         a.message() == b.message();
}

// The place in `now` of the first that is not in `before`, the same list of an earlier moment: old
// ones may have gone from its beginning, and the last may have got another text, which is not new.
int FirstNew(const Conditions& before, const Conditions& now) {
  int known = before.size() - 1, at = now.size() - 1;
  for (; known >= 0; --known) {
    for (at = now.size() - 1; at >= 0 && !Same(before[known], now[at]);) --at;
    if (at >= 0) break;
  }
  if (known < 0) at = -1;
  const int next = at + 1;
  const bool another_text = known + 2 == before.size() && next < now.size() &&
                            before[known + 1].reason() == now[next].reason();
  return another_text ? next + 1 : next;
}

}  // namespace

ProgressOptions ProgressOptions::ForStderr() {
  ProgressOptions options;
  const char* term = std::getenv("TERM");
  options.terminal =
      isatty(STDERR_FILENO) != 0 && term != nullptr && absl::string_view(term) != "dumb";
  const char* no_color = std::getenv("NO_COLOR");
  options.color = options.terminal && (no_color == nullptr || *no_color == '\0');
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) options.width = size.ws_col;
  return options;
}

std::string ProgressLine(const JobStatus& s, int width) {
  if (s.state() != RUNNING || s.total_steps() == 0) {
    return absl::StrCat(s.name(), " ", StateName(s.state()));
  }
  const double share =
      std::min(1.0, static_cast<double>(s.step()) / static_cast<double>(s.total_steps()));
  std::string text =
      absl::StrFormat("%3.0f%%  step %d/%d  ", std::floor(100 * share), s.step(), s.total_steps());
  absl::StrAppend(&text, s.step() >= s.total_steps() && s.checkpoint_bytes() > 0
                             ? absl::StrCat("last checkpoint: ", CheckpointText(s))
                             : Training(s));
  if (width == 0) return absl::StrCat(s.name(), " ", text);
  const int room = std::min(30, width - static_cast<int>(text.size()) - 4);
  if (room >= 8) {
    const int full = static_cast<int>(share * room);
    text = absl::StrCat("[", std::string(full, '#'), std::string(room - full, '.'), "] ", text);
  }
  if (static_cast<int>(text.size()) >= width) text.resize(std::max(0, width - 1));
  return text;
}

void ProgressPrinter::PrintLine(const std::string& line) {
  if (open_line_) std::fputs(kEraseLine, options_.out);
  open_line_ = false;
  std::fprintf(options_.out, "%s\n", line.c_str());
}

void ProgressPrinter::Show(const JobStatus& s, absl::Time now) {
  absl::MutexLock lock(&mu_);
  for (int i = FirstNew(conditions_, s.conditions()); i < s.conditions_size(); ++i) {
    const JobCondition& c = s.conditions(i);
    PrintLine(absl::StrCat(options_.color ? kDim : "", s.name(), " ", c.reason(), ": ", c.message(),
                           options_.color ? kPlain : ""));
  }
  conditions_ = s.conditions();
  for (const EvaluationResult& e : s.evaluations()) {
    if (e.step() <= evaluated_) continue;
    evaluated_ = e.step();
    PrintLine(
        absl::StrFormat("%s evaluated at step %d: %s", s.name(), e.step(), EvaluationText(e)));
  }
  const std::string line = ProgressLine(s, options_.terminal ? options_.width : 0);
  if (options_.terminal) {
    std::fprintf(options_.out, "%s%s", kEraseLine, line.c_str());
    open_line_ = true;
  } else if (line != last_line_ && (now - last_plain_ >= options_.plain_interval)) {
    PrintLine(line);
    last_plain_ = now;
    last_line_ = line;
  }
  std::fflush(options_.out);
}

void ProgressPrinter::Note(const std::string& line) {
  absl::MutexLock lock(&mu_);
  PrintLine(line);
  std::fflush(options_.out);
}

void ProgressPrinter::Finish() {
  absl::MutexLock lock(&mu_);
  if (open_line_) std::fputs("\n", options_.out);
  open_line_ = false;
  std::fflush(options_.out);
}

}  // namespace strata
