// When a shard's snapshot, having read a piece, reads the next one. Pure.
#ifndef STRATA_SERVER_SNAPSHOT_TURN_H_
#define STRATA_SERVER_SNAPSHOT_TURN_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "server/snapshot/pace.h"

namespace strata::server {

// Saved rows of all snapshots of a shard beyond which commits wait; so they do for a third one.
inline constexpr size_t kSnapshotHeldBytes = size_t{64} << 20;
inline constexpr size_t kSnapshotsAtOnce = 2;
// A shard that served nothing for longer is idle.
inline constexpr absl::Duration kSnapshotIdleAfter = absl::Seconds(1);

inline bool CommitsMustWait(size_t held_bytes, size_t snapshots) {
  return held_bytes > kSnapshotHeldBytes || snapshots > kSnapshotsAtOnce;
}

// Whether the pace holds: an idle shard, and one whose commits wait, goes on without it, and what
// it reads then does not count either.
inline bool KeepsPace(absl::Time now, absl::Time served, bool commits_wait) {
  return now - served <= kSnapshotIdleAfter && !commits_wait;
}

enum class SnapshotTurn : uint8_t {
  kLater,   // when the pace allows it
  kInTurn,  // behind what else waits for the shard
  kAtOnce,  // before it: the snapshot is late
};
// `next`: what the pace (SnapshotPace::Took) allows at `now`.
inline SnapshotTurn TurnFor(absl::Time now, absl::Time next) {
  if (next > now) return SnapshotTurn::kLater;
  return next < now - SnapshotPace::kLate ? SnapshotTurn::kAtOnce : SnapshotTurn::kInTurn;
}

}  // namespace strata::server

#endif  // STRATA_SERVER_SNAPSHOT_TURN_H_
