// What all messages of the codec have: headers, states, texts, bounds of what is repeated.
// Tested by tests/proto/wire/codec_property_test.cc
#ifndef STRATA_PROTO_WIRE_HEADER_CODEC_H_
#define STRATA_PROTO_WIRE_HEADER_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/format.h"
#include "proto/wire/message.h"
#include "proto/wire/message_limits.h"

namespace strata::wire {

// All scalars are written, zeros too: so a later header replaces an earlier one in full.
inline uint8_t* WriteHeader(uint8_t* at, const Header& h) {
  at = WriteTag(at, 1, kLength);
  uint8_t* const length = at++;
  at = WriteNumber(at, 1, h.job.value);
  at = WriteFixed(at, 2, h.session.value);
  at = WriteNumber(at, 3, h.generation.value);
  at = WriteNumber(at, 4, h.map_epoch.value);
  at = WriteNumber(at, 5, h.server);
  *length = static_cast<uint8_t>(at - length - 1);  // <= 48
  return at;
}

// Nothing for an empty one.
inline uint8_t* WriteText(uint8_t* at, uint32_t field, const std::string& text) {
  if (text.empty()) return at;
  at = WriteTag(at, field, kLength);
  at = WriteVarint(at, text.size(), VarintBytes(text.size()));
  std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

inline uint8_t* WriteState(uint8_t* at, const ServerState& s) {
  at = WriteTag(at, 1, kLength);
  uint8_t* const length = at++;
  at = WriteFixed(at, 1, s.incarnation);
  at = WriteNumber(at, 2, s.generation.value);
  at = WriteNumber(at, 3, s.map_epoch.value);
  at = WriteNumber(at, 4, s.clock.value);
  *length = static_cast<uint8_t>(at - length - 1);  // <= 42
  return at;
}

inline void Read(FieldReader& r, Header& out) {
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        r.Varint(out.job.value);
        break;
      case 2:
        r.Fixed64(out.session.value);
        break;
      case 3:
        r.Varint(out.generation.value);
        break;
      case 4:
        r.Varint(out.map_epoch.value);
        break;
      case 5:
        r.Varint(out.server);
        break;
      default:
        r.Skip();
    }
  }
}

inline void Read(FieldReader& r, ServerState& out) {
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        r.Fixed64(out.incarnation);
        break;
      case 2:
        r.Varint(out.generation.value);
        break;
      case 3:
        r.Varint(out.map_epoch.value);
        break;
      case 4:
        r.Varint(out.clock.value);
        break;
      default:
        r.Skip();
    }
  }
}

inline void ReadText(FieldReader& r, std::string& out) {
  std::span<const uint8_t> bytes;
  r.Bytes(bytes);
  out.assign(bytes.begin(), bytes.end());
}

// Whether a list that has `size` elements may have no more: then the parse has failed.
bool Full(FieldReader& r, size_t size, size_t limit);

// `read`: called as read(FieldReader&, T&).
template <typename T, typename ReadFields>
absl::StatusOr<T> ParseMessage(const char* name, std::span<const uint8_t> bytes, ReadFields read) {
  if (bytes.size() > kMaxMessageBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        name, ": ", bytes.size(), " bytes, the limit of a message is ", kMaxMessageBytes));
  }
  absl::Status status;
  T out;
  FieldReader r(name, bytes, &status);
  read(r, out);
  if (!status.ok()) return status;
  return out;
}

}  // namespace strata::wire

#endif  // STRATA_PROTO_WIRE_HEADER_CODEC_H_
