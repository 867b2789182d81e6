#include "tools/cli/inspect/get_row_command.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/partition.h"
#include "proto/job/tables/model_tables.h"
#include "proto/runtime/transport/grpc_transport.h"
#include "proto/runtime/transport/keepalive.h"
#include "proto/runtime/transport/process_tls.h"
#include "proto/runtime/transport/scheduler_client.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "storage/row/layout.h"
#include "tools/cli/base/job_text.h"
#include "tools/cli/base/job_watch.h"
#include "tools/cli/checkpoint/commands.h"
#include "tools/cli/context/connection.h"
#include "tools/cli/inspect/get_row_key.h"
#include "tools/cli/inspect/get_row_text.h"
#include "tools/cluster/checkpoint/row_life.h"
#include "tools/cluster/checkpoint/rows.h"
#include "tools/cluster/export/plan.h"
#include "tools/cluster/live/live_row.h"

namespace strata {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(5);

absl::Status CheckOptions(const GetRowOptions& o) {
  if (o.checkpoint.empty() == o.job.empty()) {
    return absl::InvalidArgumentError("get-row: give --checkpoint DIR or --job JOB (one of them)");
  }
  if (o.field.empty() == !o.value.empty()) {
    return absl::InvalidArgumentError("get-row: --field and --value go together");
  }
  const int ways = !o.key.empty() + !o.field.empty() + !o.position.empty();
  if (ways != 1) {
    return absl::InvalidArgumentError(
        "get-row: name the row by --key, by --field and --value, or by --position (one of them)");
  }
  return absl::OkStatus();
}

// Which row is meant: everything of the report that does not need the row. `saved`: of the
// checkpoint or job that has it, which messages call `who`.
absl::StatusOr<RowReport> Identify(const GetRowOptions& o, const JobSpec& spec,
                                   const ModelTables& tables, uint32_t number_of_table,
                                   const Schema& saved, absl::string_view who) {
  const TableSpec& table = tables.tables[number_of_table];
  RowReport row;
  row.table = table.name;
  if (!o.field.empty()) {
    if (table.kind == TableKind::kDense) {
      return absl::InvalidArgumentError(
          absl::StrCat("table ", table.name, " has no features; name a row by --position"));
    }
    auto category = KeyOfCategory(spec, o.field, o.value.front(), tables.fields, &saved, who);
    if (!category.ok()) return category.status();
    row.key = category->key;
    row.category = *std::move(category);
  } else {
    const bool by_key = !o.key.empty();
    auto number = ParseNumber64(by_key ? "--key" : "--position", by_key ? o.key : o.position);
    if (!number.ok()) return number.status();
    row.key = by_key ? Key(*number) : table.KeyAtPosition(Position(*number));
  }
  row.position = table.PositionOfKey(row.key);
  row.partition = Partitioning(spec.storage().partitions()).Of(row.position).value;
  if (table.kind == TableKind::kDense) {
    auto tensor = TensorRowOf(table, row.key);
    if (!tensor.ok()) return tensor.status();
    row.tensor = *std::move(tensor);
  }
  return row;
}

std::vector<float> FloatsAt(const uint8_t* row, uint32_t first, uint32_t count) {
  std::vector<float> out(count);
  std::memcpy(out.data(), row + size_t{first} * 4, size_t{count} * 4);
  return out;
}

// Weights (and, with `state`, the optimizer's state) by segment, without padding.
void FillSegments(const TableSpec& table, const uint8_t* bytes, bool state, RowReport& row) {
  const storage::RowLayout layout = storage::RowLayout::For(table);
  for (size_t s = 0; s < layout.segments.size(); ++s) {
    const storage::SegmentLayout& place = layout.segments[s];
    const auto shown = [&](uint32_t floats) {
      return row.tensor && floats == place.dim ? row.tensor->elements : floats;
    };
    RowSegment segment;
    segment.weights = {table.segments[s].name,
                       FloatsAt(bytes, place.weight_offset, shown(place.dim))};
    uint32_t at = place.state_offset;
    if (state) {
      for (const StateArray& a :
           StateArrays(table.segments[s].optimizer.type, place.dim, place.state_floats)) {
        segment.state.push_back({a.name, FloatsAt(bytes, at, shown(a.floats))});
        at += a.floats;
      }
    }
    row.segments.push_back(std::move(segment));
  }
}

absl::StatusOr<RowReport> FromCheckpoint(const GetRowOptions& o, const std::string& directory) {
  auto rows = CheckpointRows::Open(directory);
  if (!rows.ok()) return rows.status();
  auto table = FindRowTable(rows->tables(), rows->manifest().job().spec(), o.table, o.field);
  if (!table.ok()) return table.status();
  const TableSpec& spec = rows->tables().tables[*table];
  auto row = Identify(o, rows->manifest().job().spec(), rows->tables(), *table,
                      rows->manifest().schema(), "the checkpoint");
  if (!row.ok()) return row.status();
  std::vector<uint8_t> bytes = rows->InitialRow(*table, row->key);
  absl::Status read =
      rows->ReadRange(*table, row->position, row->position, [&](Position, const uint8_t* found) {
        std::memcpy(bytes.data(), found, bytes.size());
        row->exists = true;
        return absl::OkStatus();
      });
  if (!read.ok()) return read;
  storage::RowMeta meta;
  std::memcpy(&meta, bytes.data() + rows->layout(*table).meta_offset(), sizeof(meta));
  row->checkpoint = rows->folder();
  row->step = rows->manifest().step();
  row->last_step = storage::StepOf(meta.last_step);
  row->updates = meta.updates;
  auto life = LifeOf(*rows, *table, row->position, row->exists ? bytes.data() : nullptr);
  if (!life.ok()) return life.status();
  row->life = *life;
  FillSegments(spec, bytes.data(), true, *row);
  return row;
}

absl::StatusOr<RowReport> FromServers(const GetRowOptions& o, const JobShards& shards,
                                      const KnownLease& lease,
                                      const std::shared_ptr<ProcessTls>& tls) {
  const JobSpec& spec = shards.spec().spec();
  if (!shards.has_shape() || shards.shards().empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", shards.name(), " is ", StateName(shards.state()),
        ": no server holds shards of it yet; `strata status ", shards.name(), "` says why"));
  }
  auto tables = MakeModelTables(spec, shards.shape().fields(), shards.shape().numeric());
  if (!tables.ok()) return tables.status();
  auto index = FindRowTable(*tables, spec, o.table, o.field);
  if (!index.ok()) return index.status();
  const TableSpec& table = tables->tables[*index];
  auto row = Identify(o, spec, *tables, *index, shards.schema(), "the job");
  if (!row.ok()) return row.status();
  auto transport = MakeGrpcTransport({.lease = &lease, .tls = tls});
  auto live = ReadLiveRow(shards, table, row->key, *transport, SelfOf(tls), kCallTimeout);
  if (!live.ok()) return live.status();
  row->server = live->server;
  row->shard = live->shard;
  row->clock = live->clock;
  const storage::RowLayout layout = storage::RowLayout::For(table);
  std::vector<float> initial(layout.dim);
  storage::InitialWeights(table, layout, spec.training().seed(), row->key, initial.data());
  row->initial = std::memcmp(initial.data(), live->weights.data(), initial.size() * 4) == 0;
  FillSegments(table, reinterpret_cast<const uint8_t*>(live->weights.data()), false, *row);
  return row;
}

