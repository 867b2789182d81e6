#include "tools/cli/base/nearest.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace strata {
namespace {

std::string Fold(absl::string_view text) {
  std::string folded;
  for (char c : text) {
    if (c != '_' && c != '-') folded.push_back(absl::ascii_tolower(c));
  }
  return folded;
}

}  // namespace

size_t EditDistance(absl::string_view a, absl::string_view b) {
  const std::string from = Fold(a), to = Fold(b);
  // Rows i-2, i-1 and i of the table of distances between prefixes.
  std::vector<size_t> before(to.size() + 1), last(to.size() + 1), row(to.size() + 1);
  for (size_t j = 0; j <= to.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t substitute = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitute});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[to.size()];
}

std::string Nearest(absl::string_view name, const std::vector<std::string>& candidates) {
  const size_t limit = std::max<size_t>(2, name.size() / 3);
  size_t best = limit + 1;
  std::string nearest;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(name, candidate);
    if (distance < best && distance < candidate.size()) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace strata
