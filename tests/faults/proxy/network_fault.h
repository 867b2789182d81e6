// What a network does to a connection. A fault is drawn from a seed, and says itself as text.
#ifndef STRATA_TESTS_FAULTS_PROXY_NETWORK_FAULT_H_
#define STRATA_TESTS_FAULTS_PROXY_NETWORK_FAULT_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include "absl/time/time.h"

namespace strata::testing {

enum class FaultKind {
  kDelay,      // each piece comes later, some more than others, in their order
  kSlow,       // so many bytes a second
  kBlackHole,  // nothing passes; what was sent comes when the fault is over
  kOneWay,     // the same of one direction
  kDrop,       // nothing passes, then the connection is reset: its packets were lost for too long
  kReset,      // reset behind some more bytes, in the midst of a message, or at the fault's end
  kRepeat,     // requests pass, replies do not, then it is reset: who asked asks all of it again
  kFlip,       // bits that a CRC32C covers are turned; the checksums are left as they are
  kDamage,     // one bit of whatever passes is turned, once in each connection
};
// Those that a job lives with over connections without TLS.
inline constexpr FaultKind kFaultKinds[] = {
    FaultKind::kDelay, FaultKind::kSlow,  FaultKind::kBlackHole, FaultKind::kOneWay,
    FaultKind::kDrop,  FaultKind::kReset, FaultKind::kRepeat,    FaultKind::kFlip};
const char* NameOf(FaultKind kind);

enum class Way { kRequests, kReplies };  // away from who connected, and towards him

struct NetworkFault {
  FaultKind kind = FaultKind::kDelay;
  absl::Duration lasts;
  absl::Duration delay, spread;  // kDelay: `delay` and up to `spread` more
  uint64_t bytes_a_second = 0;   // kSlow, each way
  Way way = Way::kRequests;      // kOneWay: where nothing passes; kDamage: where the bit is
  uint64_t after_bytes = 0;      // kReset, kRepeat: of requests; kDamage: of that way
  uint64_t flip_every = 0;       // kFlip: bytes of payload from one turned bit to the next, about
  uint64_t seed = 0;             // of delays and bits

  std::string ToText() const;
};

// What a fault has done so far.
struct FaultMet {
  uint64_t connections = 0;  // that it has held up, slowed, broken or changed
  uint64_t bytes = 0;        // kDelay, kSlow, kFlip: that passed under it
  uint64_t resets = 0;
  uint64_t flips = 0;
  // kDamage: connections that ended after their bit was turned. None is turned in the second half
  // of the fault, so that all others have lived on for that long.
  uint64_t closed = 0;
  bool over = false;
};

// Who connected, and to which address. Empty in a fault's link: whoever, and to whatever.
struct NetworkLink {
  std::string from;
  std::string to;  // "127.0.0.1:PORT"
};

// Of any of the kinds, or of the given one, short enough for a connection to live on.
NetworkFault DrawFault(std::mt19937_64& random);
NetworkFault DrawFault(FaultKind kind, std::mt19937_64& random);

}  // namespace strata::testing

#endif  // STRATA_TESTS_FAULTS_PROXY_NETWORK_FAULT_H_
