#include "tests/golden/golden_json.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>
#include <utility>

#include "tests/golden/golden_file.h"

namespace strata::golden {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kWithout[] = "without=";

// A value of that kind, masked; of another kind, as it is, so that it is no longer as expected.
Json MaskedAs(const std::string& kind, const Json& value) {
  if (kind == "list") return value.is_array() ? Json("<list>") : value;
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& element : value) list.push_back(MaskedAs(kind, element));
    return list;
  }
  if (kind.back() == '?') {
    const std::string some = kind.substr(0, kind.size() - 1);
    const bool fits = value.is_null() || MaskedAs(some, value) != value;
    return fits ? Json("<" + some + " or null>") : value;
  }
  const bool fits = (kind == "number" && value.is_number()) ||
                    (kind == "text" && value.is_string()) || (kind == "flag" && value.is_boolean());
  return fits ? Json("<" + kind + ">") : value;
}

bool IsLeftOut(const std::string& kind, const Json& element) {
  std::istringstream reasons(kind.substr(sizeof(kWithout) - 1));
  for (std::string reason; std::getline(reasons, reason, ',');) {
    if (element.value("reason", "") == reason) return true;
  }
  return false;
}

}  // namespace

Masks::Masks(const std::string& folder)
    : folders_{std::filesystem::canonical(folder).string(), folder} {
  std::istringstream in(ReadWhole(SourcePath("masks.txt")));
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::string replace = "replace ", arrow = " => ";
    if (line.rfind(replace, 0) == 0) {
      const size_t at = line.find(arrow);
      REQUIRE(at != std::string::npos);
      replacements_.emplace_back(std::regex(line.substr(replace.size(), at - replace.size())),
                                 line.substr(at + arrow.size()));
      continue;
    }
    std::istringstream words(line);
    Rule rule;
    INFO(line);
    const bool three = static_cast<bool>(words >> rule.command >> rule.key >> rule.kind);
    REQUIRE(three);
    rules_.push_back(rule);
  }
}

std::string Masks::KindOf(const std::string& command, const std::string& key) const {
  std::string kind;
  for (const Rule& rule : rules_) {
    if (rule.key != key) continue;
    const size_t prefix = rule.command.size() - 1;
    const bool fits = rule.command.back() == '*'
                          ? command.compare(0, prefix, rule.command, 0, prefix) == 0
                          : command == rule.command;
    if (fits) kind = rule.kind;
  }
  return kind;
}

std::string Masks::Replaced(std::string text) const {
  for (const std::string& folder : folders_) {
    for (size_t at; (at = text.find(folder)) != std::string::npos;) {
      text.replace(at, folder.size(), "$DIR");
    }
  }
  for (const auto& [from, to] : replacements_) text = std::regex_replace(text, from, to);
  return text;
}

Json Masks::Mask(const std::string& command, const std::string& key, const Json& value) const {
  const std::string kind = KindOf(command, key);
  const bool without = kind.rfind(kWithout, 0) == 0;
  if (!kind.empty() && kind != "sorted" && !without) return MaskedAs(kind, value);
  if (value.is_string()) return Replaced(value.get<std::string>());
  Json result = value;
  if (value.is_object()) {
    for (const auto& [name, inner] : value.items()) result[name] = Mask(command, name, inner);
  } else if (value.is_array()) {
    result = Json::array();
    for (const Json& element : value) {
      if (without && IsLeftOut(kind, element)) continue;
      result.push_back(Mask(command, "", element));
    }
    if (kind == "sorted") {
      std::sort(result.begin(), result.end(),
                [](const Json& a, const Json& b) { return a.dump() < b.dump(); });
    }
  }
  return result;
}

std::string Masks::Apply(const std::string& command, const std::string& out) const {
  Json lines = Json::array();
  std::istringstream in(out);
  for (std::string line; std::getline(in, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    INFO(command << " printed: " << line);
    CHECK(!json.is_discarded());
    lines.push_back(json);
  }
  lines = Mask(command, ".", lines);
  if (lines.size() == 1) return lines[0].dump(1);
  std::string text;
  for (const Json& line : lines) text += line.dump() + '\n';
  return text;
}

}  // namespace strata::golden
