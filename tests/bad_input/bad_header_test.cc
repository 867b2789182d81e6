// Lines with another header, or without one, whose columns are not where the job's numbers say, as
// a user meets them.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/bad_input/user.h"

namespace strata {
namespace {

// Over train.csv and eval.csv. `columns`: spec.data.columns; `fields`: a line of the spec, or none.
void WriteJob(const User& user, const std::string& columns, const std::string& fields) {
  user.Write("job.yaml",
             absl::StrCat("apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: job}\nspec:\n"
                          "  data: {format: csv, train: [train.csv], eval: [eval.csv], columns: {",
                          columns, "}}\n", fields,
                          "  model: {type: lr}\n  training: {lanes: 2, batchSize: 4}\n"
                          "  checkpoint: {directory: c}\n"));
}

// Columns 0 and 2 are read, nobody names column 1, and the label may lie behind them.
TEST_CASE("lines without a header that lack a column are told by file, line and both counts",
          "[bad_input]") {
  User user;
  std::string lines;
  for (int i = 0; i < 32; ++i) {
    lines += "u" + std::to_string(i % 4) + ",x,i" + std::to_string(i % 7) + "," +
             std::to_string(i % 2) + "\n";
  }
  user.Write("train.csv", lines);
  user.Write("eval.csv", "u1,x,i1,1\nu2,x,i2,0\n");
  user.Write("one-less.csv", "u1,i1,1\nu2,i2,0\n");
  user.Write("one-more.csv", "u1,x,i1,1\nu2,x,i2,0,9\n");
  const std::string fields =
      "  fields: [{name: u, column: '0', kind: categorical}, "
      "{name: i, column: '2', kind: categorical}]\n";
  const std::string less =
                        "one-less.csv:1:1: found 3 columns, expected 4; without a header columns "
                        "go by their places: leave one that is not known empty",
                    more = "one-more.csv:2:1: found 5 columns, expected 4; without a header";
  for (const bool by_fields : {false, true}) {
    INFO(by_fields);
    const std::string columns = by_fields ? "" : ", categorical: ['0', '2'], ignored: ['*']";
    WriteJob(user, "header: false, label: '3'" + columns, by_fields ? fields : "");
    CHECK(user.Strata("train -f job.yaml --overwrite").exit_code == 0);
    const std::string predict = "predict --checkpoint c ";
    CHECK(user.Strata(predict + "train.csv eval.csv").exit_code == 0);
    CheckOneLine(user.Strata(predict + "one-less.csv"), 2, {less, "--max-bad-lines"});
    CheckOneLine(user.Strata(predict + "train.csv one-less.csv"), 2, {less});
    CheckOneLine(user.Strata(predict + "one-more.csv"), 2, {more});
    CheckOneLine(user.Strata(predict + "- < one-less.csv"), 2, {":1:1: found 3 columns"});
    // So it is of a day that comes later, and of held-out lines.
    CheckRefused(user,
                 "train -f job.yaml --resume --set 'spec.data.train=[train.csv, one-less.csv]'",
                 {less});
    CheckRefused(user, "train -f job.yaml --overwrite --set spec.data.eval=[one-less.csv]", {less});
  }
}

// The label is column 0, user and item are columns 1 and 3; the number is named.
TEST_CASE("a column that the job numbers is the same under each header", "[bad_input]") {
  User user;
  std::string lines;
  for (int i = 0; i < 32; ++i) {
    lines += std::to_string(i % 2) + ",u" + std::to_string(i % 4) + ",2,i" + std::to_string(i % 7) +
             "\n";
  }
  const auto write = [&](const std::string& name, const std::string& header) {
    user.Write(name, header + "\n" + lines);
    return name;
  };
  write("train.csv", "y,user,n,item");
  write("eval.csv", "y,user,n,item");
  write("swapped.csv", "y,item,n,user");
  user.Write("bare.csv", "user,n,item,city\nu1,2,i1,\n");
  user.Write("behind.csv", "y,user,city,item,n\n1,u1,,i1,2\n");
  const std::string fields =
      "  fields: [{name: u, column: '1', kind: categorical}, "
      "{name: i, column: '3', kind: categorical}, {name: n, kind: numeric}]\n";
  for (const bool by_fields : {false, true}) {
    INFO(by_fields);
    const std::string columns =
        by_fields ? "" : ", categorical: ['1', '3'], numeric: [n], ignored: ['*']";
    WriteJob(user, "label: '0'" + columns, by_fields ? fields : "");
    CHECK(user.Strata("train -f job.yaml --overwrite").exit_code == 0);
    const std::string predict = "predict --checkpoint c ";
    CHECK(user.Strata(predict + "train.csv eval.csv").exit_code == 0);
    CHECK(user.Strata(predict + "behind.csv").exit_code == 0);
    const std::string swapped =
        "\"1\" is the column \"item\", and that of the training data is \"user\"";
    CheckOneLine(user.Strata(predict + "swapped.csv"), 2,
                 {"swapped.csv:1: spec.", swapped, "of the job whose checkpoint it is"});
    CheckOneLine(user.Strata(predict + "bare.csv"), 2,
                 {"bare.csv:1: spec.", "\"0\" is the column \"user\"", "is \"y\""});
    CHECK(
        user.Strata("train -f job.yaml --overwrite --set spec.data.eval=[behind.csv]").exit_code ==
        0);
    CheckRefused(user, "train -f job.yaml --overwrite --set spec.data.eval=[swapped.csv]",
                 {"swapped.csv:1: spec.", swapped, "have a job name its columns"});
  }
}

}  // namespace
}  // namespace strata
