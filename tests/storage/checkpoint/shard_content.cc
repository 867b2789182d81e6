#include "tests/storage/checkpoint/shard_content.h"

#include <random>
#include <span>

namespace strata::storage {

ShardFileHeader ContentHeader() {
  return {
      .kind = ShardFileKind::kCheckpoint,
      .job = JobId(7),
      .generation = Generation(2),
      .identity = {{21, 22}, {23, 24}},
      .cut = 17,
      .map_epoch = MapEpoch(6),
      .shard = ShardId(3),
      .partitioning = Partitioning(kContentPartitions),
      .partitions = {PartitionId(4), PartitionId(11)},
      .clock = Step(99),
      .log_segment = 5,
      .tables = {{TableId(0), TableKind::kHashed, 3, 3}, {TableId(2), TableKind::kDense, 4, 8}}};
}

Content MakeContent(size_t rows, uint64_t seed) {
  std::mt19937_64 rng(seed);
  const ShardFileHeader header = ContentHeader();
  const uint64_t first = header.partitioning.First(header.partitions.first).value;
  const uint64_t last = header.partitioning.Last(header.partitions.last).value;
  const auto position = [&] { return first + rng() % (last - first + 1); };
  Content content;
  for (const TableShape& table : header.tables) {
    auto& of_table = content.rows[table.id.value];
    if (rows > 1) {
      of_table[first];
      of_table[last];
    }
    while (of_table.size() < rows) of_table[position()];
    for (auto& [p, row] : of_table) {
      row.resize(table.row_bytes());
      for (uint8_t& byte : row) byte = static_cast<uint8_t>(rng());
    }
    auto& images = content.images[table.id.value];
    while (images.size() < rows / 2) images[position()] = {};
    for (auto& [p, weights] : images) {
      for (uint32_t i = 0; i < table.dim; ++i) weights.push_back(static_cast<float>(rng() % 1000));
    }
  }
  content.sections.emplace_back(1, 4, 11, Bytes(13, 0xab));
  content.sections.emplace_back(2, 5, 5, Bytes());
  content.sections.emplace_back(2, 9, 11, Bytes(64, 0x17));
  return content;
}

absl::StatusOr<ShardFileSummary> WriteContent(const std::string& path, const Content& content,
                                              FileSystem& files) {
  auto writer = ShardFileWriter::Create(path, ContentHeader(), files);
  if (!writer.ok()) return writer.status();
  for (uint32_t p = 0; p < kContentPartitions; ++p) {
    for (const auto& [table, rows] : content.rows) {
      for (const auto& [position, row] : rows) {
        if (ContentHeader().partitioning.Of(Position(position)).value != p) continue;
        absl::Status s = (*writer)->AddRow(TableId(table), Position(position), row);
        if (!s.ok()) return s;
      }
    }
  }
  for (const auto& [type, first, last, bytes] : content.sections) {
    absl::Status s = (*writer)->AddSection({type, {PartitionId(first), PartitionId(last)}, bytes});
    if (!s.ok()) return s;
  }
  for (const auto& [table, images] : content.images) {
    std::vector<Position> positions;
    std::vector<float> weights;
    for (const auto& [position, values] : images) {
      positions.push_back(Position(position));
      weights.insert(weights.end(), values.begin(), values.end());
    }
    absl::Status s = (*writer)->AddPreImages({TableId(table), positions, weights});
    if (!s.ok()) return s;
  }
  return (*writer)->Finish();
}

absl::Status ReadContent(const std::string& path, PartitionRange partitions, Content& out) {
  auto reader = ShardFileReader::Open(path);
  if (!reader.ok()) return reader.status();
  for (const TableShape& table : (*reader)->header().tables) {
    out.rows[table.id.value];
    out.images[table.id.value];
    absl::Status s = (*reader)->ReadRows(
        table.id, partitions, [&](std::span<const Position> positions, const uint8_t* rows) {
          for (size_t i = 0; i < positions.size(); ++i) {
            const uint8_t* row = rows + i * table.row_bytes();
            out.rows[table.id.value][positions[i].value] = Bytes(row, row + table.row_bytes());
          }
          return absl::OkStatus();
        });
    if (!s.ok()) return s;
    s = (*reader)->ReadPreImages(table.id, partitions, [&](const PreImages& images) {
      for (size_t i = 0; i < images.positions.size(); ++i) {
        const auto weights = images.weights.subspan(i * table.dim, table.dim);
        out.images[table.id.value][images.positions[i].value] =
            std::vector<float>(weights.begin(), weights.end());
      }
      return absl::OkStatus();
    });
    if (!s.ok()) return s;
  }
  return (*reader)->ReadSections(partitions, [&](const Section& section) {
    out.sections.emplace_back(section.type, section.partitions.first.value,
                              section.partitions.last.value,
                              Bytes(section.bytes.begin(), section.bytes.end()));
    return absl::OkStatus();
  });
}

}  // namespace strata::storage
