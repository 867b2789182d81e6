#include "proto/wire/buffer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tests/address_limit.h"
#include "tests/skip.h"

namespace strata {
namespace {

TEST_CASE("a builder's memory is aligned, exact and shared by its buffer", "[buffer]") {
  for (size_t size : {size_t{1}, size_t{63}, size_t{2048}, size_t{2049}, size_t{4096}, size_t{5000},
                      (size_t{1} << 20) + 1, size_t{64} << 20, (size_t{64} << 20) + 1}) {
    BufferBuilder builder(size);
    REQUIRE(builder.size() == size);
    REQUIRE(reinterpret_cast<uintptr_t>(builder.data()) % 64 == 0);
    builder.data()[0] = 1;
    builder.data()[size - 1] = 2;
    const uint8_t* place = builder.data();
    const Buffer buffer = builder.Finish();
    CHECK(buffer.data() == place);
    CHECK(buffer.size() == size);
    CHECK(buffer.span().back() == 2);
    CHECK(builder.size() == 0);
  }
}

TEST_CASE("Finish may use less than was asked for", "[buffer]") {
  BufferBuilder builder(100);
  builder.data()[9] = 7;
  const Buffer buffer = builder.Finish(10);
  CHECK(buffer.size() == 10);
  CHECK(buffer.span()[9] == 7);
}

TEST_CASE("empty buffers need no memory", "[buffer]") {
  CHECK(Buffer().size() == 0);
  CHECK(Buffer::CopyOf({}).size() == 0);
  BufferBuilder builder(0);
  CHECK(builder.Finish().span().empty());
}

TEST_CASE("a slice keeps the whole alive", "[buffer]") {
  std::vector<uint8_t> bytes(10'000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  Buffer slice;
  {
    const Buffer whole = Buffer::CopyOf(bytes);
    slice = whole.Slice(5000, 100);
  }
  // Were the block free, this one would take its place.
  BufferBuilder other(10'000);
  std::memset(other.data(), 0xee, other.size());
  CHECK(std::memcmp(slice.data(), bytes.data() + 5000, 100) == 0);
}

TEST_CASE("Wrap keeps its owner until the last buffer dies", "[buffer]") {
  auto owner = std::make_shared<std::vector<uint8_t>>(100, uint8_t{5});
  const std::weak_ptr<std::vector<uint8_t>> watch = owner;
  Buffer buffer = Buffer::Wrap(owner, {owner->data(), owner->size()});
  owner.reset();
  Buffer slice = buffer.Slice(10, 10);
  buffer = Buffer();
  CHECK(!watch.expired());
  CHECK(slice.span()[9] == 5);
  slice = Buffer();
  CHECK(watch.expired());
}

TEST_CASE("freed blocks of a class are used again", "[buffer]") {
  const uint8_t* place = nullptr;
  {
    BufferBuilder builder(3'000'000);
    place = builder.data();
  }
  const BufferPoolCounters before = GetBufferPoolCounters();
  BufferBuilder again(2'500'000);  // the same class: 4 MiB
  CHECK(again.data() == place);
  const BufferPoolCounters after = GetBufferPoolCounters();
  CHECK(after.reused == before.reused + 1);
  CHECK(after.allocated == before.allocated);
  CHECK(after.pooled_bytes + (size_t{4} << 20) == before.pooled_bytes);
}

TEST_CASE("a free block of the class above does, and goes back to its own class", "[buffer]") {
  const BufferBuilder biggest(60'000'000);  // whatever block of 64 MiB was free is not
  const uint8_t* place = nullptr;
  {
    BufferBuilder builder(20'000'000);  // 32 MiB
    place = builder.data();
  }
  const BufferPoolCounters before = GetBufferPoolCounters();
  {
    BufferBuilder smaller(9'000'000);
    CHECK(smaller.data() == place);
    smaller.data()[smaller.size() - 1] = 1;
    CHECK(GetBufferPoolCounters().pooled_bytes + (size_t{32} << 20) == before.pooled_bytes);
  }
  CHECK(GetBufferPoolCounters().pooled_bytes == before.pooled_bytes);
  BufferBuilder whole(30'000'000);
  CHECK(whole.data() == place);
  whole.data()[whole.size() - 1] = 1;
  // Two classes below: a block of its own.
  BufferBuilder far(5'000'000);
  CHECK(far.data() != place);
}

TEST_CASE("the pool never keeps more than its bound", "[buffer]") {
  constexpr size_t kBlock = size_t{64} << 20;
  constexpr size_t kBlocks = BufferBuilder::kMaxPooledBytes / kBlock + 4;
  std::vector<BufferBuilder> builders;
  for (size_t i = 0; i < kBlocks; ++i) builders.emplace_back(kBlock);  // never touched: no memory
  builders.clear();
  CHECK(GetBufferPoolCounters().pooled_bytes <= BufferBuilder::kMaxPooledBytes);
  CHECK(GetBufferPoolCounters().pooled_bytes >= BufferBuilder::kMaxPooledBytes - kBlock);
}

// Blocks of its own, at most two at a time.
class TwoBlocks : public BlockSource {
 public:
  void* Take(size_t bytes) override {
    if (blocks.size() == 2) return nullptr;
    blocks.push_back(std::aligned_alloc(64, bytes));
    return blocks.back();
  }
  bool Give(void* block) override {
    const auto found = std::find(blocks.begin(), blocks.end(), block);
    if (found == blocks.end()) return false;
    std::free(block);
    blocks.erase(found);
    return true;
  }
  std::vector<void*> blocks;
};

TEST_CASE("large blocks come from a source that was set, and go back there", "[buffer]") {
  // For good, as its blocks may stay in the pool for good.
  static TwoBlocks& source = *new TwoBlocks;
  const auto has = [](const uint8_t* block) {
    return std::find(source.blocks.begin(), source.blocks.end(), block) != source.blocks.end();
  };
  constexpr size_t kBytes = size_t{32} << 20;
  // What is free already is used first.
  std::vector<BufferBuilder> held;
  SetBlockSource(&source);
  while (source.blocks.size() < 2) held.emplace_back(kBytes);
  const uint8_t* const last = held.back().data();
  CHECK(has(last));
  held.emplace_back(kBytes);
  CHECK(!has(held.back().data()));  // the system's: the source has no more
  held.emplace_back(size_t{32} << 10);
  CHECK(!has(held.back().data()));  // small
  for (BufferBuilder& builder : held) std::memset(builder.data(), 1, builder.size());
  held.clear();
  // Over the pool's bound blocks go back to where they came from; all are whole.
  std::vector<BufferBuilder> many;
  for (size_t bytes = 0; bytes < BufferBuilder::kMaxPooledBytes + 4 * kBytes; bytes += kBytes) {
    many.emplace_back(kBytes);
  }
  many.clear();
  CHECK(GetBufferPoolCounters().pooled_bytes <= BufferBuilder::kMaxPooledBytes);
  SetBlockSource(nullptr);
}

TEST_CASE("buffers cross threads", "[buffer]") {
  // Every thread frees what another one allocated; each block is marked by its owner and checked.
  constexpr int kThreads = 4;
  constexpr int kRounds = 2000;
  std::vector<std::vector<Buffer>> made(kThreads);
  const auto fill = [&made](int t) {
    for (int i = 0; i < kRounds; ++i) {
      BufferBuilder builder(3000 + 1000 * static_cast<size_t>(i % 20));
      std::memset(builder.data(), t + i, builder.size());
      made[t].push_back(builder.Finish());
      if (made[t].size() > 8) made[t].erase(made[t].begin());
    }
  };
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) threads.emplace_back(fill, t);
    for (std::thread& t : threads) t.join();
    for (int t = 0; t < kThreads; ++t) {
      for (const Buffer& b : made[t]) {
        const std::vector<uint8_t> expected(b.size(), b.span()[0]);
        REQUIRE(std::memcmp(b.data(), expected.data(), b.size()) == 0);
      }
    }
    std::swap(made[0], made[3]);
    std::swap(made[1], made[2]);
  }
}

TEST_CASE("without memory for a message there is an error that says how much", "[buffer]") {
  const AddressLimit limit(size_t{16} << 20);
  if (!limit.set()) STRATA_SKIP(limit.reason());
  for (const size_t size : {size_t{65} << 20, size_t{200} << 20, size_t{1} << 50}) {
    const auto refused = BufferBuilder::Make(size);
    INFO(refused.status());
    REQUIRE(absl::IsResourceExhausted(refused.status()));
    CHECK(refused.status().message().find(std::to_string(size)) != absl::string_view::npos);
  }
  auto fits = BufferBuilder::Make(size_t{1} << 20);
  REQUIRE(fits.ok());
  CHECK(fits->size() == size_t{1} << 20);
}

}  // namespace
}  // namespace strata
