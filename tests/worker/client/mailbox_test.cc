// Mail runs in the order it came, on the owner's thread; that of a round that is over never, and
// nothing of it is kept.
#include "worker/client/mailbox.h"

#include <catch2/catch.hpp>
#include <memory>
#include <thread>
#include <vector>

namespace strata {
namespace {

using Ran = std::vector<int>;

TEST_CASE("mail runs once, in the order it came", "[mailbox]") {
  Mailbox mailbox;
  Ran ran;
  for (const int i : {1, 2, 3}) mailbox.Post([&ran, i] { ran.push_back(i); });
  CHECK(ran.empty());
  mailbox.Run();
  mailbox.Run();
  CHECK(ran == Ran{1, 2, 3});
}

TEST_CASE("mail that mail posts runs the next time", "[mailbox]") {
  Mailbox mailbox;
  int ran = 0;
  mailbox.Post([&] { mailbox.Post([&] { ++ran; }); });
  mailbox.Run();
  CHECK(ran == 0);
  mailbox.Run();
  CHECK(ran == 1);
}

TEST_CASE("mail of a round that is over is dropped, whenever it comes", "[mailbox]") {
  Mailbox mailbox;
  Ran ran;
  const auto payload = std::make_shared<int>(0);
  const auto note = [&](int i) { return [&ran, i, payload] { ran.push_back(i); }; };
  const Mailbox::Round first = mailbox.round();
  mailbox.Post(note(1));
  mailbox.PostIn(first, note(2));
  mailbox.Post(note(3));
  CHECK(payload.use_count() == 1 + 3);  // here and in the mail
  mailbox.EndRound();
  CHECK(payload.use_count() == 1 + 2);
  mailbox.PostIn(first, note(4));
  CHECK(payload.use_count() == 1 + 2);
  mailbox.PostIn(mailbox.round(), note(5));
  mailbox.Run();
  CHECK(ran == Ran{1, 3, 5});
  CHECK(payload.use_count() == 1);
}

// What the dropped mail held may end as mail is posted: its end must find no lock held.
TEST_CASE("mail is dropped without the lock", "[mailbox]") {
  Mailbox mailbox;
  int ran = 0;
  const auto posts_as_it_ends = [&] {
    return std::shared_ptr<void>(nullptr, [&](void*) { mailbox.Post([&] { ++ran; }); });
  };
  const Mailbox::Round first = mailbox.round();
  mailbox.PostIn(first, [held = posts_as_it_ends()] {});
  mailbox.EndRound();
  mailbox.PostIn(first, [held = posts_as_it_ends()] {});
  mailbox.Run();
  CHECK(ran == 2);
}

TEST_CASE("an owner waits for what other threads post, and loses none of it", "[mailbox]") {
  constexpr int kEach = 1000;
  Mailbox mailbox;
  int ran = 0;  // touched by the owner's thread alone
  const auto posts = [&] {
    for (int i = 0; i < kEach; ++i) mailbox.Post([&ran] { ++ran; });
  };
  std::thread one(posts), two(posts);
  while (ran < 2 * kEach) mailbox.WaitAndRun();
  one.join();
  two.join();
  CHECK(ran == 2 * kEach);
}

TEST_CASE("rounds end while other threads post", "[mailbox]") {
  constexpr int kMail = 20000;
  Mailbox mailbox;
  const auto payload = std::make_shared<int>(0);
  const Mailbox::Round first = mailbox.round();
  int ran = 0;
  std::thread posts([&, payload] {
    for (int i = 0; i < kMail; ++i) mailbox.PostIn(first, [&ran, payload] { ++ran; });
  });
  mailbox.WaitAndRun();
  mailbox.EndRound();
  const int before = ran;
  posts.join();
  mailbox.Run();
  CHECK(ran == before);
  CHECK(payload.use_count() == 1);
}

}  // namespace
}  // namespace strata
