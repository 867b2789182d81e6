#include "tools/generate/movielens_generator.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace strata {
namespace {

std::string Rows(const MovielensGeneratorOptions& options, uint64_t count) {
  auto made = MovielensGenerator::Make(options);
  INFO(made.status().ToString());
  REQUIRE(made.ok());
  std::string text;
  for (uint64_t r = 0; r < count; ++r) (*made)->AppendRow(&text);
  return text;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  if (!text.empty() && text.back() == separator) parts.emplace_back();
  return parts;
}

std::string TempPath(const std::string& name) {
  const char* base = getenv("TEST_TMPDIR");
  return std::string(base != nullptr ? base : "/tmp") + "/strata_movielens_" + name;
}

std::string Contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST_CASE("rows are a function of the options", "[generate]") {
  MovielensGeneratorOptions options;
  const std::string text = Rows(options, 300);
  CHECK(Rows(options, 300) == text);
  CHECK(Rows(options, 100) == text.substr(0, Rows(options, 100).size()));
  options.seed = 2;
  CHECK(Rows(options, 300) != text);
}

TEST_CASE("histories are the items that were clicked before", "[generate]") {
  MovielensGeneratorOptions options;
  options.users = 5;
  options.most_history = 10;
  std::map<std::string, std::vector<std::string>> histories;
  std::set<std::string> weights;
  int without_price = 0, without_rating = 0, clicks = 0;
  const std::vector<std::string> lines = Split(Rows(options, 2000), '\n');
  for (const std::string& line : lines) {
    if (line.empty()) continue;
    const std::vector<std::string> cells = Split(line, ',');
    INFO(line);
    REQUIRE(cells.size() == 8);
    const std::vector<std::string> clicked = Split(cells[2], '|');
    auto [known, fresh] = histories.try_emplace(cells[0], clicked);
    REQUIRE(known->second == clicked);
    REQUIRE(clicked.size() <= 10);
    without_price += cells[4].empty();
    without_rating += cells[6].empty();
    weights.insert(cells[7]);
    if (cells[5] != "1") continue;
    ++clicks;
    REQUIRE_FALSE(cells[6].empty());
    if (known->second.size() == 10) known->second.erase(known->second.begin());
    known->second.push_back(cells[1]);
  }
  CHECK(histories.size() == 5);
  CHECK(weights == std::set<std::string>{"0.5", "1", "2"});
  CHECK(without_price > 60);
  CHECK(without_price < 220);
  CHECK(without_rating > 300);
  CHECK(clicks > 400);
  CHECK(clicks < 1600);
}

TEST_CASE("a file holds its rows, and the teacher's quality lies beside it", "[generate]") {
  MovielensGeneratorOptions options;
  options.rows = 20'000;
  options.first_row = 1000;
  const std::string path = TempPath("file");
  uint64_t reported = 0;
  const auto made = GenerateMovielens(options, path, [&](uint64_t done) { reported = done; });
  INFO(made.status().ToString());
  REQUIRE(made.ok());
  CHECK(reported == options.rows);
  const std::string all = Rows(options, options.first_row + options.rows);
  const std::string before = Rows(options, options.first_row);
  CHECK(Contents(path) == MovielensGenerator::Header() + all.substr(before.size()));
  CHECK(made->bytes == std::filesystem::file_size(path));
  // What the planted model is made to give.
  CHECK(made->click_auc > 0.8);
  CHECK(made->click_auc < 0.95);
  CHECK(made->click_logloss < 0.6);
  CHECK(made->rating_auc > 0.7);
  CHECK(made->rating_mse == Approx(0.25).margin(0.1));
  CHECK(static_cast<double>(made->clicks) / 20'000 > 0.25);
  CHECK(static_cast<double>(made->clicks) / 20'000 < 0.75);
  const auto json = nlohmann::json::parse(Contents(TeacherPath(path)));
  CHECK(json.at("rows") == options.rows);
  CHECK(json.at("tasks").at(0).at("label") == "clicked");
  CHECK(json.at("tasks").at(0).at("auc") == made->click_auc);
  CHECK(json.at("tasks").at(1).at("mse") == made->rating_mse);
  std::filesystem::remove(path);
}

TEST_CASE("bad options are refused by name", "[generate]") {
  MovielensGeneratorOptions options;
  const auto message = [&] {
    return std::string(GenerateMovielens(options, TempPath("bad")).status().message());
  };
  CHECK(message() == "rows: 0; at least 1 is needed");
  options.rows = 1;
  options.items = 63;
  CHECK(message() == "items: 63 is not in 64 .. 100000000");
  options.items = 64;
  options.users = 0;
  CHECK(message() == "users: 0 is not in 1 .. 100000000");
  options.users = 1;
  options.most_history = 4097;
  CHECK(message() == "history: 4097 is not in 1 .. 4096");
  CHECK_FALSE(std::filesystem::exists(TempPath("bad")));
}

}  // namespace
}  // namespace strata
