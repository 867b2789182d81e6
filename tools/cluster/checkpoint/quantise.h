// A checkpoint's weights in fewer bits, for programs that serve them.
// Tested by tests/tools/cluster/checkpoint/checkpoint_test.cc
#ifndef STRATA_TOOLS_CLUSTER_CHECKPOINT_QUANTISE_H_
#define STRATA_TOOLS_CLUSTER_CHECKPOINT_QUANTISE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace strata {

enum class QuantisedType : uint8_t {
  kFp16,  // IEEE 754 half precision
  kInt8,  // a signed byte an element and a float32 scale a row: element x scale
};

struct QuantiseOptions {
  std::string checkpoint;  // one checkpoint's folder, or a folder of them: the newest
  std::string output;      // a folder that is not there, or empty
  QuantisedType type = QuantisedType::kFp16;
};

struct QuantisedArray {
  std::string name;   // TABLE.SEGMENT or a tensor
  std::string dtype;  // as NumPy calls it
  uint64_t rows = 0;
  uint64_t dim = 0;
  double largest_error = 0;  // of one weight
  double rms_error = 0;      // over all weights
  double rms = 0;            // of the weights themselves
};

struct QuantisedFile {
  std::string name;
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
};

struct QuantiseSummary {
  std::string checkpoint;
  uint64_t step = 0;
  uint64_t bytes = 0;
  std::vector<QuantisedArray> arrays;
  std::vector<QuantisedFile> files;  // but the index
};

// Rounds to nearest, ties to even (ops/codec.h, for int8). FORMAT.md gives the files: keys and
// weights of hashed tables as npy arrays, tensors of the dense table in float32, and last
// index.json with the errors and every file's checksum (quantised_copy.h verifies them). No
// optimizer state. Memory: a block of the checkpoint's files,
// FileStream::kStagingBytes per array, and one tensor. Errors: those of CheckpointRows;
// OUT_OF_RANGE: a weight beyond fp16's 65504, with its key; FAILED_PRECONDITION: the output folder
// has something in it; RESOURCE_EXHAUSTED: disk full. What was written then stays, without an
// index.
absl::StatusOr<QuantiseSummary> QuantiseCheckpoint(const QuantiseOptions& options);

// Bits of the half nearest to x, ties to even; infinite from 65520 on.
uint16_t ToHalf(float x);
float FromHalf(uint16_t bits);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_CHECKPOINT_QUANTISE_H_