absl::StatusOr<RowReport> FromJob(const GetRowOptions& o) {
  const auto way = FindWay(o.cluster);
  if (!way.ok()) return way.status();
  KnownLease lease;
  const auto client = ConnectScheduler(*way, &lease);
  absl::StatusOr<RowReport> row = absl::UnknownError("");
  // A shard map that changed on the way is asked for once more.
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto shards = client->GetShards(ParseJobRef(o.job), kCallTimeout);
    if (!shards.ok()) return shards.status();
    if (IsFinal(shards->state())) {
      auto where = CheckpointOfJob(o.cluster, o.job);
      if (!where.ok()) return where.status();
      std::fprintf(stderr, "job %s is %s: from its checkpoint\n", shards->name().c_str(),
                   StateName(shards->state()).c_str());
      return FromCheckpoint(o, *where);
    }
    row = FromServers(o, *shards, lease, way->tls);
    if (!absl::IsFailedPrecondition(row.status())) break;
  }
  return row;
}

}  // namespace

ExitCode RunGetRow(const GetRowOptions& options) {
  if (absl::Status s = CheckOptions(options); !s.ok()) return ReportError(s);
  auto row = options.job.empty() ? FromCheckpoint(options, options.checkpoint) : FromJob(options);
  if (!row.ok()) return ReportError(row.status());
  std::printf("%s%s", options.json ? RowJson(*row).c_str() : RowText(*row).c_str(),
              options.json ? "\n" : "");
  return kExitOk;
}

}  // namespace strata
