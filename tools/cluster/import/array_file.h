// One array of rows in a file, read block by block as float32.
// Tested by tests/tools/cluster/import/import_test.cc
#ifndef STRATA_TOOLS_CLUSTER_IMPORT_ARRAY_FILE_H_
#define STRATA_TOOLS_CLUSTER_IMPORT_ARRAY_FILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/io/file_io.h"
#include "tools/cluster/import/array_header.h"

namespace strata {

// Memory of a call: what it reads. One thread.
class ArrayFile {
 public:
  // `tensor`: which one of a safetensors file; empty: its only one, and of npy always. Errors name
  // the file and, of an unknown tensor, those that there are.
  static absl::StatusOr<ArrayFile> Open(const std::string& path, const std::string& tensor);

  const ArrayPlace& place() const { return place_; }
  const std::string& path() const { return file_.path(); }
  // "rows.npy", "model.safetensors: tensor item".
  std::string name() const;

  // INVALID_ARGUMENT: not (n, dim) of floats. Afterwards rows() and ReadRows may be called.
  absl::Status CheckRows(uint32_t dim);
  uint64_t rows() const { return place_.shape.front(); }
  // out: (count, dim), float64 rounded to nearest. INVALID_ARGUMENT: an element that is no finite
  // float32, by row and column, both from 0. REQUIRES: CheckRows.
  absl::Status ReadRows(uint64_t first, std::span<float> out);

  // Raw bytes of the array from `offset` on.
  absl::Status ReadBytes(uint64_t offset, std::span<uint8_t> out) const;

 private:
  ArrayFile(storage::File file, ArrayPlace place)
      : file_(std::move(file)), place_(std::move(place)) {}

  storage::File file_;
  ArrayPlace place_;
  uint32_t dim_ = 0;
  std::vector<uint8_t> bytes_;
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_IMPORT_ARRAY_FILE_H_
