#include "proto/job/memory_need.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/core/dram_parts.h"
#include "proto/core/table_spec.h"
#include "proto/job/dram_limit.h"
#include "proto/job/fields/line_features.h"
#include "proto/job/fields/row_limits.h"
#include "proto/job/job_plan.h"
#include "proto/job/job_spec.h"
#include "proto/job/tables/model_tables.h"

namespace strata {
namespace {

constexpr uint64_t kKiB = uint64_t{1} << 10;
constexpr uint64_t kMiB = uint64_t{1} << 20;
// As server/memory_estimate.cc has them, or what it takes them from.
constexpr uint64_t kJobBytes = 7 * kMiB;
constexpr uint64_t kConnectionBytes = 20 * kMiB;
constexpr uint64_t kConnectionMessages = 12;
constexpr uint64_t kRecordBytes = 8 * kMiB;  // storage/log/batch.h
constexpr uint64_t kRecords = 4;
constexpr uint64_t kHeldBytes = 64 * kMiB;        // server/snapshot/turn.h
constexpr uint64_t kPieceBytes = 8 * 256 * kKiB;  // of a shard, server/snapshot/driver.h
constexpr uint64_t kStagingBytes = kMiB;          // storage/io/file_stream.h
constexpr uint64_t kGrowthBytes = 136 * kKiB;     // of a table in a shard, storage/dram/store.h
constexpr uint64_t kTierBytes = 72 * kMiB;  // storage/rocks/memory.h, storage/row_file/memory.h
constexpr uint64_t kListedRows = 65536;     // server/table/change_list.h
// Rows that are certainly counted one by one, and how many of the others are new.
constexpr uint64_t kFirstRows = uint64_t{1} << 20;
constexpr uint64_t kOccurrencesOfRow = 16;

uint64_t CeilDiv(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

// Of an option that is checked already.
uint64_t BytesOf(const std::string& text) {
  const auto bytes = ParseBytes(text);
  return bytes.ok() ? *bytes : 0;
}

uint64_t DenseRows(const TableSpec& table) {
  uint64_t rows = 0;
  for (const TensorSpec& tensor : table.tensors) rows += tensor.Rows(table.dim());
  return rows;
}

uint64_t SumOf(const std::vector<uint64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), uint64_t{0});
}

// By field: those that have a limit as many as occur, up to it; the others have their part of
// GuessRows. What fields share is the first one's.
std::vector<uint64_t> RowsOfFields(const JobSpec& spec, const DataSize& data,
                                   const std::vector<uint64_t>& features) {
  const std::vector<RowLimit> limits = RowLimitsOfFields(spec, data.fields, data.vocabularies);
  uint64_t hashed = 0;  // features of a line
  for (size_t f = 0; f < features.size(); ++f) {
    if (limits[f].rows == RowLimit::kNone) hashed += features[f];
  }
  const uint64_t guess = GuessRows(data.lines * hashed);
  const auto first = [&](uint64_t n) { return guess / hashed * n + guess % hashed * n / hashed; };
  std::vector<uint64_t> rows(features.size());
  uint64_t before = 0;  // of `hashed`
  for (size_t f = 0; f < features.size(); ++f) {
    if (limits[f].rows == RowLimit::kNone) {
      rows[f] = first(before + features[f]) - first(before);
      before += features[f];
      continue;
    }
    uint64_t& shared = rows[limits[f].shared_with];
    shared = std::min(limits[f].rows, shared + data.lines * features[f]);
  }
  return rows;
}

// Adds up one server's share.
class Sum {
 public:
  Sum(const JobSpec& spec, const ModelTables& model, const DataSize& data, uint32_t shards)
      : spec_(spec),
        model_(model),
        servers_(std::max(1u, spec.replicas().servers())),
        workers_(std::max(1u, spec.replicas().workers())),
        shards_(shards),
        bsp_(spec.training().mode() == "bsp"),
        logged_(spec.storage().durability() != "memory"),
        features_(
            FeaturesOfFields(spec, data.fields, data.lines > 0 ? data.bytes / data.lines : 0)),
        of_line_(std::max<uint64_t>(1, SumOf(features_.most))),
        field_rows_(RowsOfFields(spec, data, features_.likely)),
        rows_(data.rows > 0 ? data.rows : SumOf(field_rows_)) {
    const TrainingSpec& t = spec.training();
    const uint64_t batch = t.batch_size() * of_line_;
    const uint64_t batches =
        bsp_ ? CeilDiv(t.lanes(), workers_) : BatchesPerWindow(t);  // of one push
    push_keys_ = std::min(rows_, batch * batches);
    step_keys_ = bsp_ ? std::min(rows_, batch * t.lanes()) : push_keys_;
  }

