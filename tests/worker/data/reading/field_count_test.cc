#include "worker/data/reading/field_count.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/worker/data/files/compressed.h"
#include "tests/worker/data/files/scratch_file.h"
#include "tests/worker/data/index/made_index.h"

namespace strata {
namespace {

constexpr uint64_t kPlenty = uint64_t{1} << 30;

TEST_CASE("fields are counted as the index pass counts them", "[data]") {
  const ScratchFolder folder;
  const std::string format = GENERATE("libfm", "libsvm", "libffm");
  const DataSpec data = Format(format);
  const bool fields = format == "libffm";
  // A mark, a bad line with more, line ends of both kinds, blank and empty ones, a comment.
  const std::string few = fields ? "1 0:7:1 2:8:0.5" : "1 7:1 8:0.5 9:2";
  const std::string bad = fields ? "x 0:7:1 9:8:1" : "x 7:1 8:1 9:1 10:1 11:1";
  const std::string some = fields ? "0 5:1:1" : "0 1:1 2:1 3:1 4:1";
  const std::string a =
      folder.Write("a", "\xef\xbb\xbf" + few + "\r\n\n" + bad + "\n1\n" + few + " # " + some);
  const std::string b = folder.Write("b.gz", Gzip(few + "\n" + some + "\n"));
  const std::string c = folder.Write("c.zst", Zstd(few + "\n"));
  const std::vector<std::vector<std::string>> lists = {{a}, {b}, {c}, {a, b, c}, {c, a}};
  for (const std::vector<std::string>& files : lists) {
    const auto counted = CountFieldsOfLines(data, files, kPlenty);
    INFO(format << " " << files.size() << " files: " << counted.status());
    REQUIRE(counted.ok());
    CHECK(*counted == Index(data, files).shape().fields());
  }
  CHECK(*CountFieldsOfLines(data, {a}, kPlenty) == 3);
  CHECK(*CountFieldsOfLines(data, {a, b}, kPlenty) == (fields ? 6 : 4));
}

TEST_CASE("lines without a feature have no count, and no more is read than may be", "[data]") {
  const ScratchFolder folder;
  const std::string none = folder.Write("none", "1\n0\n");
  const absl::Status refused = CountFieldsOfLines(Format("libfm"), {none}, kPlenty).status();
  CHECK(refused.code() == absl::StatusCode::kInvalidArgument);
  CHECK(refused.message() ==
        "input file " + none +
            ": no line has a label and a feature in libfm form (\"label index:value ...\"); is "
            "spec.data.format right?");
  CHECK(CountFieldsOfLines(Format("libfm"), {folder.Path("gone")}, kPlenty).status().code() ==
        absl::StatusCode::kNotFound);
  // Of a compressed file its text counts: 1,000 lines of 6 bytes.
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "1 1:1\n";
  const std::string zipped = folder.Write("zipped.gz", Gzip(text));
  CHECK(*CountFieldsOfLines(Format("libfm"), {zipped}, 6000) == 1);
  CHECK(CountFieldsOfLines(Format("libfm"), {zipped}, 5999).status() ==
        absl::ResourceExhaustedError("the text of input file " + zipped +
                                     " has more than 5999 bytes"));
  const std::string plain = folder.Write("plain", text);
  CHECK(CountFieldsOfLines(Format("libfm"), {plain, zipped}, 6000).status() ==
        absl::ResourceExhaustedError("the text of input file " + plain +
                                     " and those after it has more than 6000 bytes"));
}

}  // namespace
}  // namespace strata
