#include "proto/runtime/base/executor.h"

#include <pthread.h>

#include <atomic>
#include <barrier>
#include <catch2/catch.hpp>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace strata {
namespace {

TEST_CASE("a pool runs everything before it ends, also what its closures post", "[executor]") {
  std::atomic<int> ran{0};
  {
    const std::unique_ptr<Executor> pool = MakeThreadPool(3, "pool");
    for (int i = 0; i < 100; ++i) {
      pool->Post([&] {
        ++ran;
        pool->Post([&] { ++ran; });
      });
    }
  }
  CHECK(ran == 200);
}

TEST_CASE("a pool's threads run at the same time and bear its name", "[executor]") {
  const std::unique_ptr<Executor> pool = MakeThreadPool(2, "a-rather-long-name");
  std::barrier both(2);
  std::vector<std::string> names(2);
  std::latch done(2);
  for (int i = 0; i < 2; ++i) {
    pool->Post([&, i] {
      both.arrive_and_wait();  // passes only when both run
      char name[16];
      pthread_getname_np(pthread_self(), name, sizeof(name));
      names[i] = name;
      done.count_down();
    });
  }
  done.wait();
  CHECK(names[0] == "a-rather-long-n");
}

TEST_CASE("another thread takes the place of one that waits outside", "[executor]") {
  std::latch other_ran(1);
  std::atomic<int> running{0}, most{0};
  {
    const std::unique_ptr<Executor> pool = MakeThreadPool(1, "pool");
    pool->Post([&] {
      const BlockingSection outside;
      other_ran.wait();
    });
    pool->Post([&] { other_ran.count_down(); });
    for (int i = 0; i < 1000; ++i) {
      pool->Post([&] {
        const int now = ++running;
        int seen = most.load();
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
        std::this_thread::yield();
        --running;
      });
    }
  }
  CHECK(other_ran.try_wait());
  CHECK(most == 1);
  const BlockingSection nothing;  // on a thread of no pool
}

TEST_CASE("however many wait outside, others take their places", "[executor]") {
  std::latch other_ran(1);
  const std::unique_ptr<Executor> pool = MakeThreadPool(2, "pool");
  for (int i = 0; i < 20; ++i) {
    pool->Post([&] {
      const BlockingSection outside;
      other_ran.wait();
    });
  }
  pool->Post([&] { other_ran.count_down(); });
  other_ran.wait();
  CHECK(other_ran.try_wait());
}

TEST_CASE("a serial runs in order, one at a time, whoever posts", "[executor]") {
  const std::unique_ptr<Executor> pool = MakeThreadPool(4, "pool");
  constexpr int kThreads = 4;
  constexpr int kEach = 5000;
  std::vector<std::vector<int>> seen(kThreads);
  int inside = 0;  // unguarded on purpose: the serial is the guard
  int overlaps = 0;
  {
    const std::unique_ptr<Executor> serial = MakeSerial(pool.get());
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          serial->Post([&, t, i] {
            overlaps += inside;
            ++inside;
            seen[t].push_back(i);
            --inside;
          });
        }
      });
    }
    for (std::thread& t : threads) t.join();
  }
  CHECK(overlaps == 0);
  for (const std::vector<int>& order : seen) {
    REQUIRE(order.size() == kEach);
    for (int i = 0; i < kEach; ++i) REQUIRE(order[i] == i);
  }
}

TEST_CASE("a serial lets other queues of its base run", "[executor]") {
  ManualExecutor base;
  const std::unique_ptr<Executor> busy = MakeSerial(&base);
  const std::unique_ptr<Executor> other = MakeSerial(&base);
  int ran = 0;
  for (int i = 0; i < 1000; ++i) busy->Post([&] { ++ran; });
  int before = -1;
  other->Post([&] { before = ran; });
  base.RunAll();
  CHECK(ran == 1000);
  CHECK(before < 100);
}

TEST_CASE("a serial's destructor waits for what runs", "[executor]") {
  const std::unique_ptr<Executor> pool = MakeThreadPool(1, "pool");
  std::latch running(1);
  std::latch go(1);
  std::atomic<bool> finished{false};
  auto serial = MakeSerial(pool.get());
  serial->Post([&] {
    running.count_down();
    go.wait();
    finished = true;
  });
  running.wait();
  std::thread releaser([&] { go.count_down(); });
  serial.reset();
  CHECK(finished);
  releaser.join();
}

// A pool's thread may not touch the lock any more: ThreadSanitizer tells, in about every other run.
TEST_CASE("a serial may be destroyed as soon as its last closure has run", "[executor]") {
  const std::unique_ptr<Executor> pool = MakeThreadPool(2, "pool");
  std::atomic<int> ran{0};
  constexpr int kThreads = 2;
  constexpr int kRounds = 8000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        const std::unique_ptr<Executor> serial = MakeSerial(pool.get());
        serial->Post([&] { ++ran; });
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(ran == kThreads * kRounds);
}

TEST_CASE("a manual executor runs when told", "[executor]") {
  ManualExecutor executor;
  std::string order;
  CHECK(!executor.RunOne());
  executor.Post([&] {
    order += 'a';
    executor.Post([&] { order += 'c'; });
  });
  executor.Post([&] { order += 'b'; });
  CHECK(executor.waiting() == 2);
  CHECK(order.empty());
  CHECK(executor.RunOne());
  CHECK(order == "a");
  CHECK(executor.RunAll() == 2);
  CHECK(order == "abc");
}

}  // namespace
}  // namespace strata
