// The values that name imported rows: an npy array of integers, or a text file of one value a line,
// which may be compressed by gzip or zstd.
// Tested by tests/tools/cluster/import/import_test.cc
#ifndef STRATA_TOOLS_CLUSTER_IMPORT_KEY_FILE_H_
#define STRATA_TOOLS_CLUSTER_IMPORT_KEY_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata {

// One thread. Memory: a block of the file's text, and a line.
class KeyFile {
 public:
  static constexpr size_t kMaxLineBytes = size_t{1} << 20;

  virtual ~KeyFile() = default;

  // INVALID_ARGUMENT names the file: an npy that is no (n,) of integers.
  static absl::StatusOr<std::unique_ptr<KeyFile>> Open(const std::string& path);

  // The next value, integers as decimal text; false: there is none. INVALID_ARGUMENT names the
  // line: empty, or too long. DATA_LOSS: a compressed file is damaged or cut off.
  virtual absl::StatusOr<bool> Next(std::string* value) = 0;
  // For people: where value `number` (from 0) stands.
  virtual std::string Where(uint64_t number) const = 0;
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_IMPORT_KEY_FILE_H_
