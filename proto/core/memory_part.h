// A share of a process's memory, and why it is that much.
// Tested by tests/tools/cli/data/estimate_test.cc
#ifndef STRATA_PROTO_CORE_MEMORY_PART_H_
#define STRATA_PROTO_CORE_MEMORY_PART_H_

#include <cstdint>
#include <string>
#include <vector>

namespace strata {

struct MemoryPart {
  std::string name;
  uint64_t bytes = 0;
  std::string formula;  // for people
  // Freed and taken again: counted once where several like it are objects of one process.
  bool reused = false;
};

inline uint64_t TotalBytes(const std::vector<MemoryPart>& parts) {
  uint64_t bytes = 0;
  for (const MemoryPart& part : parts) bytes += part.bytes;
  return bytes;
}

}  // namespace strata

#endif  // STRATA_PROTO_CORE_MEMORY_PART_H_
