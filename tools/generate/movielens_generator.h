// Made-up visits of users to items, with histories, two labels and weights, of known quality.
#ifndef STRATA_TOOLS_GENERATE_MOVIELENS_GENERATOR_H_
#define STRATA_TOOLS_GENERATE_MOVIELENS_GENERATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata {

struct MovielensGeneratorOptions {
  uint64_t rows = 0;
  // Rows before are made and not written, for users remember what they clicked: rows 0 .. N-1 and
  // N .. N+M-1 make a train and a held-out file of one teacher.
  uint64_t first_row = 0;
  uint32_t users = 2'000;
  uint32_t items = 1'000;      // at least 64
  uint32_t most_history = 50;  // clicked items that a row tells, 1 to 4096
  uint64_t seed = 1;
};

// What is known of a row.
struct MovielensRow {
  double click_probability = 0;  // by the teacher
  bool clicked = false;
  double mean_rating = 0;  // by the teacher
  bool rated = false;
  double rating = 0;  // 0.5 to 5, in halves
};

// Makes rows one after another. One thread.
//
// Every item has one of 8 genres and one of two flavours in it; every user follows a few genres
// (tags). clicked_items are the items that the user clicked before this row, oldest first (from a
// few that the user begins with). The teacher's logit of a click is a constant plus: a weight of
// the user and of the item; a bonus where the user follows the item's genre; the negative logarithm
// of the price; and the affinity, to which of the history only items of the row's own genre count:
// those of the item's flavour for it, the others against it, recent ones more. So a model must look
// at the history with the item in view (Zhou et al., Deep Interest Network, KDD 2018); a mean over
// the whole history mixes the genres. The rating's mean is a quality of the item, a leniency of the
// user, and the affinity; what a user did not click is often left without a rating (an empty
// label). Weights are drawn by themselves: .5, 1 or 2. Missing: one in sixteen prices, and tags of
// users who follow nothing.
class MovielensGenerator {
 public:
  // INVALID_ARGUMENT names the option. `rows` and `first_row` are not used.
  static absl::StatusOr<std::unique_ptr<MovielensGenerator>> Make(
      const MovielensGeneratorOptions& options);
  virtual ~MovielensGenerator() = default;

  // user_id,item_id,clicked_items,tags,price,clicked,rating,weight and a newline.
  static const char* Header();
  // Appends the next row, from row 0 on, as a csv line with its newline.
  virtual MovielensRow AppendRow(std::string* out) = 0;
};

// Of the teacher's own predictions: the best that any model can expect.
struct MovielensResult {
  uint64_t rows = 0;
  uint64_t bytes = 0;
  uint64_t clicks = 0;
  uint64_t ratings = 0;
  double click_auc = 0;  // exact up to kAucRows (criteo_generator.h) rows, else of a sample
  double click_logloss = 0;
  double rating_auc = 0;  // of a rating of at least 4
  double rating_mse = 0;
  double rating_mae = 0;
  bool to_device = false;  // the rows went to standard output, a device or a pipe
};

// Where the teacher's quality of the file `path` lies: "_NAME.teacher.json" beside it. A folder or
// a glob of spec.data leaves out names that begin so.
std::string TeacherPath(const std::string& path);

// Writes the header and rows first_row .. first_row + rows - 1 to `path`, and what is known of the
// teacher to TeacherPath(path), unless `path` is no file; both as GenerateCriteo
// (criteo_generator.h) writes its file.
absl::StatusOr<MovielensResult> GenerateMovielens(
    const MovielensGeneratorOptions& options, const std::string& path,
    const std::function<void(uint64_t rows_done)>& progress = nullptr);

}  // namespace strata

#endif  // STRATA_TOOLS_GENERATE_MOVIELENS_GENERATOR_H_
