// What every MetadataStore promises; each implementation registers a line in Stores().
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "scheduler/store/memory_metadata_store.h"
#include "scheduler/store/rocks_metadata_store.h"
#include "tests/skip.h"
#include "tests/small_disk.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

struct Kind {
  const char* name;
  std::function<std::unique_ptr<MetadataStore>(const std::string&)> open;
  bool lasts;
};

std::vector<Kind> Stores() {
  return {{"memory", [](const std::string&) { return MakeMemoryMetadataStore(); }, false},
          {"rocksdb",
           [](const std::string& dir) {
             auto store = OpenRocksMetadataStore(dir);
             INFO(store.status());
             REQUIRE(store.ok());
             return *std::move(store);
           },
           true}};
}

using Records = std::map<std::string, std::string>;

TEST_CASE("batches are applied in order and whole", "[scheduler][store]") {
  for (const Kind& kind : Stores()) {
    INFO(kind.name);
    TempFolder folder;
    auto store = kind.open(folder.path());
    REQUIRE(store->Read()->empty());
    const std::string bytes("\0\xff\n", 3);
    REQUIRE(store->Append({{"a", "1"}, {bytes, bytes}, {"c", ""}}).ok());
    REQUIRE(*store->Read() == Records{{"a", "1"}, {bytes, bytes}, {"c", ""}});
    REQUIRE(store->Append({{"a", "2"}, {"a", std::nullopt}, {"c", std::nullopt}, {"c", "3"}}).ok());
    REQUIRE(*store->Read() == Records{{bytes, bytes}, {"c", "3"}});
    REQUIRE(store->Append({}).ok());
    REQUIRE(store->Append({{"not there", std::nullopt}}).ok());
    REQUIRE(store->Read()->size() == 2);
  }
}

TEST_CASE("what was appended is there after a restart", "[scheduler][store]") {
  for (const Kind& kind : Stores()) {
    if (!kind.lasts) continue;
    INFO(kind.name);
    TempFolder folder;
    Records expected;
    for (int round = 0; round < 5; ++round) {
      auto store = kind.open(folder.path());
      REQUIRE(*store->Read() == expected);
      for (int i = 0; i < 20; ++i) {
        const std::string key = std::to_string(i % 7), value(1000, static_cast<char>('a' + round));
        REQUIRE(store->Append({{key, value}}).ok());
        expected[key] = value;
      }
    }
  }
}

TEST_CASE("a store that another has open is refused", "[scheduler][store]") {
  TempFolder folder;
  auto first = OpenRocksMetadataStore(folder.path());
  REQUIRE(first.ok());
  auto second = OpenRocksMetadataStore(folder.path());
  REQUIRE(absl::IsFailedPrecondition(second.status()));
  REQUIRE(std::string(second.status().message()).find(folder.path()) != std::string::npos);
}

TEST_CASE("a path that cannot be a folder is an error that names it", "[scheduler][store]") {
  TempFolder folder;
  std::FILE* file = std::fopen((folder.path() + "/file").c_str(), "w");
  std::fclose(file);
  auto store = OpenRocksMetadataStore(folder.path() + "/file");
  REQUIRE_FALSE(store.ok());
  REQUIRE(std::string(store.status().message()).find(folder.path()) != std::string::npos);
}

// Whoever is told "recorded" finds it there at the next start. `lose` makes that impossible.
void CheckNotRecordedAfter(const char* how, const std::function<void(const std::string&)>& lose) {
  INFO(how);
  TempFolder folder;
  const std::string directory = folder.path() + "/dir/metadata";
  auto store = OpenRocksMetadataStore(directory);
  REQUIRE(store.ok());
  REQUIRE((*store)->Append({{"a", "1"}}).ok());
  lose(directory);
  for (int i = 0; i < 3; ++i) {
    const absl::Status s = (*store)->Append({{"b", "2"}});
    INFO(s);
    CHECK(absl::IsNotFound(s));
    for (const char* part : {directory.c_str(), "removed or moved", "--restored"}) {
      INFO(part);
      CHECK(std::string(s.message()).find(part) != std::string::npos);
    }
  }
}

