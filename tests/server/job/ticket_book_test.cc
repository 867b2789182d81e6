#include "server/job/ticket_book.h"

#include <catch2/catch.hpp>
#include <random>

#include "tests/seed.h"

namespace strata::server {
namespace {

constexpr uint64_t kIncarnation = 7;

TicketBook::KeysPtr Keys(size_t n) {
  auto keys = std::make_shared<RequestKeys>();
  keys->groups.emplace_back();
  keys->groups[0].positions.resize(n);
  return keys;
}

uint64_t Bytes(size_t n) { return Keys(n)->TicketBytes(); }

// A book and the tickets that it said goodbye to.
struct Fixture {
  explicit Fixture(size_t per_session, uint64_t bytes = uint64_t{1} << 30)
      : book(kIncarnation, Generation(3), {per_session, bytes}) {}
  wire::Ticket Add(uint64_t session, uint64_t step, size_t n) {
    return book.Add(SessionId(session), Step(step), 99, Keys(n), dropped);
  }
  bool Holds(uint64_t session, const wire::Ticket& t) const {
    const auto found = book.Find(SessionId(session), t);
    if (!found.ok()) REQUIRE(wire::IsTicketError(found.status()));
    return found.ok();
  }
  TicketBook book;
  std::vector<TicketBook::KeysPtr> dropped;
};

TEST_CASE("a ticket names its keys, for its session, with its fingerprint only", "[ticket]") {
  Fixture f(4);
  const auto keys = Keys(10);
  const wire::Ticket t = f.book.Add(SessionId(1), Step(5), 1234, keys, f.dropped);
  REQUIRE(t);
  CHECK(t.incarnation == kIncarnation);
  CHECK(t.keys == 10);
  CHECK(t.fingerprint == 1234);
  REQUIRE(f.book.Find(SessionId(1), t).ok());
  CHECK(*f.book.Find(SessionId(1), t) == keys);
  CHECK_FALSE(f.Holds(2, t));
  const auto wrong = [&](auto change) {
    wire::Ticket other = t;
    change(other);
    return !f.Holds(1, other);
  };
  CHECK(wrong([](auto& o) { ++o.incarnation; }));
  CHECK(wrong([](auto& o) { ++o.number; }));
  CHECK(wrong([](auto& o) { o.number = 0; }));
  CHECK(wrong([](auto& o) { ++o.keys; }));
  CHECK(wrong([](auto& o) { ++o.fingerprint; }));
  // Another generation of the job, or another process, never gives the same ticket.
  TicketBook next(kIncarnation, Generation(4), {4, 1 << 20});
  CHECK(next.Add(SessionId(1), Step(5), 1234, keys, f.dropped).number != t.number);
  CHECK_FALSE(next.Find(SessionId(1), t).ok());
}

TEST_CASE("tickets end with their step; those of no step stay", "[ticket]") {
  Fixture f(10);
  const auto one = f.Add(1, 1, 3), two = f.Add(1, 2, 3), again = f.Add(2, 1, 3),
             async = f.Add(1, 0, 3);
  CHECK(f.book.Committed(Step(0)).empty());
  CHECK(f.book.Committed(Step(1)).size() == 2);
  CHECK_FALSE(f.Holds(1, one));
  CHECK_FALSE(f.Holds(2, again));
  CHECK(f.Holds(1, two));
  CHECK(f.Holds(1, async));
  CHECK(f.book.Committed(Step(100)).size() == 1);
  CHECK(f.Holds(1, async));
  CHECK(f.book.size() == 1);
  CHECK(f.book.Clear().size() == 1);
  CHECK(f.book.size() == 0);
  CHECK(f.book.bytes() == 0);
}

TEST_CASE("a session's oldest ticket goes, nobody else's", "[ticket]") {
  Fixture f(2);
  const auto other = f.Add(2, 1, 3);
  const auto a = f.Add(1, 1, 3), b = f.Add(1, 1, 3), c = f.Add(1, 2, 3);
  CHECK(f.dropped.size() == 1);
  CHECK_FALSE(f.Holds(1, a));
  CHECK(f.Holds(1, b));
  CHECK(f.Holds(1, c));
  CHECK(f.Holds(2, other));
  CHECK(f.book.Close(SessionId(1)).size() == 2);
  CHECK(f.book.Close(SessionId(1)).empty());
  CHECK(f.Holds(2, other));
  CHECK(TicketBook::PerSession(8) == 20);
}

TEST_CASE("bytes are bounded: the oldest go, and what never fits gets no ticket", "[ticket]") {
  Fixture f(100, 3 * Bytes(100));
  CHECK_FALSE(f.Add(1, 1, 1000));
  CHECK(f.book.size() == 0);
  const auto a = f.Add(1, 1, 100), b = f.Add(2, 1, 100), c = f.Add(1, 1, 100);
  CHECK(f.dropped.empty());
  const auto d = f.Add(1, 1, 150);  // the first two must go
  CHECK(f.dropped.size() == 2);
  CHECK_FALSE(f.Holds(1, a));
  CHECK_FALSE(f.Holds(2, b));
  CHECK(f.Holds(1, c));
  CHECK(f.Holds(1, d));
  CHECK(f.book.bytes() == Bytes(100) + Bytes(150));
}

TEST_CASE("random use keeps within the limits and loses no ticket silently", "[ticket][seeds]") {
  for (const uint64_t seed : Seeds("ticket_book", 0, 300)) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const TicketBook::Limits limits{1 + random() % 5, Bytes(50) * (1 + random() % 6)};
    TicketBook book(kIncarnation, Generation(1), limits);
    std::map<const RequestKeys*, std::pair<SessionId, wire::Ticket>> held;
    uint64_t clock = 0;
    for (int i = 0; i < 200; ++i) {
      std::vector<TicketBook::KeysPtr> ended;
      switch (random() % 8) {
        case 0:
          ended = book.Committed(Step(++clock));
          break;
        case 1:
          ended = book.Close(SessionId(random() % 4));
          break;
        case 2:
          if (random() % 10 == 0) ended = book.Clear();
          break;
        case 3: {
          const SessionId left(random() % 4);
          ended = book.CloseOthers([left](SessionId session) { return session != left; });
          for (const auto& keys : ended) REQUIRE(held.at(keys.get()).first == left);
          break;
        }
        default: {
          const auto keys = Keys(random() % 120);
          const SessionId session(random() % 4);
          const auto t = book.Add(session, Step(random() % 2 == 0 ? 0 : clock + 1 + random() % 2),
                                  static_cast<uint32_t>(random()), keys, ended);
          REQUIRE(static_cast<bool>(t) == (keys->TicketBytes() <= limits.bytes));
          if (t) held[keys.get()] = {session, t};
        }
      }
      for (const auto& keys : ended) REQUIRE(held.erase(keys.get()) == 1);
      REQUIRE(book.size() == held.size());
      REQUIRE(book.bytes() <= limits.bytes);
      std::map<SessionId, size_t> per_session;
      for (const auto& [keys, ticket] : held) {
        auto found = book.Find(ticket.first, ticket.second);
        REQUIRE(found.ok());
        REQUIRE(found->get() == keys);
        REQUIRE(++per_session[ticket.first] <= limits.per_session);
      }
    }
  }
}

}  // namespace
}  // namespace strata::server
