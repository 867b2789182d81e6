#include "scheduler/store/checkpoint_lock.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"

namespace strata::scheduler {
namespace {

using Action = CheckpointLockMachine::Action;
using May = CheckpointLockMachine::May;
using Phase = CheckpointLockMachine::Phase;

constexpr absl::Duration kLease = absl::Seconds(9);
const absl::Time kStart = absl::FromUnixSeconds(1000);

CheckpointLock Owner(const std::string& cluster, const std::string& uid) {
  CheckpointLock lock;
  lock.set_format(1);
  lock.set_cluster_id(cluster);
  lock.set_job_uid(uid);
  lock.set_name("day");
  lock.set_holder("process 7 on ps-1");
  lock.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(kLease)));
  return lock;
}

LockSeen Theirs(uint64_t number, uint64_t counter, bool released = false) {
  LockSeen seen{.number = number, .text = std::to_string(counter), .lock = Owner("c2", "j2")};
  seen.lock->set_counter(counter);
  seen.lock->set_released(released);
  return seen;
}

struct One {
  explicit One(bool began = false) : machine(Owner("c1", "j1"), "/ckpt", kLease, began) {}

  void Look(const LockSeen& seen, OwnerIs owner = OwnerIs::kStranger) {
    REQUIRE(machine.Due(now) == Action::kLook);
    machine.Looked(seen, owner, now, now);
  }
  void Take() {
    REQUIRE(machine.Due(now) == Action::kTake);
    machine.Took(true, now);
    REQUIRE(machine.phase() == Phase::kHeld);
  }

  absl::Time now = kStart;
  CheckpointLockMachine machine;
};

TEST_CASE("a free directory is taken under the next number", "[lock]") {
  One none;
  CHECK(none.machine.MayWrite(none.now) == May::kNotNow);
  none.Look({});
  CHECK(none.machine.number() == 1);
  CHECK(none.machine.Record().job_uid() == "j1");
  CHECK_FALSE(none.machine.Record().released());
  none.Take();
  CHECK(none.machine.MayWrite(none.now) == May::kYes);

  One released;
  released.Look(Theirs(4, 9, /*released=*/true));
  CHECK(released.machine.number() == 5);
  released.Take();
  CHECK(released.machine.first_cut() == 0);

  LockSeen writers = Theirs(4, 9, /*released=*/true);  // whose servers may be writing
  writers.lock->set_taken_over(true);
  One after;
  after.Look(writers);
  after.Take();
  CHECK(after.machine.first_cut() == uint64_t{5} << 20);
  CHECK(after.machine.Record().taken_over());  // also for the next one, if this one is short

  One over;  // of this cluster, whose job is no more
  over.Look(Theirs(4, 9), OwnerIs::kOver);
  CHECK(over.machine.number() == 5);
  CHECK(over.machine.first_cut() == 0);  // nothing is held yet
  over.Take();
  CHECK(over.machine.first_cut() == uint64_t{5} << 20);
}

// It renews while it removes what is to go, and is no job that one could cancel.
TEST_CASE("a job of this cluster that is over is waited for", "[lock]") {
  One one;
  for (uint64_t renewal = 1; renewal < 20; ++renewal) {
    one.Look(Theirs(4, renewal), OwnerIs::kEnding);
    REQUIRE(one.machine.phase() == Phase::kWaiting);
    one.now += kLease / 3;
  }
  CHECK(absl::StrContains(one.machine.Why(), "which is over"));
  one.machine.OwnerDoes("removing /c/4");
  CHECK(absl::StrContains(one.machine.Why(), "gives back its lock; now it is removing /c/4"));
  const bool released = GENERATE(true, false);
  one.Look(Theirs(4, 21, released), released ? OwnerIs::kEnding : OwnerIs::kOver);
  one.Take();
  CHECK(one.machine.number() == 5);
  CHECK(one.machine.first_cut() == (released ? 0 : uint64_t{5} << 20));
}

TEST_CASE("it is renewed every third of a lease, and writes for one after the last", "[lock]") {
  One one;
  one.Look({});
  one.Take();
  CHECK(one.machine.Due(one.now + kLease / 3 - absl::Milliseconds(1)) == Action::kNone);
  one.now += kLease / 3;
  REQUIRE(one.machine.Due(one.now) == Action::kRenew);
  const uint64_t before = one.machine.Record().counter();
  one.machine.Renewed(one.now);
  CHECK(one.machine.Record().counter() == before + 1);
  const absl::Time renewed = one.now;
  one.now += kLease / 3;
  one.machine.Failed(absl::ResourceExhaustedError("/ckpt/LOCK.1: full"), one.now);
  CHECK(one.machine.Due(one.now) == Action::kNone);  // not again at once
  CHECK(one.machine.MayWrite(renewed + kLease - absl::Milliseconds(1)) == May::kYes);
  CHECK_FALSE(one.machine.Stalls(renewed + kLease - absl::Milliseconds(1)));
  one.now = renewed + kLease;
  CHECK(one.machine.MayWrite(one.now) == May::kNotNow);
  CHECK(one.machine.Stalls(one.now));
  CHECK(absl::StrContains(one.machine.Why(), "spec.checkpoint.directory /ckpt cannot be locked"));
  CHECK(absl::StrContains(one.machine.Why(), "LOCK.1: full"));
  // From then on it is no renewal that gives the lock back, but the next number.
  LockSeen own{.number = 1, .text = "a", .lock = one.machine.Record()};
  one.Look(own);
  CHECK(one.machine.MayWrite(one.now) == May::kNotNow);
  one.Take();
  CHECK(one.machine.number() == 2);
  CHECK(one.machine.first_cut() == 0);
  CHECK(one.machine.MayWrite(one.now) == May::kYes);
}

