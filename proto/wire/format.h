// Protobuf's wire format (https://protobuf.dev/programming-guides/encoding), the part that both
// halves of the message codec share: a cursor over untrusted bytes and a few writers.
// Tested by tests/proto/wire/message_codec_test.cc
// Tested by tests/proto/wire/message_refusal_test.cc
#ifndef STRATA_PROTO_WIRE_FORMAT_H_
#define STRATA_PROTO_WIRE_FORMAT_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace strata::wire {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kLength = 2,
  kGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5
};

// Walks over the fields of one message. The first error sticks: every later call does nothing, so
// that parsers need no check per field. One thread.
//   while (r.Next()) switch (r.field()) { case 1: r.Varint(x); break; default: r.Skip(); }
class FieldReader {
 public:
  // `name` is the message's in data.proto. Both must outlive the reader.
  FieldReader(const char* name, std::span<const uint8_t> bytes, absl::Status* status)
      : FieldReader(name, bytes, bytes.data(), status) {}

  // Moves to the next field; false at the end or after an error.
  bool Next() {
    if (at_ == end_ || !status_->ok()) return false;
    field_at_ = at_;
    uint64_t tag;
    if (!RawVarint(5, tag)) return false;
    if (tag > 0xffffffffu || (tag >> 3) == 0) return Fail("bad tag");
    field_ = static_cast<uint32_t>(tag >> 3);
    type_ = static_cast<uint32_t>(tag & 7);
    return true;
  }
  uint32_t field() const { return field_; }
  uint32_t type() const { return type_; }

  // Reads of the current field's value; each demands its wire type. A narrower T keeps the low
  // bits, as protobuf does.
  template <typename T>
  void Varint(T& out) {
    uint64_t v;
    if (Is(kVarint) && RawVarint(10, v)) out = static_cast<T>(v);
  }
  void Fixed64(uint64_t& out) { Fixed(kFixed64, out); }
  void Fixed32(uint32_t& out) { Fixed(kFixed32, out); }
  void Bytes(std::span<const uint8_t>& out) {
    if (Is(kLength)) RawBytes(out);
  }
  // A repeated uint32, packed or not: calls add(uint32_t) for each.
  template <typename Add>
  void Numbers(Add add) {
    if (type_ == kVarint) {
      uint32_t v = 0;
      Varint(v);
      if (status_->ok()) add(v);
      return;
    }
    std::span<const uint8_t> run;
    Bytes(run);
    FieldReader numbers(name_, run, begin_, status_);
    numbers.field_at_ = field_at_;
    numbers.field_ = field_;
    uint64_t v;
    while (status_->ok() && numbers.at_ != numbers.end_) {
      if (numbers.RawVarint(10, v)) add(static_cast<uint32_t>(v));
    }
  }
  // An embedded message: calls read(FieldReader&).
  template <typename Read>
  void Message(const char* name, Read read) {
    std::span<const uint8_t> inside;
    Bytes(inside);
    if (!status_->ok()) return;
    FieldReader sub(name, inside, begin_, status_);
    read(sub);
  }
  // An unknown field.
  void Skip() { SkipValue(0); }

  // Ends the parse. Both return false.
  bool Fail(const std::string& what) { return FailWith(absl::StatusCode::kInvalidArgument, what); }
  bool FailWith(absl::StatusCode code, const std::string& what);

 private:
  FieldReader(const char* name, std::span<const uint8_t> bytes, const uint8_t* begin,
              absl::Status* status)
      : name_(name),
        begin_(begin),
        field_at_(bytes.data()),
        at_(bytes.data()),
        end_(bytes.data() + bytes.size()),
        status_(status) {}

  bool Is(WireType type) {
    if (!status_->ok()) return false;
    return type_ == type || Fail(absl::StrCat("wire type ", type_, ", expected ", type));
  }
  bool RawVarint(int max_bytes, uint64_t& out) {
    out = 0;
    for (int i = 0; i < max_bytes; ++i) {
      if (at_ == end_) return Fail("ends inside a number");
      const uint64_t byte = *at_++;
      out |= (byte & 0x7f) << (7 * i);
      if (byte < 0x80) return true;
    }
    return Fail(absl::StrCat("a number of more than ", max_bytes, " bytes"));
  }
  template <typename T>
  void Fixed(WireType type, T& out) {
    if (!Is(type)) return;
    if (static_cast<size_t>(end_ - at_) < sizeof(T)) {
      Fail("ends inside a number");
      return;
    }
    std::memcpy(&out, at_, sizeof(T));
    at_ += sizeof(T);
  }
  bool RawBytes(std::span<const uint8_t>& out) {
    uint64_t size;
    if (!RawVarint(5, size)) return false;
    const auto left = static_cast<size_t>(end_ - at_);
    if (size > left) return Fail(absl::StrCat("length ", size, ", but only ", left, " bytes left"));
    out = {at_, static_cast<size_t>(size)};
    at_ += size;
    return true;
  }
  void SkipValue(int depth);

  const char* name_;
  const uint8_t* begin_;  // of the outermost message: offsets in errors count from here
  const uint8_t* field_at_;
  const uint8_t* at_;
  const uint8_t* end_;
  uint32_t field_ = 0;
  uint32_t type_ = 0;
  absl::Status* status_;
};

inline size_t VarintBytes(uint64_t v) { return static_cast<size_t>(std::bit_width(v | 1) + 6) / 7; }

// Writes exactly `bytes` bytes: numbers may be longer than they need to be, which is how lengths
// are reserved before they are known and how values are aligned.
// REQUIRES: VarintBytes(v) <= bytes <= 10. Returns the end.
inline uint8_t* WriteVarint(uint8_t* at, uint64_t v, size_t bytes) {
  for (size_t i = 0; i + 1 < bytes; ++i, v >>= 7) *at++ = static_cast<uint8_t>(v | 0x80);
  *at++ = static_cast<uint8_t>(v);
  return at;
}
inline uint8_t* WriteTag(uint8_t* at, uint32_t field, WireType type) {
  *at = static_cast<uint8_t>(field << 3 | type);  // REQUIRES: field < 16
  return at + 1;
}
inline uint8_t* WriteNumber(uint8_t* at, uint32_t field, uint64_t v) {
  return WriteVarint(WriteTag(at, field, kVarint), v, VarintBytes(v));
}
template <typename T>
uint8_t* WriteFixed(uint8_t* at, uint32_t field, T v) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  at = WriteTag(at, field, sizeof(T) == 4 ? kFixed32 : kFixed64);
  std::memcpy(at, &v, sizeof(T));
  return at + sizeof(T);
}

}  // namespace strata::wire

#endif  // STRATA_PROTO_WIRE_FORMAT_H_
