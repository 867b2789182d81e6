#include "tools/cluster/export/index.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "tools/cluster/export/folder.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

Json InitializerJson(const InitializerSpec& spec) {
  switch (spec.type) {
    case InitializerType::kZero:
      return Json{{"type", "zero"}};
    case InitializerType::kUniform:
      return Json{{"type", "uniform"}, {"scale", spec.scale}};
    case InitializerType::kNormal:
      return Json{{"type", "normal"}, {"scale", spec.scale}};
  }
  return nullptr;
}

Json HashedJson(const ExportPlan& plan, const TableSpec& table, uint32_t index) {
  Json json{{"name", table.name}, {"kind", "hashed"}, {"order", "position"}};
  json["segments"] = Json::array();
  for (const SegmentSpec& s : table.segments) {
    json["segments"].push_back(
        Json{{"name", s.name}, {"dim", s.dim}, {"initializer", InitializerJson(s.initializer)}});
  }
  json["parts"] = Json::array();
  for (const ExportBlock& block : plan.blocks) {
    if (block.table != index) continue;
    if (block.removed) {
      json["removed"] = Json{{"keys", block.rows}, {"array", block.arrays[0].name}};
      continue;
    }
    Json arrays = Json::array();
    for (const ExportArray& a : block.arrays) arrays.push_back(a.name);
    json["parts"].push_back(Json{{"rows", block.rows}, {"arrays", arrays}});
  }
  return json;
}

Json DenseJson(const ExportPlan& plan, const ModelTables& tables, uint32_t index) {
  const TableSpec& table = tables.tables[index];
  Json json{{"name", table.name}, {"kind", "dense"}, {"rowDim", table.dim()}};
  json["tensors"] = Json::array();
  for (const ExportBlock& block : plan.blocks) {
    if (block.table != index) continue;
    Json arrays = Json::array();
    for (const ExportArray& a : block.arrays) arrays.push_back(a.name);
    json["tensors"].push_back(
        Json{{"name", tables.tensor(*block.tensor).name}, {"arrays", arrays}});
  }
  return json;
}

// What a delta's numbers of tables mean; it has no arrays.
Json NumberedTables(const ModelTables& tables) {
  Json json = Json::array();
  for (const TableSpec& table : tables.tables) {
    const bool hashed = table.kind == TableKind::kHashed;
    json.push_back(Json{
        {"name", table.name}, {"kind", hashed ? "hashed" : "dense"}, {"number", table.id.value}});
  }
  return json;
}

Json Contents(const ExportPlan& plan, const ModelTables& tables,
              const ExportedCheckpoint& checkpoint,
              const std::map<std::string, uint32_t>& checksums) {
  const Manifest& manifest = checkpoint.manifest;
  const JobSpec& spec = manifest.job().spec();
  Json json{{"format", kExportMark},
            {"version", 1},
            {"job", manifest.job().metadata().name()},
            {"checkpoint", checkpoint.folder},
            {"step", manifest.step()},
            {"modelHash", manifest.model_hash()},
            {"model", spec.model().type()},
            {"seed", spec.training().seed()},
            {"hashSeed", spec.model().hash_seed()},
            {"fields", manifest.fields()},
            {"numeric", manifest.numeric()}};
  if (checkpoint.since != nullptr) {
    json["since"] =
        Json{{"step", checkpoint.since->step()}, {"modelHash", checkpoint.since->model_hash()}};
  }
  json["tables"] = Json::array();
  if (plan.format == ExportFormat::kDelta) json["tables"] = NumberedTables(tables);
  for (uint32_t t = 0; t < tables.tables.size(); ++t) {
    bool used = false;
    for (const ExportBlock& block : plan.blocks) used |= block.table == t;
    if (!used) continue;
    json["tables"].push_back(tables.tables[t].kind == TableKind::kHashed
                                 ? HashedJson(plan, tables.tables[t], t)
                                 : DenseJson(plan, tables, t));
  }
  json["arrays"] = Json::array();
  for (const ExportBlock& block : plan.blocks) {
    for (const ExportArray& a : block.arrays) {
      json["arrays"].push_back(Json{{"name", a.name},
                                    {"file", plan.files[a.file].name},
                                    {"dtype", TypeName(a.type, plan.format)},
                                    {"shape", a.shape},
                                    {"offset", a.offset},
                                    {"bytes", a.bytes},
                                    {"crc32c", absl::StrFormat("%08x", checksums.at(a.name))}});
    }
  }
  json["files"] = Json::array();
  for (const ExportFile& f : plan.files) {
    json["files"].push_back(Json{{"name", f.name}, {"bytes", f.bytes}});
  }
  return json;
}

}  // namespace

std::string ExportIndexText(const ExportPlan& plan, const ModelTables& tables,
                            const ExportedCheckpoint& checkpoint,
                            const std::map<std::string, uint32_t>& checksums) {
  Json json = Contents(plan, tables, checkpoint, checksums);
  if (plan.format == ExportFormat::kSafetensors) {
    Json weights = Json::object();
    for (const ExportBlock& block : plan.blocks) {
      for (const ExportArray& a : block.arrays) weights[a.name] = plan.files[a.file].name;
    }
    json = Json{{"metadata", Json{{"total_size", plan.DataBytes()}, {"strata", json}}},
                {"weight_map", weights}};
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace strata
