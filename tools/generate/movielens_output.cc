// GenerateMovielens: rows to a file.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "ops/natural_log.h"
#include "tools/generate/auc_sample.h"
#include "tools/generate/criteo_generator.h"
#include "tools/generate/movielens_generator.h"
#include "tools/generate/part_file.h"

namespace strata {
namespace {

constexpr size_t kWriteBytes = size_t{1} << 20;
constexpr uint64_t kMostRows = uint64_t{1} << 40;  // far beyond what anybody waits for
constexpr double kGoodRating = 4.0;

// What the teacher's predictions are worth, row by row.
class TeacherQuality {
 public:
  TeacherQuality() : click_(kAucRows), rating_(kAucRows) {}

  void Add(const MovielensRow& row, MovielensResult* result) {
    ++result->rows;
    result->clicks += row.clicked ? 1 : 0;
    logloss_ -= ops::NaturalLog(row.clicked ? row.click_probability : 1.0 - row.click_probability);
    click_.Add(static_cast<float>(row.click_probability), row.clicked);
    if (!row.rated) return;
    ++result->ratings;
    const double error = row.rating - row.mean_rating;
    squares_ += error * error;
    differences_ += std::fabs(error);
    rating_.Add(static_cast<float>(row.mean_rating), row.rating >= kGoodRating);
  }

  void Finish(MovielensResult* result) {
    result->click_auc = click_.Auc();
    result->click_logloss = logloss_ / static_cast<double>(result->rows);
    if (result->ratings == 0) return;
    result->rating_auc = rating_.Auc();
    result->rating_mse = squares_ / static_cast<double>(result->ratings);
    result->rating_mae = differences_ / static_cast<double>(result->ratings);
  }

 private:
  AucSample click_, rating_;
  double logloss_ = 0, squares_ = 0, differences_ = 0;
};

absl::Status WriteTeacher(const MovielensGeneratorOptions& o, const MovielensResult& r,
                          PartFile* file) {
  const nlohmann::ordered_json json{
      {"rows", r.rows},
      {"firstRow", o.first_row},
      {"users", o.users},
      {"items", o.items},
      {"seed", o.seed},
      {"tasks",
       {{{"label", "clicked"}, {"auc", r.click_auc}, {"logloss", r.click_logloss}},
        {{"label", "rating"},
         {"auc", r.rating_auc},
         {"mse", r.rating_mse},
         {"mae", r.rating_mae}}}}};
  if (absl::Status s = file->Write(json.dump(2) + "\n"); !s.ok()) return s;
  return file->Finish();
}

}  // namespace

std::string TeacherPath(const std::string& path) {
  const std::filesystem::path file(path);
  return (file.parent_path() / ("_" + file.filename().string() + ".teacher.json")).string();
}

absl::StatusOr<MovielensResult> GenerateMovielens(
    const MovielensGeneratorOptions& options, const std::string& path,
    const std::function<void(uint64_t rows_done)>& progress) {
  if (options.rows == 0) return absl::InvalidArgumentError("rows: 0; at least 1 is needed");
  if (options.first_row > kMostRows || options.rows > kMostRows - options.first_row) {
    return absl::InvalidArgumentError(absl::StrCat(
        "first row and rows: ", options.first_row, " and ", options.rows, " are over ", kMostRows,
        " together, and the rows before the first are made as well; give "
        "less"));
  }
  auto generator = MovielensGenerator::Make(options);
  if (!generator.ok()) return generator.status();
  PartFile file(path), teacher(TeacherPath(path));
  if (absl::Status s = file.Open(); !s.ok()) return s;
  MovielensResult result;
  result.to_device = file.to_device();
  // Held from before the rows have their name on: both are of one call.
  if (!result.to_device) {
    if (absl::Status s = teacher.Open(); !s.ok()) return s;
  }
  TeacherQuality quality;
  std::string text;
  for (uint64_t i = 0; i < options.first_row; ++i) {
    (*generator)->AppendRow(&text);
    text.clear();
  }
  text = MovielensGenerator::Header();
  for (uint64_t i = 0; i < options.rows; ++i) {
    quality.Add((*generator)->AppendRow(&text), &result);
    if (text.size() < kWriteBytes && i + 1 < options.rows) continue;
    if (absl::Status s = file.Write(text); !s.ok()) return s;
    result.bytes += text.size();
    text.clear();
    if (progress) progress(i + 1);
  }
  // One of other rows that these replace must not be taken for theirs.
  if (!result.to_device) {
    if (absl::Status s = teacher.RemoveOld(); !s.ok()) return s;
  }
  if (absl::Status s = file.Finish(); !s.ok()) return s;
  quality.Finish(&result);
  if (result.to_device) return result;
  if (absl::Status s = WriteTeacher(options, result, &teacher); !s.ok()) return s;
  return result;
}

}  // namespace strata