  void Fill(ServerNeed& need) {
    AddRows(need);
    AddStep(need);
    AddSnapshots(need);
    need.rows = rows_;
    need.likely.set_dram_bytes(std::max(need.least.dram_bytes(), TotalBytes(need.parts)));
    need.likely.set_disk_bytes(DiskBytes());
    if (need.least.gpu_bytes() == 0 || !bsp_) return;
    // Pre-images, and a quarter to spare (server/table/preimages.h).
    uint64_t bytes = 0;
    for (const TableSpec& t : model_.tables) {
      if (t.kind == TableKind::kDense) continue;
      const uint64_t keys = CeilDiv(KeysOf(t, step_keys_), servers_);
      bytes += (keys + keys / 4) * 4 * t.dim();
    }
    need.likely.set_gpu_bytes(need.least.gpu_bytes() + bytes);
  }

 private:
  // Of what belongs to fields, that of the fields of one table.
  uint64_t OfTable(const TableSpec& table, const std::vector<uint64_t>& by_field) const {
    uint64_t sum = 0;
    for (size_t f = 0; f < model_.field_tables.size(); ++f) {
      if (model_.field_tables[f] == table.id.value) sum += by_field[f];
    }
    return sum;
  }
  // Rows of a hashed table: its fields' part of all.
  uint64_t RowsOf(const TableSpec& table) const {
    const uint64_t all = SumOf(field_rows_);
    if (model_.field_tables.empty() || all == 0) return rows_;
    const double part = static_cast<double>(OfTable(table, field_rows_)) / static_cast<double>(all);
    return static_cast<uint64_t>(std::ceil(part * static_cast<double>(rows_)));
  }
  // Of so many keys of all hashed tables those of one: as many as it has of a line's features.
  uint64_t KeysOf(const TableSpec& table, uint64_t keys) const {
    if (model_.field_tables.empty()) return keys;
    const uint64_t features = OfTable(table, features_.most);
    return std::min(RowsOf(table),
                    keys / of_line_ * features + CeilDiv(keys % of_line_ * features, of_line_));
  }
  uint64_t RowsHere(const TableSpec& table) const {
    return CeilDiv(table.kind == TableKind::kDense ? DenseRows(table) : RowsOf(table), servers_);
  }
  // Of this server's share of all rows, as files have them.
  std::vector<uint64_t> BytesOfTables() const {
    std::vector<uint64_t> bytes;
    for (const TableSpec& t : model_.tables) bytes.push_back(RowsHere(t) * (8 + RowBytes(t)));
    return bytes;
  }
  uint64_t AllBytes() const { return SumOf(BytesOfTables()); }
  // What of so many bytes of each table has no room in its part of dramBytesPerServer.
  uint64_t BytesBelow(const std::vector<uint64_t>& by_table) const {
    const uint64_t limit = BytesOf(spec_.storage().dram_bytes_per_server());
    if (limit == 0) return 0;
    std::vector<DramClaim> claims;
    for (size_t t = 0; t < by_table.size(); ++t) {
      claims.push_back({by_table[t], shards_ * LeastTableBytes(model_.tables[t])});
    }
    const std::vector<uint64_t> parts = DivideDram(model_.tables, claims, limit);
    uint64_t below = 0;
    for (size_t t = 0; t < by_table.size(); ++t) {
      below += by_table[t] - std::min(by_table[t], parts[t]);
    }
    return below;
  }
  // A request or a reply with so many keys.
  uint64_t MessageBytes(uint64_t keys) const {
    uint64_t bytes = 0;
    for (const TableSpec& t : model_.tables) {
      const uint64_t rows = t.kind == TableKind::kDense ? DenseRows(t) : KeysOf(t, keys);
      bytes += CeilDiv(rows * (8 + 4 * uint64_t{t.push_dim()}), servers_);
    }
    return bytes;
  }

