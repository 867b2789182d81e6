#include "tests/faults/proxy/network_fault.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace strata::testing {

const char* NameOf(FaultKind kind) {
  constexpr const char* kNames[] = {"delay", "slow",   "black hole", "one way", "drop",
                                    "reset", "repeat", "flip",       "damage"};
  static_assert(std::size(kNames) == static_cast<size_t>(FaultKind::kDamage) + 1);
  return kNames[static_cast<size_t>(kind)];
}

std::string NetworkFault::ToText() const {
  std::string text = absl::StrCat(NameOf(kind), " for ", absl::FormatDuration(lasts));
  switch (kind) {
    case FaultKind::kDelay:
      absl::StrAppend(&text, ", ", absl::FormatDuration(delay), " and up to ",
                      absl::FormatDuration(spread));
      break;
    case FaultKind::kSlow:
      absl::StrAppend(&text, ", ", bytes_a_second, " bytes a second");
      break;
    case FaultKind::kOneWay:
      absl::StrAppend(&text, ", no ", way == Way::kRequests ? "requests" : "replies");
      break;
    case FaultKind::kReset:
    case FaultKind::kRepeat:
      absl::StrAppend(&text, ", after ", after_bytes, " bytes");
      break;
    case FaultKind::kFlip:
      absl::StrAppend(&text, ", each ", flip_every, " bytes");
      break;
    case FaultKind::kDamage:
      absl::StrAppend(&text, ", after ", after_bytes, " bytes of ",
                      way == Way::kRequests ? "requests" : "replies");
      break;
    case FaultKind::kBlackHole:
    case FaultKind::kDrop:
      break;
  }
  return absl::StrCat(text, ", seed ", seed);
}

NetworkFault DrawFault(std::mt19937_64& random) {
  return DrawFault(kFaultKinds[random() % std::size(kFaultKinds)], random);
}

NetworkFault DrawFault(FaultKind kind, std::mt19937_64& random) {
  const auto draw = [&random](uint64_t least, uint64_t most) {
    return least + random() % (most - least + 1);
  };
  NetworkFault fault;
  fault.kind = kind;
  fault.seed = random();
  fault.lasts = absl::Milliseconds(draw(100, 400));
  fault.delay = absl::Milliseconds(draw(1, 20));
  fault.spread = absl::Milliseconds(draw(1, 20));
  fault.bytes_a_second = draw(20'000, 200'000);
  fault.way = draw(0, 1) == 0 ? Way::kRequests : Way::kReplies;
  fault.after_bytes = draw(1, 30'000);
  fault.flip_every = draw(2'000, 20'000);
  return fault;
}

}  // namespace strata::testing
