#include "tests/faults/matrix/fault_matrix.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace strata::testing {

const char* NameOf(Role role) {
  constexpr const char* kNames[] = {"server", "worker", "scheduler"};
  return kNames[static_cast<size_t>(role)];
}

const char* NameOf(Phase phase) {
  constexpr const char* kNames[] = {"pull", "push", "commit", "checkpoint", "image", "recovery"};
  return kNames[static_cast<size_t>(phase)];
}

const char* NameOf(Mode mode) {
  constexpr const char* kNames[] = {"bsp", "async", "downpour", "easgd"};
  return kNames[static_cast<size_t>(mode)];
}

const char* NameOf(Blow blow) {
  constexpr const char* kNames[] = {"kill", "stop", "proxy"};
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

std::vector<std::string> FaultMatrix::Empty(Mode mode) const {
  std::vector<std::string> empty;
  for (const Role role : kRoles) {
    for (const Phase phase : kPhases) {
      for (const Blow blow : kBlows) {
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
  std::string text = absl::StrFormat("%-10s %-11s", "role", "phase");
  for (const Mode mode : kModes) absl::StrAppendFormat(&text, "%14s", NameOf(mode));
  absl::StrAppend(&text, "   (kills/stops/proxy)\n");
  for (const Role role : kRoles) {
    for (const Phase phase : kPhases) {
      absl::StrAppendFormat(&text, "%-10s %-11s", NameOf(role), NameOf(phase));
      for (const Mode mode : kModes) {
        const Cell cell{role, phase, mode};
        absl::StrAppendFormat(&text, "%14s",
                              absl::StrCat(Of(cell, Blow::kKill), "/", Of(cell, Blow::kStop), "/",
                                           Of(cell, Blow::kProxy)));
      }
      absl::StrAppend(&text, "\n");
    }
  }
  absl::StrAppend(&text, Total(Blow::kKill), " kills, ", Total(Blow::kStop), " stops, ",
                  Total(Blow::kProxy), " proxy faults\n");
  return text;
}

}  // namespace strata::testing
