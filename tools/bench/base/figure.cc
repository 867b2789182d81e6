#include "tools/bench/base/figure.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace strata::bench {
namespace {

nlohmann::json Optional(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

std::optional<double> Ratio(double value, const std::optional<double>& base) {
  if (!base || *base == 0) return std::nullopt;
  return value / *base;
}

std::string Cell(const std::optional<double>& value, const char* format) {
  if (!value) return "-";
  return std::string(format) == "x" ? absl::StrFormat("%.2fx", *value)
                                    : absl::StrFormat("%.4g", *value);
}

}  // namespace

std::string ToJson(const Figure& f) {
  nlohmann::ordered_json json;
  json["bench"] = f.bench;
  json["name"] = f.name;
  json["value"] = f.value;
  json["unit"] = f.unit;
  json["limit"] = Optional(f.limit);
  json["ratio"] = Optional(Ratio(f.value, f.limit));
  json["peer"] = Optional(f.peer);
  json["peer_ratio"] = Optional(Ratio(f.value, f.peer));
  return json.dump();
}

std::string TableHead() {
  return absl::StrFormat("%-14s %-34s %10s %-12s %10s %7s  %-22s %10s %8s  %s\n", "bench", "figure",
                         "value", "unit", "limit", "ratio", "(limit)", "peer", "ratio", "(peer)");
}

std::string ToRow(const Figure& f) {
  return absl::StrFormat("%-14s %-34s %10.4g %-12s %10s %7s  %-22s %10s %8s  %s\n", f.bench, f.name,
                         f.value, f.unit, Cell(f.limit, ""), Cell(Ratio(f.value, f.limit), "x"),
                         f.limit_name, Cell(f.peer, ""), Cell(Ratio(f.value, f.peer), "x"),
                         f.peer_name);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

}  // namespace strata::bench