TEST_CASE("a lock that lapsed is taken anew, or was lost meanwhile", "[lock]") {
  for (const bool released : {false, true}) {
    One one;
    one.Look(Theirs(4, 9), OwnerIs::kOver);
    one.Take();
    CHECK(one.machine.Record().taken_over());
    one.now += kLease;
    LockSeen own{.number = 5, .text = "a", .lock = one.machine.Record()};
    One faster = one, late = one;
    one.Look(own);
    one.Take();
    CHECK(one.machine.number() == 6);
    CHECK(one.machine.first_cut() == uint64_t{6} << 20);  // servers of job 4 may write still
    // Another took it before it looked, or between its look and its take.
    late.Look(Theirs(6, 1, released));
    CHECK(late.machine.phase() == Phase::kLost);
    faster.Look(own);
    REQUIRE(faster.machine.Due(faster.now) == Action::kTake);
    faster.machine.Took(false, faster.now);
    CHECK(faster.machine.MayWrite(faster.now) == May::kNotNow);
    faster.Look(Theirs(6, 1, released));
    CHECK(faster.machine.phase() == Phase::kLost);
    CHECK(faster.machine.MayWrite(faster.now) == May::kNever);
  }
}

TEST_CASE("who was silent for two leases by the looker's clock is replaced", "[lock]") {
  One one;
  one.Look(Theirs(4, 9));
  CHECK(one.machine.phase() == Phase::kWaiting);
  const std::string why = one.machine.Why();
  for (const char* said : {"spec.checkpoint.directory /ckpt", "job day (j2) of cluster c2",
                           "process 7 on ps-1", "/ckpt/LOCK.4", "18s"}) {
    INFO(why);
    CHECK(absl::StrContains(why, said));
  }
  while (one.now < kStart + 2 * kLease) {
    CHECK(one.machine.MayWrite(one.now) == May::kNotNow);
    CHECK(one.machine.Due(one.now) == Action::kNone);
    one.now += kLease / 12;
    one.Look(Theirs(4, 9));
  }
  CHECK(one.machine.number() == 5);
  // Two looked for as long: one of them makes it, the other begins to look anew.
  REQUIRE(one.machine.Due(one.now) == Action::kTake);
  One other = one;
  other.machine.Took(true, one.now);
  CHECK(other.machine.first_cut() == uint64_t{5} << 20);
  one.machine.Took(false, one.now);
  one.Look(Theirs(5, 1));
  CHECK(one.machine.phase() == Phase::kWaiting);
}

TEST_CASE("a job's lock of an earlier term is taken over, and one of a later term is lost",
          "[lock]") {
  for (const bool began : {false, true}) {
    CheckpointLock own = Owner("c1", "j1");
    own.set_term(5);
    LockSeen seen{.number = 3, .text = "t", .lock = own};
    own.set_start_id("s1");
    seen.lock->set_start_id("s1");
    CheckpointLockMachine same(own, "/ckpt", kLease, began);
    same.Looked(seen, OwnerIs::kLive, kStart, kStart);
    REQUIRE(same.Due(kStart) == Action::kTake);
    CHECK(same.number() == 4);
    CHECK_FALSE(same.Beaten(seen));

    // Another start of that term, and one before it that these records know by another id.
    for (const uint64_t term : {5, 4}) {
      LockSeen other = seen;
      other.lock->set_term(term);
      other.lock->set_start_id("s2");
      CheckpointLockMachine copy(own, "/ckpt", kLease, began);
      copy.Looked(other, OwnerIs::kStranger, kStart, kStart);
      CHECK(copy.phase() == Phase::kSuperseded);
      CHECK(copy.MayWrite(kStart) == May::kNotNow);
      for (const char* said : {"another start of its own cluster", "s1", "s2", "--restored"}) {
        INFO(copy.Why());
        CHECK(absl::StrContains(copy.Why(), said));
      }
      CHECK(same.Beaten(other) == (term == 5));
    }

    seen.lock->set_term(4);
    CheckpointLockMachine later(own, "/ckpt", kLease, began);
    later.Looked(seen, OwnerIs::kLive, kStart, kStart);
    REQUIRE(later.Due(kStart) == Action::kTake);
    CHECK(later.number() == 4);
    CHECK(later.MayWrite(kStart) == May::kNotNow);
    later.Took(true, kStart);
    CHECK(later.first_cut() == 0);

    seen.lock->set_term(6);
    CHECK(same.Beaten(seen));
    for (const bool released : {false, true}) {
      seen.lock->set_released(released);
      CheckpointLockMachine earlier(own, "/ckpt", kLease, began);
      earlier.Looked(seen, OwnerIs::kLive, kStart, kStart);
      CHECK(earlier.phase() == Phase::kSuperseded);
      CHECK(earlier.MayWrite(kStart) == May::kNotNow);  // what is to be written is not forgotten
      CHECK(earlier.Due(kStart + 10 * kLease) == Action::kNone);
      CHECK(absl::StrContains(earlier.Why(), "a later scheduler of its own cluster"));
    }
  }
}

