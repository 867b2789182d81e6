#include "tools/cli/base/text_table.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace strata {
namespace {

// Divides by `base` until the number is short, and says by which unit.
std::string Scaled(double value, double base, const std::vector<const char*>& units) {
  size_t unit = 0;
  while (value >= base && unit + 1 < units.size()) {
    value /= base;
    ++unit;
  }
  if (unit == 0 || value >= 100) return absl::StrFormat("%.0f%s", value, units[unit]);
  return absl::StrFormat(value >= 10 ? "%.1f%s" : "%.2f%s", value, units[unit]);
}

}  // namespace

std::string TextTable(const std::vector<TextRow>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const TextRow& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const TextRow& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&line, row[i], std::string(widths[i] - row[i].size() + 2, ' '));
    }
    absl::StripTrailingAsciiWhitespace(&line);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

std::string BytesText(double bytes) {
  return Scaled(bytes, 1024, {" B", " KiB", " MiB", " GiB", " TiB", " PiB"});
}

std::string CountText(double count) { return Scaled(count, 1000, {"", "k", "M", "G", "T"}); }

}  // namespace strata
