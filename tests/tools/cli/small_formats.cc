#include "tests/tools/cli/small_formats.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace strata {
namespace {

// A line of criteo, of which each column has a value; `i` makes lines differ.
std::string CriteoLine(int i, char delimiter) {
  std::vector<std::string> columns = {absl::StrCat(i % 2)};
  for (int n = 1; n <= 13; ++n) columns.push_back(absl::StrCat(n * i % 7));
  for (int c = 1; c <= 26; ++c) columns.push_back(absl::StrCat("v", c * i % 5));
  return absl::StrJoin(columns, std::string(1, delimiter));
}

std::string CriteoHeader() {
  std::vector<std::string> columns = {"Label"};
  for (int n = 1; n <= 13; ++n) columns.push_back(absl::StrCat("I", n));
  for (int c = 1; c <= 26; ++c) columns.push_back(absl::StrCat("C", c));
  return absl::StrJoin(columns, ",");
}

}  // namespace

void WriteSmallData(const User& user) {
  std::string criteo, criteo_csv = CriteoHeader() + "\n", libfm, libffm, csv = "y,n,c,d,t\n";
  for (int i = 1; i <= 8; ++i) {
    absl::StrAppend(&criteo, CriteoLine(i, '\t'), "\n");
    absl::StrAppend(&criteo_csv, CriteoLine(i, ','), "\n");
    absl::StrAppend(&libfm, i % 2);
    absl::StrAppend(&libffm, i % 2);
    for (int f = 0; f < 2 + i % 4; ++f) {  // fields 0, 1, 2, 5 and 6
      absl::StrAppend(&libfm, " ", 10 * f + i, ":1");
      absl::StrAppend(&libffm, " ", f < 3 ? f : f + 2, ":", i + f, ":0.5");
    }
    absl::StrAppend(&libfm, "\n");
    absl::StrAppend(&libffm, "\n");
    if (i == 5) {  // without values
      absl::StrAppend(&csv, "1,,,d1,\n");
    } else {
      absl::StrAppend(&csv, i % 2, ",", 0.5 * i, ",c", i % 3, ",d", i % 4, ",t|c", i % 2, "\n");
    }
  }
  user.Write("train.libfm", libfm + "2 1:1 2:1 3:1 4:1 5:1 6:1 7:1\n");
  user.Write("train.libffm", libffm + "2 9:1:1\n");
  user.Write("train.tsv", criteo);
  user.Write("criteo.csv", criteo_csv);
  user.Write("train.csv", csv);
}

void WriteSmallJob(const User& user, const std::string& name, const std::string& model,
                   const std::string& data) {
  user.Write(name + ".yaml",
             absl::StrCat("apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: ", name,
                          "}\nspec:\n  data: ", data, "\n  model: ", model,
                          "\n  training: {mode: bsp, lanes: 2, batchSize: 4, epochs: 1}\n"
                          "  checkpoint: {directory: ",
                          name, "}\n"));
}

}  // namespace strata
