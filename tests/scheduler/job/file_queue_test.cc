#include "scheduler/job/file_queue.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
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

}  // namespace
}  // namespace strata::scheduler
