#include "worker/train/pull_codecs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "proto/job/tables/hashed_tables.h"

namespace strata {
namespace {

wire::ValueCodec CodecOf(const std::string& name) {
  if (name == "bf16") return wire::ValueCodec::kBf16;
  return name == "int8" ? wire::ValueCodec::kInt8 : wire::ValueCodec::kFloat32;
}

}  // namespace

wire::PullCodecs PullCodecsOf(const JobSpec& spec) {
  wire::PullCodecs codecs = CodecOf(spec.training().pull_codec());
  for (int i = 0; i < spec.tables_size(); ++i) {
    const wire::ValueCodec codec = CodecOf(spec.tables(i).pull_codec());
    if (codec == codecs.others) continue;
    const uint32_t number = TableNumber(static_cast<uint32_t>(i));
    codecs.of_table.resize(std::max<size_t>(codecs.of_table.size(), number + 1), codecs.others);
    codecs.of_table[number] = codec;
  }
  return codecs;
}

}  // namespace strata
