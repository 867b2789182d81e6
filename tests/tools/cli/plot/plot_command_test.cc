// `strata plot` on files as jobs write them.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class User {
 public:
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() + "/" + name, std::ios::binary) << text;
  }
  std::string Read(const std::string& name) const {
    return strata::Read(folder_.path() + "/" + name);
  }
  // The exit code of `strata plot`.
  int Plot(const std::string& arguments) {
    const std::string program =
        std::string(std::getenv("TEST_SRCDIR")) + "/strata/tools/cli/strata";
    const int status = std::system(absl::StrCat("cd '", folder_.path(), "' && '", program,
                                                "' plot ", arguments, " >out 2>err </dev/null")
                                       .c_str());
    out = Read("out");
    err = Read("err");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
  }

  std::string out, err;

 private:
  TempFolder folder_;
};

// Three lines of a bsp job.
std::string Run(double loss) {
  std::string text;
  for (int i = 1; i <= 3; ++i) {
    absl::StrAppend(&text, R"({"step": )", 10 * i, R"(, "loss": )", loss / i,
                    R"(, "auc": null, "examplesPerSecond": 1000.0, "examples": )", 100 * i,
                    R"(, "unixMs": )", 1000 * i, "}\n");
  }
  return text;
}

TEST_CASE("several runs are drawn in one picture", "[plot]") {
  User user;
  user.Write("bsp.jsonl", Run(3));
  user.Write("async.jsonl", Run(2));
  REQUIRE(user.Plot("bsp.jsonl async.jsonl --x examples --y loss -o curve.svg") == 0);
  CHECK(user.err.empty());
  const std::string svg = user.Read("curve.svg");
  CHECK(absl::StrContains(svg, ">bsp.jsonl</text>"));
  CHECK(absl::StrContains(svg, ">async.jsonl</text>"));
  CHECK(absl::StrContains(svg, ">300</text>"));
  // A picture is drawn anew, and goes to standard output as well; labels name its runs.
  REQUIRE(user.Plot("bsp.jsonl --label '4 lanes' --x time --y loss -o curve.svg") == 0);
  CHECK(absl::StrContains(user.Read("curve.svg"), ">4 lanes</text>"));
  REQUIRE(user.Plot("bsp.jsonl --label '4 lanes' --x time --y loss -o -") == 0);
  CHECK(user.out == user.Read("curve.svg"));
}

TEST_CASE("what is left out is told, with the line", "[plot]") {
  User user;
  user.Write("run.jsonl", Run(3) + "damaged\n" + R"({"step": 40, "loss": null})" + "\n");
  REQUIRE(user.Plot("run.jsonl --y loss -o a.svg") == 0);
  CHECK(absl::StrContains(user.err, "run.jsonl: no JSON object, left out: line 4"));
  CHECK(absl::StrContains(user.err, "run.jsonl: no number for loss, left out: line 5"));
}

TEST_CASE("what cannot be drawn is refused by name, and nothing is replaced", "[plot]") {
  User user;
  user.Write("run.jsonl", Run(3));
  user.Write("empty.jsonl", "");
  user.Write("kept.svg", "a text of mine");
  CHECK(user.Plot("run.jsonl --y los -o a.svg") == 2);
  CHECK(absl::StrContains(user.err, "did you mean 'loss'?"));
  CHECK(user.Plot("run.jsonl --y auc -o a.svg") == 2);
  CHECK(absl::StrContains(user.err, "auc"));
  CHECK(user.Plot("run.jsonl --y loss -o run.jsonl") == 2);
  CHECK(absl::StrContains(user.err, ".svg"));
  CHECK(user.Plot("run.jsonl --y loss -o kept.svg") != 0);
  CHECK(absl::StrContains(user.err, "kept.svg"));
  CHECK(user.Read("kept.svg") == "a text of mine");
  CHECK(user.Plot("missing.jsonl --y loss -o a.svg") != 0);
  CHECK(absl::StrContains(user.err, "missing.jsonl"));
  CHECK(user.Plot("empty.jsonl --y loss -o a.svg") == 2);
  CHECK(absl::StrContains(user.err, "empty.jsonl is empty"));
  CHECK(user.Plot(". --y loss -o a.svg") == 2);
  CHECK(absl::StrContains(user.err, "folder"));
  CHECK(user.Plot("run.jsonl --y loss --label a --label b -o a.svg") == 2);
  CHECK(user.Plot("run.jsonl --y loss --x epochs -o a.svg") == 2);
  CHECK(user.Read("run.jsonl") == Run(3));
  CHECK(user.Read("a.svg").empty());
}

}  // namespace
}  // namespace strata
