// What the headers of npy and safetensors files say of the arrays in them. Pure: bytes that anybody
// may have written, so nothing of them is believed unchecked.
//
//   npy          https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, 1.0 to 3.0
//   safetensors  https://huggingface.co/docs/safetensors: length of the header u64, header as JSON,
//                then the tensors' bytes
#ifndef STRATA_TOOLS_CLUSTER_IMPORT_ARRAY_HEADER_H_
#define STRATA_TOOLS_CLUSTER_IMPORT_ARRAY_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace strata {

enum class ElementType : uint8_t {
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kOther,  // of safetensors: its bytes are not looked at
};

size_t ElementBytes(ElementType type);
bool IsFloat(ElementType type);
bool IsInteger(ElementType type);

// An array in a file: C order, little-endian.
struct ArrayPlace {
  std::string tensor;  // its name; of npy empty
  std::string dtype;   // as the file says it, for people: "<f4", "F32"
  ElementType type = ElementType::kOther;
  std::vector<uint64_t> shape;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
};

// Of all elements; nothing: more than 64 bits hold.
std::optional<uint64_t> ShapeBytes(const std::vector<uint64_t>& shape, size_t element_bytes);
// A name or a dtype of a file for people: without what a terminal would obey, and not at any
// length.
std::string ShownText(const std::string& text);
// "(1000, 16)".
std::string ShapeText(const std::vector<uint64_t>& shape);

// A header as a file has it is at most so long; what is longer is refused before it is read.
inline constexpr size_t kMaxNpyHeaderBytes = size_t{64} << 10;
inline constexpr size_t kMaxSafetensorsHeaderBytes = size_t{16} << 20;

bool IsNpy(absl::string_view head);

// `head`: the file's first bytes, kMaxNpyHeaderBytes + 12 or all of them. INVALID_ARGUMENT: no npy
// file, Fortran order, big-endian, a dtype that is no number, or the file's size is not what the
// header says. Messages do not name the file.
absl::StatusOr<ArrayPlace> ParseNpy(absl::string_view head, uint64_t file_bytes);

// How many bytes the JSON has that follows the first 8. INVALID_ARGUMENT: no safetensors file.
absl::StatusOr<size_t> SafetensorsHeaderBytes(absl::string_view head, uint64_t file_bytes);
// Tensors by their place in the file. `json`: so many bytes from the 9th on. INVALID_ARGUMENT: what
// it says is no header, names a tensor twice, or has tensors beyond the file or over each other.
absl::StatusOr<std::vector<ArrayPlace>> ParseSafetensors(absl::string_view json,
                                                         uint64_t file_bytes);

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_IMPORT_ARRAY_HEADER_H_
