#include "tools/generate/movielens_generator.h"

#include <stdlib.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/runtime/files/file_system.h"

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

// Fails the nth rename. The process's files while it lives.
class FailingRename : public FileSystem {
 public:
  explicit FailingRename(int nth) : nth_(nth) { FileSystem::ReplaceKernel(this); }
  ~FailingRename() override { FileSystem::ReplaceKernel(nullptr); }
  int Rename(const std::string& from, const std::string& to) override {
    return --nth_ == 0 ? -EIO : FileSystem::Rename(from, to);
  }

 private:
  int nth_;
};

TEST_CASE("no teacher of other rows lies beside a file", "[generate]") {
  MovielensGeneratorOptions options;
  options.rows = 50;
  const std::string path = TempPath("again");
  REQUIRE(GenerateMovielens(options, path, nullptr).ok());
  REQUIRE(std::filesystem::exists(TeacherPath(path)));
  options.seed += 1;
  for (const int nth : {1, 2}) {
    const std::string before = Contents(path);
    const FailingRename files(nth);
    CHECK_FALSE(GenerateMovielens(options, path, nullptr).ok());
    CHECK((Contents(path) == before) == (nth == 1));
    CHECK_FALSE(std::filesystem::exists(TeacherPath(path)));
  }
  std::filesystem::remove(path);
}

// The share of pairs that the scores have in order, ties by half: by sorting, not as the generator
// samples it.
double AucOf(std::vector<std::pair<double, bool>> scored) {
  std::sort(scored.begin(), scored.end());
  double wins = 0, negatives = 0, positives = 0;
  for (size_t i = 0; i < scored.size();) {
    double p = 0, n = 0;
    const double score = scored[i].first;
    for (; i < scored.size() && scored[i].first == score; ++i) (scored[i].second ? p : n) += 1;
    wins += p * (negatives + n / 2);
    positives += p;
    negatives += n;
  }
  return wins / (positives * negatives);
}

TEST_CASE("the teacher's quality is that of its predictions for the lines of the file",
          "[generate]") {
  MovielensGeneratorOptions options;
  options.rows = 5000;
  options.first_row = 300;
  options.seed = 4;
  const std::string path = TempPath("teacher");
  const auto made = GenerateMovielens(options, path);
  REQUIRE(made.ok());
  // Labels by the file, predictions by the teacher.
  const std::vector<std::string> lines = Split(Contents(path), '\n');
  auto teacher = MovielensGenerator::Make(options);
  REQUIRE(teacher.ok());
  std::string unused;
  for (uint64_t r = 0; r < options.first_row; ++r) (*teacher)->AppendRow(&unused);
  std::vector<std::pair<double, bool>> clicks, ratings;
  double logloss = 0, squares = 0, differences = 0;
  for (uint64_t r = 0; r < options.rows; ++r) {
    const MovielensRow row = (*teacher)->AppendRow(&unused);
    const std::vector<std::string> cells = Split(lines.at(1 + r), ',');
    const bool clicked = cells.at(5) == "1";
    const double p = row.click_probability;
    clicks.emplace_back(p, clicked);
    logloss -= std::log(clicked ? p : 1 - p);
    if (cells.at(6).empty()) continue;
    const double rating = std::stod(cells.at(6));
    ratings.emplace_back(row.mean_rating, rating >= 4);
    squares += (rating - row.mean_rating) * (rating - row.mean_rating);
    differences += std::fabs(rating - row.mean_rating);
  }
  const auto n = static_cast<double>(options.rows), rated = static_cast<double>(ratings.size());
  CHECK(made->ratings == ratings.size());
  // Scores are ranked as floats.
  CHECK(made->click_auc == Approx(AucOf(clicks)).epsilon(1e-6));
  CHECK(made->rating_auc == Approx(AucOf(ratings)).epsilon(1e-6));
  CHECK(made->click_logloss == Approx(logloss / n).epsilon(1e-9));
  CHECK(made->rating_mse == Approx(squares / rated).epsilon(1e-9));
  CHECK(made->rating_mae == Approx(differences / rated).epsilon(1e-9));
  std::filesystem::remove(path);
  std::filesystem::remove(TeacherPath(path));
}

// No model does better than the probabilities by which clicks were drawn: shuffled scores do worse,
// and among rows of one probability p a share of p clicks.
TEST_CASE("clicks are drawn by the teacher's probabilities", "[generate]") {
  auto teacher = MovielensGenerator::Make({});
  REQUIRE(teacher.ok());
  std::string unused;
  std::vector<double> expected(10), clicked(10), rows(10);
  for (int r = 0; r < 60'000; ++r) {
    const MovielensRow row = (*teacher)->AppendRow(&unused);
    unused.clear();
    const auto decile = static_cast<size_t>(std::min(9.0, row.click_probability * 10));
    expected[decile] += row.click_probability;
    clicked[decile] += row.clicked ? 1 : 0;
    rows[decile] += 1;
  }
  for (size_t d = 0; d < 10; ++d) {
    INFO(d << ": " << clicked[d] << " of " << rows[d]);
    CHECK(rows[d] > 1000);
    CHECK(std::fabs(clicked[d] - expected[d]) < 5 * std::sqrt(rows[d] * 0.25));
  }
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
  for (const uint64_t first : {UINT64_MAX - 5, uint64_t{1} << 40}) {
    options.first_row = first;
    CHECK(message() == "first row and rows: " + std::to_string(first) +
                           " and 1 are over 1099511627776 together, and the rows before the first "
                           "are made as well; give less");
  }
  CHECK_FALSE(std::filesystem::exists(TempPath("bad")));
}

}  // namespace
}  // namespace strata
