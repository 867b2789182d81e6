#include "storage/row_file/extent.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"
#include "proto/core/checksum.h"
#include "storage/io/byte_codec.h"

namespace strata::storage::row_file {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;
constexpr size_t kSectionBytes = 40;
constexpr uint32_t kMostFilterBits = 16;  // per row

uint64_t PagesUp(uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

// crc u32 | sections u32 | per section: its fields, fences, filters.
std::vector<uint8_t> EncodeIndex(const std::vector<Section>& sections) {
  size_t bytes = 8;
  for (const Section& s : sections) bytes += kSectionBytes + s.fences.size() * 8 + s.filters.size();
  std::vector<uint8_t> out(bytes);
  FieldWriter(out.data() + 4).U32(static_cast<uint32_t>(sections.size()));
  uint8_t* at = out.data() + 8;
  for (const Section& s : sections) {
    FieldWriter fields(at);
    fields.U32(s.table.value);
    fields.U32(s.shape.row_bytes);
    fields.U32(s.filter_bits);
    fields.U32(s.first_block);
    fields.U64(s.offset);
    fields.U64(s.rows);
    fields.U64(s.fences.size());
    at += kSectionBytes;
    std::memcpy(at, s.fences.data(), s.fences.size() * 8);
    at += s.fences.size() * 8;
    std::memcpy(at, s.filters.data(), s.filters.size());
    at += s.filters.size();
  }
  FieldWriter(out.data()).U32(Crc32c(std::span(out).subspan(4)));
  return out;
}

// A section that lies in front of its index, and whose numbers are those of rows and blocks.
bool IsSound(const Section& s, const Section* before, uint64_t index_offset) {
  if (before != nullptr && !(before->table < s.table)) return false;
  if (s.fences.empty() || s.offset % kPageBytes != 0 || s.offset > index_offset) return false;
  if (s.fences.size() > (index_offset - s.offset) / s.shape.block_bytes) return false;
  return std::adjacent_find(s.fences.begin(), s.fences.end(), std::greater_equal<>()) ==
         s.fences.end();
}

// Nothing if the bytes are no index of an extent that has it at `index_offset`.
std::optional<std::vector<Section>> DecodeIndex(std::span<const uint8_t> in,
                                                uint64_t index_offset) {
  if (in.size() < 8 || FieldReader(in.data()).U32() != Crc32c(in.subspan(4))) return std::nullopt;
  const uint32_t count = FieldReader(in.data() + 4).U32();
  std::vector<Section> sections;
  in = in.subspan(8);
  for (uint32_t i = 0; i < count; ++i) {
    if (in.size() < kSectionBytes) return std::nullopt;
    FieldReader fields(in.data());
    Section s;
    s.table = TableId(fields.U32());
    const uint32_t row_bytes = fields.U32();
    s.filter_bits = fields.U32();
    if (row_bytes == 0 || row_bytes > kMostRowBytes) return std::nullopt;
    if (s.filter_bits == 0 || s.filter_bits > kMostFilterBits) return std::nullopt;
    s.shape = BlockShape::For(row_bytes);
    s.first_block = fields.U32();
    s.offset = fields.U64();
    s.rows = fields.U64();
    const uint64_t blocks = fields.U64();
    in = in.subspan(kSectionBytes);
    if (blocks == 0 || blocks > in.size() / (8 + s.filter_bytes())) return std::nullopt;
    s.fences.resize(blocks);
    std::memcpy(s.fences.data(), in.data(), blocks * 8);
    s.filters.assign(in.begin() + static_cast<ptrdiff_t>(blocks * 8),
                     in.begin() + static_cast<ptrdiff_t>(blocks * (8 + s.filter_bytes())));
    in = in.subspan(blocks * (8 + s.filter_bytes()));
    if (!IsSound(s, sections.empty() ? nullptr : &sections.back(), index_offset)) {
      return std::nullopt;
    }
    sections.push_back(std::move(s));
  }
  return sections;
}

}  // namespace

void PiecesOf(const std::vector<ChunkRun>& runs, uint64_t offset, uint64_t bytes,
              std::vector<Piece>& out) {
  uint64_t begin = 0;  // of the run
  for (const ChunkRun& run : runs) {
    const uint64_t end = begin + run.count * kChunkBytes;
    if (bytes > 0 && offset < end) {
      const uint64_t n = std::min(bytes, end - offset);
      out.emplace_back(run.first * kChunkBytes + (offset - begin), n);
      offset += n;
      bytes -= n;
    }
    begin = end;
  }
}

Extent::Extent(Volume* volume, ExtentPlace place, std::vector<Section> sections)
    : volume_(volume), place_(std::move(place)), sections_(std::move(sections)) {}

Extent::~Extent() { volume_->Retire(place_.runs); }

absl::StatusOr<std::shared_ptr<const Extent>> Extent::Load(Volume* volume, ExtentPlace place) {
  const uint64_t bytes = PagesUp(place.index_bytes);
  const PageMemory memory = AllocatePages(bytes);
  std::vector<Piece> pieces;
  PiecesOf(place.runs, place.index_offset, bytes, pieces);
  uint64_t done = 0;
  for (const auto& [at, n] : pieces) {
    if (absl::Status s = volume->Read(at, {memory.get() + done, n}); !s.ok()) return s;
    done += n;
  }
  auto sections = done == bytes ? DecodeIndex({memory.get(), place.index_bytes}, place.index_offset)
                                : std::nullopt;
  if (!sections) {
    return DamagedFile(volume->path(), pieces.empty() ? 0 : pieces[0].first,
                       "an index that does not check");
  }
  return std::make_shared<const Extent>(volume, std::move(place), *std::move(sections));
}

uint64_t Extent::rows() const {
  uint64_t sum = 0;
  for (const Section& s : sections_) sum += s.rows;
  return sum;
}

uint64_t Extent::memory_bytes() const {
  uint64_t sum = sizeof(Extent) + place_.runs.size() * sizeof(ChunkRun);
  for (const Section& s : sections_) {
    sum += sizeof(Section) + s.fences.size() * 8 + s.filters.size();
  }
  return sum;
}

const Section* Extent::Find(TableId table) const {
  const auto it = std::lower_bound(sections_.begin(), sections_.end(), table,
                                   [](const Section& s, TableId t) { return s.table < t; });
  return it != sections_.end() && it->table == table ? &*it : nullptr;
}

std::optional<uint32_t> Extent::Find(const Section& section, Position position) {
  const auto it = std::upper_bound(section.fences.begin(), section.fences.end(), position.value);
  if (it == section.fences.begin()) return std::nullopt;
  const auto block = static_cast<uint32_t>(it - section.fences.begin() - 1);
  if (!FilterMayHave(section.filter(block), section.filter_bits, position)) return std::nullopt;
  return block;
}

absl::Status Extent::Read(uint64_t offset, std::span<uint8_t> out) const {
  std::vector<Piece> pieces;
  PiecesOf(place_.runs, offset, out.size(), pieces);
  size_t done = 0;
  for (const auto& [at, bytes] : pieces) {
    if (absl::Status s = volume_->Read(at, out.subspan(done, bytes)); !s.ok()) return s;
    done += bytes;
  }
  return done == out.size() ? absl::OkStatus() : Damaged(offset, "an extent that ends too early");
}

absl::Status Extent::Damaged(uint64_t offset, absl::string_view what) const {
  std::vector<Piece> pieces;
  PiecesOf(place_.runs, offset, 1, pieces);
  return DamagedFile(volume_->path(), pieces.empty() ? 0 : pieces[0].first,
                     absl::StrCat(what, "; the tier must be filled afresh"));
}

ExtentWriter::ExtentWriter(Volume* volume, uint64_t number, uint32_t level, uint32_t filter_bits)
    : volume_(volume), filter_bits_(filter_bits), buffer_(AllocatePages(kBufferBytes)) {
  place_.number = number;
  place_.level = level;
}

ExtentWriter::~ExtentWriter() {
  if (!finished_) volume_->Free(place_.runs);
}

absl::Status ExtentWriter::Add(RowKey key, uint32_t row_bytes, const uint8_t* row) {
  const bool same = !sections_.empty() && sections_.back().table == key.table;
  if (block_ && (!same || block_->full())) EndBlock();
  if (!same) {
    Section s;
    s.table = key.table;
    s.shape = BlockShape::For(row_bytes);
    s.filter_bits = filter_bits_;
    s.first_block = blocks_;
    s.offset = written_ + buffered_;
    sections_.push_back(std::move(s));
  }
  Section& section = sections_.back();
  if (!block_) {
    const size_t bytes = section.shape.block_bytes;
    if (buffered_ + bytes > kBufferBytes) {
      if (absl::Status s = Flush(); !s.ok()) return s;
    }
    std::memset(buffer_.get() + buffered_, 0, bytes);
    block_.emplace(section.shape, buffer_.get() + buffered_);
    section.fences.push_back(key.position.value);
    section.filters.resize(section.filters.size() + section.filter_bytes());
  }
  block_->Add(key.position, row);
  FilterAdd(
      {&section.filters[section.filters.size() - section.filter_bytes()], section.filter_bytes()},
      filter_bits_, key.position);
  ++section.rows;
  ++rows_;
  return absl::OkStatus();
}

void ExtentWriter::EndBlock() {
  block_->Finish(place_.number, blocks_++);
  buffered_ += sections_.back().shape.block_bytes;
  block_.reset();
}

absl::Status ExtentWriter::Flush() {
  absl::Status s = Put({buffer_.get(), buffered_});
  buffered_ = 0;
  return s;
}

absl::Status ExtentWriter::Put(std::span<const uint8_t> bytes) {
  if (written_ + bytes.size() > capacity_) {
    const uint64_t lack = written_ + bytes.size() - capacity_;
    const auto chunks = static_cast<uint32_t>((lack + kChunkBytes - 1) / kChunkBytes);
    auto runs = volume_->Allocate(chunks);
    if (!runs.ok()) return runs.status();
    place_.runs.insert(place_.runs.end(), runs->begin(), runs->end());
    capacity_ += chunks * kChunkBytes;
  }
  std::vector<Piece> pieces;
  PiecesOf(place_.runs, written_, bytes.size(), pieces);
  for (const auto& [at, n] : pieces) {
    if (absl::Status s = volume_->Write(at, bytes.subspan(0, n)); !s.ok()) return s;
    bytes = bytes.subspan(n);
    written_ += n;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Extent>> ExtentWriter::Finish() {
  if (block_) EndBlock();
  if (absl::Status s = Flush(); !s.ok()) return s;
  const std::vector<uint8_t> index = EncodeIndex(sections_);
  place_.index_offset = written_;
  place_.index_bytes = index.size();
  for (size_t done = 0; done < index.size(); done += kBufferBytes) {
    const size_t n = std::min(kBufferBytes, index.size() - done);
    const uint64_t padded = PagesUp(n);
    std::memset(buffer_.get(), 0, padded);
    std::memcpy(buffer_.get(), index.data() + done, n);
    if (absl::Status s = Put({buffer_.get(), padded}); !s.ok()) return s;
  }
  for (Section& s : sections_) {
    s.fences.shrink_to_fit();
    s.filters.shrink_to_fit();
  }
  finished_ = true;
  return std::make_shared<const Extent>(volume_, std::move(place_), std::move(sections_));
}

}  // namespace strata::storage::row_file
