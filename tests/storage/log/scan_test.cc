#include "storage/log/scan.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "proto/core/checksum.h"
#include "storage/log/format.h"
#include "tests/seed.h"
#include "tests/skip.h"
#include "tests/storage/log/oracle.h"

namespace strata::storage {
namespace {

using log::kAlignment;
using log::kBlockAlignment;

// 0, unaligned, aligned; several records a write and one.
const std::vector<size_t> kPayloads = {0, 13, 24, 40, 5};

TEST_CASE("every place to cut a segment off", "[storage][log]") {
  for (const uint32_t alignment : {kAlignment, kBlockAlignment}) {
    for (const size_t group : {1u, 2u, 5u}) {
      const BuiltSegment built = BuildSegment(3, alignment, kPayloads, group);
      for (size_t size = 0; size <= built.bytes.size(); ++size) {
        CAPTURE(alignment, group, size);
        const std::string complaint = JudgeEdited(built, size, {});
        if (!complaint.empty()) FAIL(complaint);
      }
    }
  }
}

TEST_CASE("every bit of a segment flipped", "[storage][log]") {
  for (const uint32_t alignment : {kAlignment, kBlockAlignment}) {
    for (const size_t group : {1u, 2u, 5u}) {
      const BuiltSegment built = BuildSegment(3, alignment, kPayloads, group);
      for (size_t bit = 0; bit < built.bytes.size() * 8; ++bit) {
        // Of the zeros that fill blocks, an eighth is enough.
        if (alignment == kBlockAlignment && bit % 8 != 0 && built.bytes[bit / 8] == 0) continue;
        const std::string complaint = JudgeEdited(built, built.bytes.size(), {&bit, 1});
        if (!complaint.empty()) {
          CAPTURE(alignment, group, bit);
          FAIL(complaint);
        }
      }
    }
  }
}

TEST_CASE("a record of the write that was torn proves nothing, one of a later write does",
          "[storage][log]") {
  const BuiltSegment built = BuildSegment(3, kAlignment, kPayloads, 2);
  std::vector<uint8_t> bytes = built.bytes;
  bytes[built.records[2].begin + 130] ^= 1;
  auto scan = log::ScanTail(3, bytes);
  CHECK(scan.end == built.records[2].begin);
  CHECK(scan.intact == built.records[4].begin);
  // Without the later write: record 3 went with record 2 and is no proof.
  bytes.resize(built.records[4].begin);
  scan = log::ScanTail(3, bytes);
  CHECK(scan.end == built.records[2].begin);
  CHECK_FALSE(scan.intact);
  CHECK(scan.torn_bytes == bytes.size() - built.records[2].begin);
}

TEST_CASE("segments of older versions are told from damage", "[storage][log]") {
  // Their headers are as today's first 28 bytes, and a checksum of those.
  std::vector<uint8_t> bytes(log::kSegmentHeaderBytes);
  log::EncodeSegmentHeader({.segment = 3}, bytes.data());
  CHECK_FALSE(log::OldVersion(bytes));
  for (const uint16_t version : {1, 2}) {
    std::memcpy(bytes.data() + 24, &version, 2);
    CHECK_FALSE(log::OldVersion(bytes));
    const uint32_t crc = Crc32c({bytes.data(), 28});
    std::memcpy(bytes.data() + 28, &crc, 4);
    CHECK(log::OldVersion(bytes) == version);
    CHECK(log::OldVersion(std::span(bytes).first(32)) == version);
    CHECK_FALSE(log::OldVersion(std::span(bytes).first(31)));
    CHECK_FALSE(log::DecodeSegmentHeader(bytes.data()));
  }
}

TEST_CASE("a segment's header says whose it is", "[storage][log][identity]") {
  const log::SegmentHeader written{.segment = 3,
                                   .previous_bytes = 4,
                                   .alignment = kBlockAlignment,
                                   .owner = {{{5, 6}, {7, 8}}, Generation(9)}};
  std::vector<uint8_t> bytes(log::kSegmentHeaderBytes, 0xff);
  log::EncodeSegmentHeader(written, bytes.data());
  auto read = log::DecodeSegmentHeader(bytes.data());
  REQUIRE(read);
  CHECK(read->owner == written.owner);
  for (size_t at = 0; at < bytes.size(); ++at) {
    bytes[at] ^= 0x10;
    CHECK_FALSE(log::DecodeSegmentHeader(bytes.data()));
    bytes[at] ^= 0x10;
  }
}

TEST_CASE("the oracle's programs, and random bytes", "[storage][log][seeds]") {
  const uint64_t seed = GENERATE(from_range(Seeds("log_bytes")));
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const size_t rounds = Operations(LongRun() ? 1'000'000 : 20'000);
  for (size_t round = 0; round < rounds; ++round) {
    std::vector<uint8_t> input(1 + random() % 60);
    for (uint8_t& b : input) b = static_cast<uint8_t>(random());
    const std::string complaint = JudgeLogInput(input);
    if (!complaint.empty()) {
      CAPTURE(input);
      FAIL(complaint);
    }
  }
}

}  // namespace
}  // namespace strata::storage