TEST_CASE("a longer lease of the owner counts, and a lock that cannot be read", "[lock]") {
  One one;
  LockSeen longer = Theirs(1, 1);
  longer.lock->set_lease_ms(60000);
  one.Look(longer);
  one.now = kStart + 2 * kLease + absl::Seconds(1);
  one.Look(longer);
  CHECK(one.machine.phase() == Phase::kWaiting);
  one.now = kStart + absl::Seconds(120);
  one.Look(longer);
  CHECK(one.machine.Due(one.now) == Action::kTake);

  One damaged;
  damaged.Look({.number = 2, .text = "x"});
  CHECK(damaged.machine.phase() == Phase::kWaiting);
  damaged.now += 2 * kLease;
  damaged.Look({.number = 2, .text = "x"});
  CHECK(damaged.machine.number() == 3);
}

TEST_CASE("who sees the owner renew is refused", "[lock]") {
  One one;
  one.Look(Theirs(4, 9));
  one.now += kLease / 12;
  one.Look(Theirs(4, 10));
  CHECK(one.machine.phase() == Phase::kRefused);
  CHECK(one.machine.MayWrite(one.now) == May::kNever);
  CHECK(absl::StrContains(one.machine.Why(), "which is alive"));
  CHECK(one.machine.Due(one.now + kLease) == Action::kNone);

  One other;  // or sees another one take over
  other.Look(Theirs(4, 9));
  other.now += kLease / 12;
  LockSeen third = Theirs(5, 9);
  third.lock->set_job_uid("j3");
  other.Look(third);
  CHECK(other.machine.phase() == Phase::kRefused);

  One own;  // a job of this cluster is known to live
  own.Look(Theirs(4, 9), OwnerIs::kLive);
  CHECK(own.machine.phase() == Phase::kRefused);

  One ended;  // the owner gave it back meanwhile
  ended.Look(Theirs(4, 9));
  ended.now += kLease / 12;
  ended.Look(Theirs(4, 10, /*released=*/true));
  CHECK(ended.machine.Due(ended.now) == Action::kTake);
}

TEST_CASE("a job goes on with the lock that another process of its scheduler took", "[lock]") {
  One one(/*began=*/true);
  LockSeen mine{.number = 4, .text = "a", .lock = Owner("c1", "j1")};
  mine.lock->set_counter(41);
  one.Look(mine, OwnerIs::kLive);
  CHECK(one.machine.MayWrite(one.now) == May::kNotNow);  // not before it has taken it anew
  one.Take();
  CHECK(one.machine.number() == 5);
  CHECK(one.machine.first_cut() == 0);
  CHECK(one.machine.MayWrite(one.now) == May::kYes);

  One after_silent(/*began=*/false);  // the process before took it from one that fell silent
  mine.lock->set_taken_over(true);
  after_silent.Look(mine, OwnerIs::kLive);
  after_silent.Take();
  CHECK(after_silent.machine.first_cut() == uint64_t{5} << 20);

  for (const bool released : {false, true}) {
    One late(/*began=*/true);  // others wrote there since
    late.Look(Theirs(5, 3, released));
    CHECK(late.machine.phase() == Phase::kLost);
    CHECK(late.machine.MayWrite(late.now) == May::kNever);
    CHECK(absl::StrContains(late.machine.Why(), "was taken over by job day (j2) of cluster c2"));
  }
}

TEST_CASE("what was lost is not taken again, and what is given back says so", "[lock]") {
  One one;
  one.Look({});
  one.Take();
  one.machine.LostTo(Theirs(2, 1));
  CHECK(one.machine.MayWrite(one.now) == May::kNever);
  CHECK(one.machine.Due(one.now + 10 * kLease) == Action::kNone);

  One given;
  given.Look({});
  given.Take();
  const bool writers = GENERATE(false, true);
  given.machine.GiveBack(writers);
  REQUIRE(given.machine.Due(given.now) == Action::kRelease);
  CHECK(given.machine.Record().released());
  CHECK(given.machine.Record().taken_over() == writers);
  given.machine.Released();
  CHECK(given.machine.phase() == Phase::kReleased);
  CHECK(given.machine.MayWrite(given.now) == May::kNever);
}

}  // namespace
}  // namespace strata::scheduler
