// How values of pulls are written (proto/strata/data.proto, ValueCodec).
// Tested by tests/proto/wire/message_codec_test.cc
#ifndef STRATA_PROTO_WIRE_VALUE_CODEC_H_
#define STRATA_PROTO_WIRE_VALUE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/core/ids.h"

namespace strata::wire {

// Open, as PullOutcome of message.h is.
enum class ValueCodec : int32_t { kFloat32 = 0, kBf16 = 1, kInt8 = 2 };
// Bytes of a key's values. REQUIRES: one of the three.
constexpr size_t ValueBytes(ValueCodec codec, uint32_t dim) {
  if (codec == ValueCodec::kBf16) return size_t{dim} * 2;
  return codec == ValueCodec::kInt8 ? size_t{dim} + 4 : size_t{dim} * 4;
}

// Those of one pull.
struct PullCodecs {
  PullCodecs() = default;
  PullCodecs(ValueCodec codec) : others(codec) {}  // NOLINT(google-explicit-constructor): of all

  ValueCodec others = ValueCodec::kFloat32;
  std::vector<ValueCodec> of_table = {};  // by number; tables beyond its end have `others`

  ValueCodec Of(TableId table) const {
    return table.value < of_table.size() ? of_table[table.value] : others;
  }
  friend bool operator==(const PullCodecs&, const PullCodecs&) = default;
};

}  // namespace strata::wire

#endif  // STRATA_PROTO_WIRE_VALUE_CODEC_H_
