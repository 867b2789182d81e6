#include "scheduler/job/file_queue.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace strata::scheduler {
namespace {

bool Yes(const FileWork&) { return true; }

TEST_CASE("what is put off stays before what came after it", "[scheduler]") {
  FileQueue queue;
  queue.Add(RemoveCheckpointWork{.job = 1, .folder = "/c/4", .meant = {}});
  queue.Add(WriteManifestWork{.job = 1, .cut = 7, .folder = "/c/4", .manifest = {}});
  queue.Add(EmptyFileWork{.job = 2, .path = "/m"});
  CHECK(queue.Begin(Yes) == std::vector<uint64_t>{1, 2});
  CHECK(queue.Begin(Yes).empty());  // somebody does them
  REQUIRE(std::holds_alternative<RemoveCheckpointWork>(*queue.First(1)));
  queue.PutOff(1);
  queue.Add(EmptyFileWork{.job = 1, .path = "/m"});
  // What may be done at any time waits as well.
  const auto empties = [](const FileWork& w) { return std::holds_alternative<EmptyFileWork>(w); };
  CHECK(queue.Begin(empties).empty());
  CHECK(queue.Jobs() == std::set<uint64_t>{1, 2});
  CHECK(queue.Begin(Yes) == std::vector<uint64_t>{1});
  REQUIRE(std::holds_alternative<RemoveCheckpointWork>(*queue.First(1)));
  queue.Done(1);
  REQUIRE(std::holds_alternative<WriteManifestWork>(*queue.First(1)));
  queue.Done(1);
  REQUIRE(std::holds_alternative<EmptyFileWork>(*queue.First(1)));
  queue.Done(1);
  CHECK(queue.Jobs() == std::set<uint64_t>{1, 2});  // until who does them has seen the end
  CHECK(queue.First(1) == nullptr);
  CHECK(queue.Jobs() == std::set<uint64_t>{2});
  queue.Done(2);
  CHECK(queue.First(2) == nullptr);
  CHECK(queue.Jobs().empty());
}

RemoveLeftoversWork Look(uint64_t number, std::set<std::string> folders) {
  return {.job = 1,
          .number = number,
          .directory = "/c",
          .over = {.identity = {}, .generation = {}, .folders = std::move(folders)}};
}

TEST_CASE("of the looks for leftovers that wait the newest stands for all", "[scheduler]") {
  FileQueue queue;
  uint64_t number = 0;
  queue.Add(Look(++number, {"/c/0"}));
  REQUIRE(queue.Begin(Yes).size() == 1);
  for (uint64_t i = 1; i <= 1000; ++i) {
    queue.Add(WriteManifestWork{.job = 1, .cut = i, .folder = "/c/4", .manifest = {}});
    queue.Add(Look(++number, {i % 2 == 0 ? "/c/2" : "/c/3"}));
  }
  const auto take = [&] {
    const FileWork work = *queue.First(1);
    queue.Done(1);
    return work;
  };
  CHECK(std::get<RemoveLeftoversWork>(take()).number == 1);  // is being done
  for (uint64_t i = 1; i <= 1000; ++i) REQUIRE(std::get<WriteManifestWork>(take()).cut == i);
  const auto last = std::get<RemoveLeftoversWork>(take());
  CHECK(last.number == number);
  CHECK(last.over.folders == std::set<std::string>{"/c/2", "/c/3"});
  CHECK(queue.First(1) == nullptr);
  queue.Add(Look(1, {}));
  queue.Add(Look(2, {"/c/2"}));
  queue.Add(Look(3, {"/c/3"}));
  CHECK(std::get<RemoveLeftoversWork>(*queue.First(1)).over.folders.empty());  // all stays all
}

TEST_CASE("what a job's files wait for has a name", "[scheduler]") {
  FileQueue queue;
  CHECK(queue.Describe(1).empty());
  queue.Add(EmptyFileWork{.job = 1, .path = "/mount/m.jsonl"});
  queue.Add(RemoveCheckpointWork{.job = 1, .folder = "/c/4", .meant = {}});
  queue.Add(WriteManifestWork{.job = 1, .cut = 7, .folder = "/c/5", .manifest = {}});
  queue.Add(Look(1, {}));
  REQUIRE(queue.Begin(Yes).size() == 1);
  for (const char* does :
       {"emptying /mount/m.jsonl", "removing /c/4", "writing the manifest of /c/5",
        "removing from /c what cuts left that were given up"}) {
    CHECK(queue.Describe(1) == does);
    queue.Done(1);
  }
  CHECK(queue.Describe(1).empty());
}

// Who does it reads it without a lock.
TEST_CASE("the first piece stays where it is while others come and go", "[scheduler]") {
  FileQueue queue;
  queue.Add(WriteManifestWork{.job = 1, .cut = 1, .folder = "/c/1", .manifest = {}});
  REQUIRE(queue.Begin(Yes).size() == 1);
  const FileWork* const first = queue.First(1);
  for (uint64_t i = 2; i < 100; ++i) {
    queue.Add(Look(i, {"/c/2"}));
    for (const uint64_t behind : {1, 2}) {
      queue.Add(WriteManifestWork{.job = 1, .cut = i + behind, .folder = "/c/3", .manifest = {}});
    }
    REQUIRE(queue.First(1) == first);
    REQUIRE(std::get<WriteManifestWork>(*first).cut == 1);
  }
}

}  // namespace
}  // namespace strata::scheduler
