#include "storage/row_file/version.h"

#include <algorithm>
#include <cstring>

#include "proto/core/checksum.h"
#include "storage/io/byte_codec.h"

namespace strata::storage::row_file {
namespace {

constexpr char kMagic[] = "TRATROW1";
constexpr size_t kHeaderBytes = 32;
constexpr uint64_t kLeastPieceBytes = uint64_t{4} << 20;

class Encoder {
 public:
  template <typename T>
  void Put(T v) {
    const auto* p = reinterpret_cast<const uint8_t*>(&v);
    out.insert(out.end(), p, p + sizeof(v));
  }
  void Place(const ExtentPlace& place) {
    Put<uint64_t>(place.number);
    Put<uint64_t>(place.index_offset);
    Put<uint64_t>(place.index_bytes);
    Put<uint32_t>(place.level);
    Put<uint32_t>(static_cast<uint32_t>(place.runs.size()));
    for (const ChunkRun& run : place.runs) {
      Put<uint32_t>(run.first);
      Put<uint32_t>(run.count);
    }
  }
  std::vector<uint8_t> out;
};

// Reads past the end are zeros, and make ok() false.
class Decoder {
 public:
  explicit Decoder(std::span<const uint8_t> in) : in_(in) {}
  template <typename T>
  T Get() {
    T v{};
    if (in_.size() < sizeof(v)) {
      ok_ = false;
      return v;
    }
    std::memcpy(&v, in_.data(), sizeof(v));
    in_ = in_.subspan(sizeof(v));
    return v;
  }
  // A count of things that take at least `bytes` each.
  uint32_t Count(size_t bytes) {
    const auto n = Get<uint32_t>();
    if (n > in_.size() / bytes) ok_ = false;
    return ok_ ? n : 0;
  }
  ExtentPlace Place() {
    ExtentPlace place;
    place.number = Get<uint64_t>();
    place.index_offset = Get<uint64_t>();
    place.index_bytes = Get<uint64_t>();
    place.level = Get<uint32_t>();
    place.runs.resize(Count(8));
    uint64_t chunks = 0;
    for (ChunkRun& run : place.runs) {
      run.first = Get<uint32_t>();
      run.count = Get<uint32_t>();
      chunks += run.count;
    }
    ok_ = ok_ && place.index_offset <= chunks * kChunkBytes &&
          place.index_bytes <= chunks * kChunkBytes - place.index_offset;
    return place;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return in_.empty(); }

