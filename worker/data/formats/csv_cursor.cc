#include "worker/data/formats/csv_cursor.h"

#include <algorithm>

namespace strata {

bool CsvCursor::Next(absl::string_view* field, std::string* scratch) {
  if (done_) return false;
  begin_ = at_;
  if (at_ < line_.size() && line_[at_] == '"') return NextQuoted(field, scratch);
  const size_t end = std::min(line_.find(delimiter_, at_), line_.size());
  *field = line_.substr(at_, end - at_);
  done_ = end == line_.size();
  at_ = end + 1;
  return true;
}

bool CsvCursor::NextQuoted(absl::string_view* field, std::string* scratch) {
  scratch->clear();
  size_t at = at_ + 1;
  while (true) {
    const size_t quote = line_.find('"', at);
    if (quote == absl::string_view::npos) {
      error_ = "a quoted field does not end on its line";
      done_ = true;
      return false;
    }
    scratch->append(line_.data() + at, quote - at);
    at = quote + 1;
    if (at == line_.size() || line_[at] != '"') break;
    scratch->push_back('"');
    ++at;
  }
  if (at < line_.size() && line_[at] != delimiter_) {
    error_ = "text after the closing quote of a field";
    done_ = true;
    return false;
  }
  done_ = at == line_.size();
  at_ = at + 1;
  *field = *scratch;
  return true;
}

}  // namespace strata
