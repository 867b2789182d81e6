// When a peer that fell silent without closing its connection (its machine lost, packets dropped)
// is given up: gRPC's keepalive, by the cluster's lease.
#ifndef STRATA_PROTO_RUNTIME_TRANSPORT_KEEPALIVE_H_
#define STRATA_PROTO_RUNTIME_TRANSPORT_KEEPALIVE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace strata {

// Of the scheduler, as far as a process knows it. Thread-safe.
class KnownLease {
 public:
  // The scheduler's own default, until a reply of it says another one.
  static constexpr absl::Duration kDefault = absl::Seconds(10);

  absl::Duration get() const { return absl::Milliseconds(ms_.load(std::memory_order_relaxed)); }
  void Learn(uint32_t lease_ms) { ms_.store(lease_ms, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> ms_{absl::ToInt64Milliseconds(kDefault)};
};

// With every reply a scheduler says its lease, in milliseconds.
inline constexpr char kLeaseMetadata[] = "strata-lease-ms";

// While calls are in flight and nothing was heard for half a lease, the peer is asked whether it is
// there; without an answer in another half the connection is broken and its calls are UNAVAILABLE.
// gRPC asks once a second at most, so that leases below two seconds are not divided further.
struct Keepalive {
  absl::Duration quiet;
  absl::Duration patience;

  static Keepalive For(absl::Duration lease) {
    const absl::Duration half = std::max(absl::Seconds(1), lease / 2);
    return {half, half};
  }
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_TRANSPORT_KEEPALIVE_H_
