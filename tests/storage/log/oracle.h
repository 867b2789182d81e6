// What must hold of any bytes that the reader of the update log is given: for the property test and
// the fuzzer.
#ifndef STRATA_TESTS_STORAGE_LOG_ORACLE_H_
#define STRATA_TESTS_STORAGE_LOG_ORACLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "storage/log/record.h"

namespace strata::storage {

// A segment as the log writes it, and what is in it.
struct BuiltSegment {
  struct Record {
    uint64_t begin = 0;
    uint64_t end = 0;  // with the zeros behind it
    LogHeader header;
    std::vector<uint8_t> payload;
    uint64_t settled = 0;
  };
  uint64_t segment = 0;
  uint32_t alignment = 0;
  std::vector<uint8_t> bytes;
  std::vector<Record> records;
};
// Records with payloads of these sizes; each group of `group` of them was written at once (at
// `synced`), 1: each by itself.
BuiltSegment BuildSegment(uint64_t segment, uint32_t alignment, std::span<const size_t> payloads,
                          size_t group);

// Holds a scan of the segment, cut to `size` bytes and with these bits flipped (at most 5: more may
// deceive a CRC of 32 bits), against what is known. Empty: all is well.
std::string JudgeEdited(const BuiltSegment& built, size_t size, std::span<const size_t> bits);

// Any input: an even first byte makes the rest a segment's bytes, an odd one a program for the two
// above. Empty: all is well.
std::string JudgeLogInput(std::span<const uint8_t> input);

}  // namespace strata::storage

#endif  // STRATA_TESTS_STORAGE_LOG_ORACLE_H_