  void AddRows(ServerNeed& need) {
    const uint64_t limit = BytesOf(spec_.storage().dram_bytes_per_server());
    const uint64_t growth =
        limit == 0 ? shards_ * kGrowthBytes : 0;  // a limited table has its size
    std::vector<uint64_t> by_table;
    for (const TableSpec& t : model_.tables) {
      const uint64_t rows = RowsHere(t);
      by_table.push_back(rows * (RowBytes(t) + 8) + rows * 29 / 4 + growth);
    }
    const uint64_t all = SumOf(by_table);
    const uint64_t tier_above = need.least.dram_bytes() - limit;  // a GPU's, on the host
    const uint64_t below = BytesBelow(by_table);
    need.guessed = limit == 0;
    need.row_bytes = need.guessed ? all : limit;
    need.parts.push_back({"rows and index", need.row_bytes,
                          need.guessed ? absl::StrCat(rows_, " rows of features")
                                       : std::string("dramBytesPerServer")});
    if (tier_above > 0) {
      need.parts.push_back({"GPU tier, in the host's memory", tier_above, "gpuBytesPerServer"});
    }
    if (below == 0) return;
    // Index and filters of the tier: at most some three bytes and a four-hundredth of a row.
    need.parts.push_back({"SSD tier",
                          std::min(kTierBytes, below) + 3 * CeilDiv(rows_, servers_) + below / 400 +
                              shards_ * kKiB * 512,
                          "min(72 MiB, rows below), 3 x rows, and 512 KiB a shard"});
  }

  void AddStep(ServerNeed& need) {
    for (const TableSpec& t : model_.tables) {
      const uint64_t bytes =
          CeilDiv(t.life_cycle.admission.partition_bytes * spec_.storage().partitions(), servers_);
      if (bytes > 0) need.parts.push_back({"admission filters", bytes, "filterBytes / servers"});
    }
    const uint64_t push = MessageBytes(push_keys_), step = MessageBytes(step_keys_);
    need.parts.push_back({"requests and replies", 2 * workers_ * push,
                          absl::StrCat("2 x workers x ", push_keys_, " keys of a push at most")});
    if (bsp_) {
      need.parts.push_back({"sums and pre-images", (workers_ > 1 ? 2 : 1) * step,
                            absl::StrCat(step_keys_, " keys of a step at most")});
    }
    if (logged_) {
      const uint64_t record = CeilDiv(bsp_ ? step : workers_ * push, shards_);
      need.parts.push_back({"log records",
                            std::min<uint64_t>(shards_, kRecords) * std::min(kRecordBytes, record),
                            "4 x at most 8 MiB"});
    }
    need.parts.push_back({"connections of the workers",
                          workers_ * std::min(kConnectionBytes, kConnectionMessages * push),
                          "workers x min(12 x bytes of a push, 20 MiB)"});
    need.parts.push_back({"threads and queues of the job", kJobBytes, "measured"});
  }

