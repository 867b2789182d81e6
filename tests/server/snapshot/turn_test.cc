#include "server/snapshot/turn.h"

#include <catch2/catch.hpp>

#include "absl/time/time.h"
#include "server/snapshot/pace.h"

namespace strata::server {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1767225600);
constexpr absl::Duration kInstant = absl::Nanoseconds(1);

TEST_CASE("commits wait for a third snapshot, and for 64 MiB of saved rows", "[server][snapshot]") {
  CHECK_FALSE(CommitsMustWait(0, 0));
  CHECK_FALSE(CommitsMustWait(size_t{64} << 20, 2));
  CHECK(CommitsMustWait((size_t{64} << 20) + 1, 1));
  CHECK(CommitsMustWait(0, 3));
}

TEST_CASE("the pace holds while requests are served and no commit waits", "[server][snapshot]") {
  CHECK(KeepsPace(kNow, kNow, false));
  CHECK(KeepsPace(kNow, kNow - absl::Seconds(1), false));
  CHECK_FALSE(KeepsPace(kNow, kNow - absl::Seconds(1) - kInstant, false));
  CHECK_FALSE(KeepsPace(kNow, absl::InfinitePast(), false));  // never served
  CHECK_FALSE(KeepsPace(kNow, kNow, true));
}

TEST_CASE("a snapshot waits, takes its turn, or is late", "[server][snapshot]") {
  CHECK(TurnFor(kNow, kNow + kInstant) == SnapshotTurn::kLater);
  CHECK(TurnFor(kNow, kNow) == SnapshotTurn::kInTurn);
  CHECK(TurnFor(kNow, kNow - SnapshotPace::kLate) == SnapshotTurn::kInTurn);
  CHECK(TurnFor(kNow, kNow - SnapshotPace::kLate - kInstant) == SnapshotTurn::kAtOnce);
  CHECK(TurnFor(kNow, absl::InfinitePast()) == SnapshotTurn::kAtOnce);  // no pace
}

}  // namespace
}  // namespace strata::server