 private:
  std::span<const uint8_t> in_;
  bool ok_ = true;
};

}  // namespace

uint64_t Range::delta_bytes() const {
  uint64_t sum = 0;
  for (const auto& delta : deltas) sum += delta->bytes();
  return sum;
}

size_t Version::RangeOf(RowKey key) const {
  const auto it = std::upper_bound(ranges.begin(), ranges.end(), key,
                                   [](const RowKey& k, const Range& r) { return k < r.begin; });
  return static_cast<size_t>(it - ranges.begin()) - 1;
}

RowKey Version::LastOf(size_t range) const {
  if (range + 1 == ranges.size()) return {TableId(~uint32_t{0}), Position(~uint64_t{0})};
  RowKey key = ranges[range + 1].begin;
  if (key.position.value == 0) key.table = TableId(key.table.value - 1);
  key.position = Position(key.position.value - 1);
  return key;
}

uint64_t Version::base_bytes() const {
  uint64_t sum = 0;
  for (const Range& r : ranges) sum += r.base_bytes();
  return sum;
}

uint64_t Version::delta_bytes() const {
  uint64_t sum = 0;
  for (const Range& r : ranges) sum += r.delta_bytes();
  return sum;
}

uint64_t Version::memory_bytes() const {
  uint64_t sum = ranges.size() * sizeof(Range);
  for (const Range& r : ranges) {
    if (r.base != nullptr) sum += r.base->memory_bytes();
    for (const auto& delta : r.deltas) sum += delta->memory_bytes();
  }
  return sum;
}

std::optional<MergeJob> NextJob(const Version& version) {
  uint64_t deltas = 0;
  uint64_t bases = 0;
  uint64_t most = 0;
  size_t largest = 0;
  for (size_t i = 0; i < version.ranges.size(); ++i) {
    const Range& range = version.ranges[i];
    const uint64_t bytes = range.delta_bytes();
    if (bytes > most) {
      most = bytes;
      largest = i;
    }
    deltas += bytes;
    bases += range.base_bytes();
  }
  const auto allowed =
      std::max(kLeastDeltaBytes, static_cast<uint64_t>(kDeltaShare * static_cast<double>(bases)));
  if (deltas > allowed) return MergeJob{.range = largest, .first_delta = 0, .into_base = true};
  for (size_t i = 0; i < version.ranges.size(); ++i) {
    const auto& list = version.ranges[i].deltas;
    if (list.size() < kFanIn) continue;
    const uint32_t level = list.back()->place().level;
    size_t first = list.size();
    while (first > 0 && list[first - 1]->place().level == level) --first;
    if (list.size() - first >= kFanIn) {
      return MergeJob{.range = i, .first_delta = first, .level = level + 1};
    }
  }
  return std::nullopt;
}

size_t PiecesOfBase(const Version& version, uint64_t new_base_bytes, size_t most_ranges) {
  if (version.ranges.size() >= most_ranges) return 1;
  const uint64_t total = std::max(version.base_bytes(), new_base_bytes);
  const uint64_t piece = std::max(kLeastPieceBytes, total / most_ranges);
  return std::clamp<size_t>(new_base_bytes / piece, 1, most_ranges - version.ranges.size() + 1);
}

Manifest MakeManifest(const Version& version, uint64_t next_number, uint32_t partitions) {
  Manifest out{.next_number = next_number, .partitions = partitions, .ranges = {}};
  for (const Range& range : version.ranges) {
    Manifest::RangePlaces places{.begin = range.begin, .deltas = {}, .base = {}};
    for (const auto& delta : range.deltas) places.deltas.push_back(delta->place());
    if (range.base != nullptr) places.base = range.base->place();
    out.ranges.push_back(std::move(places));
  }
  return out;
}

std::vector<uint8_t> EncodeManifest(const Manifest& manifest) {
  Encoder encoder;
  encoder.out.resize(kHeaderBytes);
  for (const Manifest::RangePlaces& range : manifest.ranges) {
    encoder.Put<uint64_t>(range.begin.position.value);
    encoder.Put<uint32_t>(range.begin.table.value);
    encoder.Put<uint32_t>(range.base ? 1 : 0);
    if (range.base) encoder.Place(*range.base);
    encoder.Put<uint32_t>(static_cast<uint32_t>(range.deltas.size()));
    for (const ExtentPlace& delta : range.deltas) encoder.Place(delta);
  }
  std::vector<uint8_t>& out = encoder.out;
  std::memcpy(out.data(), kMagic, 8);
  FieldWriter header(out.data() + 8);
  header.U64(manifest.next_number);
  header.U32(manifest.partitions);
  header.U32(static_cast<uint32_t>(manifest.ranges.size()));
  header.U32(0);
  header.U32(Crc32cExtend(Crc32c({out.data(), 28}), std::span(out).subspan(kHeaderBytes)));
  return std::move(out);
}

std::optional<Manifest> DecodeManifest(std::span<const uint8_t> bytes) {
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic, 8) != 0) return std::nullopt;
  FieldReader header(bytes.data() + 8);
  Manifest out;
  out.next_number = header.U64();
  out.partitions = header.U32();
  const uint32_t ranges = header.U32();
  header.U32();
  if (header.U32() != Crc32cExtend(Crc32c(bytes.subspan(0, 28)), bytes.subspan(kHeaderBytes))) {
    return std::nullopt;
  }
  Decoder decoder(bytes.subspan(kHeaderBytes));
  for (uint32_t i = 0; i < ranges && decoder.ok(); ++i) {
    Manifest::RangePlaces range;
    range.begin.position = Position(decoder.Get<uint64_t>());
    range.begin.table = TableId(decoder.Get<uint32_t>());
    if (decoder.Get<uint32_t>() != 0) range.base = decoder.Place();
    for (uint32_t n = decoder.Count(32); n > 0; --n) range.deltas.push_back(decoder.Place());
    out.ranges.push_back(std::move(range));
  }
  if (!decoder.ok() || !decoder.at_end() || out.ranges.empty()) return std::nullopt;
  return out;
}

}  // namespace strata::storage::row_file