  void AddSnapshots(ServerNeed& need) {
    const bool checkpoints = !spec_.checkpoint().directory().empty();
    const uint64_t at_once = (logged_ ? 1 : 0) + (checkpoints ? 1 : 0);
    if (at_once == 0) return;
    uint64_t commit = 0, listed = 0;
    for (const TableSpec& t : model_.tables) {
      const uint64_t rows = RowsHere(t), of_shard = CeilDiv(rows, shards_);
      const uint64_t touched = t.kind == TableKind::kDense
                                   ? rows
                                   : std::min(rows, CeilDiv(KeysOf(t, step_keys_), servers_));
      commit += touched * (8 + RowBytes(t));
      listed += shards_ * std::min(of_shard, std::max(kListedRows, of_shard / 4));
    }
    const uint64_t all = at_once * AllBytes();
    need.parts.push_back({"snapshots while they are written",
                          2 * std::min(shards_ * kHeldBytes + at_once * commit, all) +
                              at_once * (std::min(shards_ * 2 * kPieceBytes, 2 * AllBytes()) +
                                         shards_ * kStagingBytes) +
                              (bsp_ && logged_ ? MessageBytes(step_keys_) : 0),
                          "2 x min(shards x 64 MiB + rows of a commit, all rows), and pieces"});
    if (checkpoints && spec_.checkpoint().full_every() > 1) {
      need.parts.push_back({"lists of changed rows", 4 * 8 * listed,
                            "4 x 8 x max(65536, rows / 4) a table and shard"});
    }
  }

  uint64_t DiskBytes() const {
    const uint64_t all = AllBytes();
    uint64_t bytes = 2 * BytesBelow(BytesOfTables());
    if (logged_) bytes += BytesOf(spec_.storage().log_bytes_per_server()) + all + all / shards_;
    return bytes;
  }

  const JobSpec& spec_;
  const ModelTables& model_;
  const uint64_t servers_, workers_;
  const uint64_t shards_;
  const bool bsp_, logged_;
  const LineFeatures features_;
  const uint64_t of_line_;                  // the most of all fields
  const std::vector<uint64_t> field_rows_;  // guessed, by field
  const uint64_t rows_;
  uint64_t push_keys_ = 0, step_keys_ = 0;
};

}  // namespace

uint64_t GuessRows(uint64_t occurrences) {
  return std::min(occurrences, kFirstRows + occurrences / kOccurrencesOfRow);
}

uint32_t ShardsOfServer(const JobSpec& spec, uint32_t servers, uint32_t cores) {
  const uint32_t wanted = spec.storage().shards_per_server();
  return std::clamp<uint32_t>(wanted == 0 ? std::max<uint32_t>(4, cores) : wanted, 1,
                              std::max<uint32_t>(1, spec.storage().partitions() / servers));
}

ServerNeed NeedOfServer(const JobSpec& spec, const DataSize& data, uint32_t shards) {
  const StorageSpec& storage = spec.storage();
  const uint64_t gpu = BytesOf(storage.gpu_bytes_per_server());
  const bool on_host = storage.gpu_backend() == "host";
  ServerNeed need;
  need.least.set_dram_bytes(BytesOf(storage.dram_bytes_per_server()) + (on_host ? gpu : 0));
  need.least.set_gpu_bytes(on_host ? 0 : gpu);
  need.likely = need.least;
  if (data.lines == 0) return need;
  const auto model = MakeModelTables(spec, data.fields, data.numeric);
  if (!model.ok()) return need;  // no server opens it
  Sum(spec, *model, data, std::max(1u, shards)).Fill(need);
  return need;
}

std::string BinarySize(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit < 5) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? absl::StrCat(bytes, " B") : absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string NeedText(const MemoryNeed& need) {
  std::string text;
  const auto add = [&text](uint64_t bytes, absl::string_view what) {
    if (bytes == 0) return;
    absl::StrAppend(&text, text.empty() ? "" : ", ", BinarySize(bytes), " of ", what);
  };
  add(need.dram_bytes(), "memory");
  add(need.disk_bytes(), "disk");
  add(need.gpu_bytes(), "GPU memory");
  return text.empty() ? "nothing" : text;
}

}  // namespace strata
