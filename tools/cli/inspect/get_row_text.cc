#include "tools/cli/inspect/get_row_text.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

std::string Floats(const std::vector<float>& values) {
  std::string text;
  for (float v : values) absl::StrAppendFormat(&text, " %.9g", v);
  return text;
}

std::string LifeText(const RowLife& life, bool exists) {
  if (!exists) {
    if (life.min_steps == 0) return "";
    return absl::StrCat("waits for a row: ", life.waiting_steps, " of ", life.min_steps,
                        " steps\n");
  }
  std::string text = absl::StrCat("idle for ", life.idle_steps, " steps");
  if (life.score) absl::StrAppendFormat(&text, ", score %.9g", *life.score);
  if (!life.removed_by.empty()) {
    absl::StrAppend(&text, "; the rule ", life.removed_by, " takes it when it looks");
  }
  return text + "\n";
}

Json LifeJson(const RowLife& life, bool exists) {
  if (!exists) {
    if (life.min_steps == 0) return Json::object();
    return Json{{"waitingSteps", life.waiting_steps}, {"minSteps", life.min_steps}};
  }
  Json json{{"idleSteps", life.idle_steps}};
  if (life.score) json["score"] = *life.score;
  json["removedBy"] = life.removed_by.empty() ? Json(nullptr) : Json(life.removed_by);
  return json;
}

// As a job file has the bounds.
std::string BucketText(const NumberBucket& bucket) {
  if (bucket.missing) return "the bucket of lines without a number";
  const bool lower = std::isfinite(bucket.lower), upper = std::isfinite(bucket.upper);
  std::string text = "in the bucket";
  if (lower) absl::StrAppendFormat(&text, " from %.15g", bucket.lower);
  if (upper) absl::StrAppendFormat(&text, "%s below %.15g", lower ? " to" : "", bucket.upper);
  if (lower && !upper) text += " on";
  if (!lower && !upper) text += " of all numbers";
  return text;
}

Json BucketJson(const NumberBucket& bucket) {
  if (bucket.missing) return nullptr;
  const auto bound = [](double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); };
  return Json{{"from", bound(bucket.lower)}, {"below", bound(bucket.upper)}};
}

std::string Hex(uint64_t number) { return absl::StrFormat("0x%016x", number); }

}  // namespace

std::string RowText(const RowReport& row) {
  std::string text = absl::StrCat("table ", row.table, ", key ", row.key.value, ", position ",
                                  Hex(row.position.value), ", partition ", row.partition, "\n");
  if (row.category.has_value()) {
    absl::StrAppend(&text, "field ", row.category->field, " (", row.category->name, ")");
    const bool has = row.category->line.value_or(0) > 0;
    if (const auto& bucket = row.category->bucket) {
      absl::StrAppend(&text, ", \"", row.category->hashed, "\" is ", BucketText(*bucket));
    } else if (has || row.category->is_hashed) {
      absl::StrAppend(&text, ", \"", row.category->hashed, "\" is ",
                      has ? absl::StrCat("value ", *row.category->line, " of the vocabulary")
                      : row.category->line ? std::string("out of the vocabulary, and hashed")
                                           : std::string("hashed"));
      if (row.category->is_shared) text += ": other values that are have this row, too";
    }
    text += "\n";
  }
  if (row.tensor.has_value()) {
    absl::StrAppend(&text, "tensor ", row.tensor->tensor, ", elements ", row.tensor->first_element,
                    " to ", row.tensor->first_element + row.tensor->elements - 1, "\n");
  }
  if (!row.checkpoint.empty()) {
    absl::StrAppend(&text, "checkpoint ", row.checkpoint, ", step ", row.step, "\n");
    if (row.exists) {
      const bool before = row.last_step < 0;
      absl::StrAppend(&text, before ? "last touched " : "last touched by step ",
                      before ? -row.last_step : row.last_step,
                      before ? " steps before the job, " : ", ", row.updates, " updates\n");
    } else {
      absl::StrAppend(&text, "no row: reads as its initial value\n");
    }
    if (row.life) absl::StrAppend(&text, LifeText(*row.life, row.exists));
  } else {
    absl::StrAppend(&text, "server ", row.server, ", shard ", row.shard, ", clock ", row.clock,
                    "\n");
    if (row.initial) {
      absl::StrAppend(&text, "equals the initial value: the key may have no row\n");
    }
  }
  for (const RowSegment& segment : row.segments) {
    absl::StrAppend(&text, segment.weights.name, ":", Floats(segment.weights.values), "\n");
    for (const NamedFloats& state : segment.state) {
      absl::StrAppend(&text, "  ", state.name, ":", Floats(state.values), "\n");
    }
  }
  return text;
}

std::string RowJson(const RowReport& row) {
  Json json{{"table", row.table},
            {"key", absl::StrCat(row.key.value)},
            {"position", Hex(row.position.value)},
            {"partition", row.partition}};
  if (row.category.has_value()) {
    json["field"] = row.category->field;
    json["fieldName"] = row.category->name;
    if (row.category->is_hashed) json["hashed"] = row.category->hashed;
    if (row.category->bucket) json["bucket"] = BucketJson(*row.category->bucket);
    if (row.category->is_shared) json["outOfVocabulary"] = true;
    if (row.category->line) json["vocabularyLine"] = *row.category->line;
  }
  if (row.tensor.has_value()) {
    json["tensor"] = row.tensor->tensor;
    json["firstElement"] = row.tensor->first_element;
  }
  if (!row.checkpoint.empty()) {
    json["checkpoint"] = row.checkpoint;
    json["step"] = row.step;
    json["exists"] = row.exists;
    json["lastStep"] = row.last_step;
    json["updates"] = row.updates;
    if (row.life) json["lifeCycle"] = LifeJson(*row.life, row.exists);
  } else {
    json["server"] = row.server;
    json["shard"] = row.shard;
    json["clock"] = row.clock;
    json["initialValue"] = row.initial;
  }
  json["segments"] = Json::array();
  for (const RowSegment& segment : row.segments) {
    Json one{{"name", segment.weights.name}, {"weights", segment.weights.values}};
    if (!row.checkpoint.empty()) {
      one["state"] = Json::object();
      for (const NamedFloats& state : segment.state) one["state"][state.name] = state.values;
    }
    json["segments"].push_back(std::move(one));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace strata
