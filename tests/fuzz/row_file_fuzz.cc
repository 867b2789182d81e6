// libFuzzer target of the row file's readers: the first byte says which. 0 a manifest, 1 an index
// of an extent, 2 a block; +4: the checksum is put right, so that what lies behind it is reached.
// Whatever the bytes, no crash; a manifest that is accepted is written back to the same bytes, and
// of an index or a block that is accepted everything can be asked.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "proto/core/checksum.h"
#include "storage/row_file/block.h"
#include "storage/row_file/extent.h"
#include "storage/row_file/version.h"
#include "storage/row_file/volume.h"

namespace strata::storage::row_file {
namespace {

void Put(std::vector<uint8_t>& bytes, size_t at, uint32_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

void FuzzManifest(std::vector<uint8_t> bytes, bool put_right) {
  if (put_right && bytes.size() >= 32) {
    std::memcpy(bytes.data(), "TRATROW1", 8);
    Put(bytes, 24, 0);
    Put(bytes, 28,
        Crc32cExtend(Crc32c({bytes.data(), 28}), std::span<const uint8_t>(bytes).subspan(32)));
  }
  const auto manifest = DecodeManifest(bytes);
  if (!manifest) return;
  const auto again = DecodeManifest(EncodeManifest(*manifest));
  if (!again || EncodeManifest(*again) != EncodeManifest(*manifest)) std::abort();
}

void FuzzIndex(std::vector<uint8_t> bytes, bool put_right) {
  if (bytes.size() < 8) return;
  if (put_right) Put(bytes, 0, Crc32c(std::span<const uint8_t>(bytes).subspan(4)));
  const size_t size = bytes.size();
  // Behind a chunk that its sections may say their blocks are in.
  bytes.insert(bytes.begin(), kChunkBytes, 0);
  bytes.resize((bytes.size() + kChunkBytes - 1) / kChunkBytes * kChunkBytes);
  const int file = memfd_create("rows", 0);
  if (file < 0 || write(file, bytes.data(), bytes.size()) < 0) std::abort();
  auto volume = Volume::Open("/proc/self/fd/" + std::to_string(file));
  close(file);
  if (!volume.ok()) std::abort();
  const auto chunks = static_cast<uint32_t>(bytes.size() / kChunkBytes);
  auto extent = Extent::Load(volume->get(), {.number = 1,
                                             .level = 0,
                                             .runs = {{0, chunks}},
                                             .index_offset = kChunkBytes,
                                             .index_bytes = size});
  if (!extent.ok()) return;
  for (const Section& section : (*extent)->sections()) {
    if ((*extent)->Find(section.table) == nullptr) std::abort();
    for (const uint64_t position : {uint64_t{0}, ~uint64_t{0}, uint64_t{1} << 63}) {
      const auto block = Extent::Find(section, Position(position));
      if (block && *block >= section.fences.size()) std::abort();
    }
  }
}

void FuzzBlock(std::vector<uint8_t> bytes, bool put_right) {
  if (bytes.empty()) return;
  const BlockShape shape = BlockShape::For(4 * (1 + bytes[0] % 64));
  bytes.resize(shape.block_bytes);
  if (put_right) {
    const uint8_t place[12] = {7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0};
    Put(bytes, 0, Crc32cExtend(Crc32c(place), std::span<const uint8_t>(bytes).subspan(4)));
  }
  const auto view = BlockView::Check(shape, bytes, 7, 3);
  if (!view) return;
  volatile uint64_t sum = 0;
  for (uint32_t i = 0; i < view->rows(); ++i) {
    sum = sum + view->position(i).value;
    const uint8_t* row = view->row(i);
    for (uint32_t b = 0; row != nullptr && b < shape.row_bytes; ++b) sum = sum + row[b];
  }
  if (view->LowerBound(Position(~uint64_t{0})) > view->rows()) std::abort();
}

}  // namespace
}  // namespace strata::storage::row_file

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strata::storage::row_file;
  if (size == 0) return 0;
  const std::vector<uint8_t> bytes(data + 1, data + size);
  const bool put_right = (data[0] & 4) != 0;
  switch (data[0] % 4) {
    case 0:
      FuzzManifest(bytes, put_right);
      break;
    case 1:
      FuzzIndex(bytes, put_right);
      break;
    case 2:
      FuzzBlock(bytes, put_right);
      break;
  }
  return 0;
}