TEST_CASE("nothing is recorded where nobody would find it", "[scheduler][store]") {
  CheckNotRecordedAfter("rm -rf DIR", [](const std::string& directory) {
    const auto above = std::filesystem::path(directory).parent_path();
    std::filesystem::remove_all(above);
    CHECK_FALSE(std::filesystem::exists(above));
  });
  CheckNotRecordedAfter(
      "rm -rf DIR/*", [](const std::string& directory) { std::filesystem::remove_all(directory); });
  CheckNotRecordedAfter("rm -rf DIR/metadata/*", [](const std::string& directory) {
    for (const auto& each : std::filesystem::directory_iterator(directory)) {
      std::filesystem::remove(each.path());
    }
  });
  CheckNotRecordedAfter("rm DIR/metadata/*.log", [](const std::string& directory) {
    for (const auto& each : std::filesystem::directory_iterator(directory)) {
      if (each.path().extension() == ".log") std::filesystem::remove(each.path());
    }
  });
  CheckNotRecordedAfter("another store in its place", [](const std::string& directory) {
    const std::string beside = directory + "-other";
    auto other = OpenRocksMetadataStore(beside);
    REQUIRE(other.ok());
    REQUIRE((*other)->Append({{"c", "3"}}).ok());
    std::filesystem::remove_all(directory);
    std::filesystem::rename(beside, directory);
  });
}

TEST_CASE("a store whose folder was moved away goes on when it is back", "[scheduler][store]") {
  TempFolder folder;
  const std::string directory = folder.path() + "/metadata", away = folder.path() + "/away";
  auto store = OpenRocksMetadataStore(directory);
  REQUIRE(store.ok());
  REQUIRE((*store)->Append({{"a", "1"}}).ok());
  std::filesystem::rename(directory, away);
  CHECK(absl::IsNotFound((*store)->Append({{"b", "2"}})));
  CHECK_FALSE(std::filesystem::exists(directory));
  std::filesystem::rename(away, directory);
  const absl::Status again = (*store)->Append({{"c", "3"}});
  INFO(again);
  CHECK(again.ok());
  store->reset();
  store = OpenRocksMetadataStore(directory);
  REQUIRE(store.ok());
  CHECK(*(*store)->Read() == Records{{"a", "1"}, {"c", "3"}});
}

std::string Value(int i) {
  std::string value(60'000, static_cast<char>('a' + i % 26));
  value.replace(0, 8, std::to_string(10'000'000 + i));
  return value;
}

// Many memtables are filled, so that the disk is full for flushes and compactions as well as for
// the log.
TEST_CASE("a full disk is told with its remedy, loses nothing, and is over with new room",
          "[scheduler][store][p9]") {
  TempFolder folder;
  SmallDisk disk(folder.path() + "/disk", 48 << 20);
  if (!disk.mounted()) STRATA_SKIP(disk.reason());
  const std::string directory = disk.path() + "/metadata";
  auto store = OpenRocksMetadataStore(directory);
  REQUIRE(store.ok());
  Records expected;
  const auto append = [&](int i) {
    const std::string key = "key" + std::to_string(i % 40);
    const absl::Status s = (*store)->Append({{key, Value(i)}});
    if (s.ok()) expected[key] = Value(i);
    return s;
  };
  int i = 0;
  for (int round = 0; round < 4; ++round) {
    INFO("round " << round);
    for (int n = 0; n < 100; ++n) REQUIRE(append(i++).ok());
    int failures = 0;
    for (int n = 0; n < 2000 && failures < 20; ++n) {
      if (failures == 0) disk.Fill();  // also what was freed meanwhile
      const absl::Status s = append(i);
      if (s.ok()) {
        ++i;
        failures = 0;
        continue;
      }
      INFO(s);
      REQUIRE(absl::IsResourceExhausted(s));
      REQUIRE(std::string(s.message()).find(directory) != std::string::npos);
      REQUIRE(std::string(s.message()).find("Free 8 MiB") != std::string::npos);
      REQUIRE(std::string(s.message()).find("by itself") != std::string::npos);
      ++failures;
    }
    REQUIRE(failures == 20);
    // A scheduler that starts now says what it takes to start.
    if (round == 2) {
      store->reset();
      const absl::Status closed = OpenRocksMetadataStore(directory).status();
      INFO(closed);
      REQUIRE(absl::IsResourceExhausted(closed));
      REQUIRE(std::string(closed.message()).find("Free 8 MiB") != std::string::npos);
      REQUIRE(std::string(closed.message()).find("start it again") != std::string::npos);
      REQUIRE(std::string(closed.message()).find("by itself") == std::string::npos);
      disk.Free();
      store = OpenRocksMetadataStore(directory);
      REQUIRE(store.ok());
    }
    disk.Free();
    const absl::Status again = append(i++);
    INFO(again);
    REQUIRE(again.ok());
    REQUIRE(*(*store)->Read() == expected);
  }
  store->reset();
  store = OpenRocksMetadataStore(directory);
  REQUIRE(store.ok());
  REQUIRE(*(*store)->Read() == expected);
}

}  // namespace
}  // namespace strata::scheduler
