// Fixed-size little-endian fields of the on-disk headers.
// Tested by tests/storage/row_file/block_test.cc
// Tested by tests/storage/row_file/extent_test.cc
#ifndef STRATA_STORAGE_IO_BYTE_CODEC_H_
#define STRATA_STORAGE_IO_BYTE_CODEC_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace strata::storage {

static_assert(std::endian::native == std::endian::little);

// Writes fields one after the other. REQUIRES: room for them.
class FieldWriter {
 public:
  explicit FieldWriter(uint8_t* out) : out_(out) {}
  void U16(uint16_t v) { Put(v); }
  void U32(uint32_t v) { Put(v); }
  void U64(uint64_t v) { Put(v); }

 private:
  template <typename T>
  void Put(T v) {
    std::memcpy(out_, &v, sizeof(v));
    out_ += sizeof(v);
  }
  uint8_t* out_;
};

// Reads fields one after the other. REQUIRES: that many bytes.
class FieldReader {
 public:
  explicit FieldReader(const uint8_t* in) : in_(in) {}
  uint16_t U16() { return Get<uint16_t>(); }
  uint32_t U32() { return Get<uint32_t>(); }
  uint64_t U64() { return Get<uint64_t>(); }

 private:
  template <typename T>
  T Get() {
    T v;
    std::memcpy(&v, in_, sizeof(v));
    in_ += sizeof(v);
    return v;
  }
  const uint8_t* in_;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_IO_BYTE_CODEC_H_
