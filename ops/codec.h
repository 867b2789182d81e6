// Rows of floats in fewer bytes, for reading: bfloat16, and 8 bits with a scale per row. The same
// bits on every machine (EXACT.md rule 8).
#ifndef STRATA_OPS_CODEC_H_
#define STRATA_OPS_CODEC_H_

#include <cstddef>
#include <cstdint>

namespace strata::ops {

// The numbers are the wire's (ValueCodec of data.proto).
enum class RowCodec : uint8_t { kFloat32 = 0, kBf16 = 1, kInt8 = 2 };

// Bytes of a row: 4 dim, 2 dim, and 4 + dim (the scale, then one signed byte an element).
constexpr size_t EncodedRowBytes(RowCodec codec, size_t dim) {
  if (codec == RowCodec::kBf16) return dim * 2;
  return codec == RowCodec::kInt8 ? dim + 4 : dim * 4;
}

// row: (dim), finite but for bf16. out: EncodedRowBytes, of any alignment.
//   bf16: the upper half of the float, rounded to nearest, ties to even. What rounds beyond the
//     largest bf16 (3.3895e38) becomes infinite; a NaN becomes 0x7fff.
//   int8: scale = max |x| / 127; element = x / scale rounded to nearest, ties to even, at most 127
//     in magnitude. A row whose scale would be 0 is all zeros.
// Any thread.
void EncodeRow(RowCodec codec, const float* row, size_t dim, uint8_t* out);

// rows: `rows` encoded rows one after the other, of any alignment; out: (rows, dim). bf16 is exact;
// int8: element x scale.
void DecodeRows(RowCodec codec, const uint8_t* rows, size_t count, size_t dim, float* out);

}  // namespace strata::ops

#endif  // STRATA_OPS_CODEC_H_
