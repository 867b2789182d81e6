#include "tests/faults/matrix/fault_matrix.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strata::testing {

const char* NameOf(Role role) {
  constexpr const char* kNames[] = {"server", "worker", "scheduler"};
  return kNames[static_cast<size_t>(role)];
}

const char* NameOf(Phase phase) {
  constexpr const char* kNames[] = {"pull",     "push",    "commit",    "checkpoint", "image",
                                    "recovery", "forward", "promotion", "copyImage"};
  return kNames[static_cast<size_t>(phase)];
}

const char* NameOf(Mode mode) {
  constexpr const char* kNames[] = {"bsp", "async", "downpour", "easgd"};
  return kNames[static_cast<size_t>(mode)];
}

const char* NameOf(Blow blow) {
  constexpr const char* kNames[] = {"kill", "stop", "proxy", "clock"};
  return kNames[static_cast<size_t>(blow)];
}

void FaultMatrix::Count(const Cell& cell, Blow blow, uint64_t times) {
  counts_[{cell, blow}] += times;
}

uint64_t FaultMatrix::Of(const Cell& cell, Blow blow) const {
  const auto it = counts_.find({cell, blow});
  return it == counts_.end() ? 0 : it->second;
}

uint64_t FaultMatrix::Total(Blow blow) const {
  uint64_t total = 0;
  for (const auto& [key, count] : counts_) {
    if (key.second == blow) total += count;
  }
  return total;
}

std::vector<std::string> FaultMatrix::Empty(std::span<const Phase> phases, Mode mode,
                                            std::span<const Blow> blows) const {
  std::vector<std::string> empty;
  for (const Role role : kRoles) {
    for (const Phase phase : phases) {
      for (const Blow blow : blows) {
        if (Of({role, phase, mode}, blow) > 0) continue;
        empty.push_back(absl::StrCat(NameOf(blow), " of a ", NameOf(role), " in ", NameOf(phase),
                                     " of ", NameOf(mode)));
      }
    }
  }
  return empty;
}

bool FaultMatrix::Full(Phase phase, Mode mode) const {
  return std::all_of(std::begin(kRoles), std::end(kRoles), [&](Role role) {
    return std::all_of(std::begin(kBlows), std::end(kBlows), [&](Blow blow) {
      return Of({role, phase, mode}, blow) > 0;
    });
  });
}

std::string FaultMatrix::ToText() const {
  std::string text;
  std::set<Cell> cells;
  for (const auto& [key, count] : counts_) cells.insert(key.first);
  for (const Cell& cell : cells) {
    absl::StrAppend(&text, "FAULTS: ", NameOf(cell.role), " ", NameOf(cell.phase), " ",
                    NameOf(cell.mode));
    for (const Blow blow : kAllBlows) absl::StrAppend(&text, " ", Of(cell, blow));
    absl::StrAppend(&text, "\n");
  }
  absl::StrAppend(&text, Total(Blow::kKill), " kills, ", Total(Blow::kStop), " stops, ",
                  Total(Blow::kProxy), " proxy faults, ", Total(Blow::kClock), " clock steps\n");
  return text;
}

}  // namespace strata::testing
