#include "worker/data/index/index.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/without_privileges.h"
#include "tests/worker/data/files/compressed.h"
#include "tests/worker/data/files/scratch_file.h"
#include "tests/worker/data/index/made_index.h"

namespace strata {
namespace {

TEST_CASE("tasks are runs of whole lines of one file", "[data][index]") {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "1 " + std::to_string(i) + ":1\n";
  const std::string a = folder.Write("a", text);
  const std::string b = folder.Write("b", "1 1:1\n\n0 2:1 3:1");  // no newline at the end
  const InputIndex index = Index(Format("libsvm"), {a, b});
  REQUIRE(index.tasks_size() == 4);
  CHECK(index.lines() == 20'003);
  CHECK(index.shape().fields() == 2);
  CHECK(index.shape().numeric() == 0);
  uint64_t offset = 0;
  const uint32_t lines[] = {8192, 8192, 3616};
  for (int t = 0; t < 3; ++t) {
    CHECK(index.tasks(t).file() == 0);
    CHECK(index.tasks(t).lines() == lines[t]);
    CHECK(index.tasks(t).first_line() == 1 + 8192u * t);
    CHECK(index.tasks(t).offset() == offset);
    CHECK((offset == 0 || text[offset - 1] == '\n'));
    offset += index.tasks(t).bytes();
  }
  CHECK(offset == text.size());
  CHECK(index.tasks(3).file() == 1);
  CHECK(index.tasks(3).lines() == 3);
  CHECK(index.tasks(3).bytes() == 16);
  CHECK(index.files(1).bytes() == 16);
}

TEST_CASE("lines longer than one read are found whole", "[data][index]") {
  const ScratchFolder folder;
  const std::string comment(9 << 20, 'x');
  const std::string path =
      folder.Write("a", "1 1:1 # " + comment + "\n0 2:1\n1 3:1 #" + comment + "\n0 4:1\n");
  const InputIndex index = Index(Format("libsvm"), {path});
  CHECK(index.lines() == 4);
  CHECK(index.tasks(0).bytes() == std::filesystem::file_size(path));
}

TEST_CASE("the most features are those of a good line", "[data][index]") {
  const ScratchFolder folder;
  const std::string path =
      folder.Write("a", "1 1:1 2:1\n1 1:1 2:x 3:1 4:1\n1 1:1 # 1:1 2:2 3:3\n0 7:1 8:1 9:1\n");
  CHECK(Index(Format("libfm"), {path}).shape().fields() == 3);
}

TEST_CASE("the shape of criteo and csv is in the job", "[data][index]") {
  const ScratchFolder folder;
  const std::string path = folder.Write("a", "x\n");
  DataSpec data = Format("criteo");
  CHECK(Index(data, {path}).shape().fields() == 26);
  CHECK(Index(data, {path}).shape().numeric() == 13);
  data.set_integer_features("bucket");
  CHECK(Index(data, {path}).shape().fields() == 39);
  CHECK(Index(data, {path}).shape().numeric() == 0);
}

TEST_CASE("csv headers belong to no task and must agree", "[data][index]") {
  const ScratchFolder folder;
  DataSpec data = Format("csv");
  data.mutable_columns()->set_label("y");
  data.mutable_columns()->add_categorical("c");
  const std::string a = folder.Write("a", "\xef\xbb\xbfy,c\r\n1,x\r\n0,y\r\n");
  const std::string b = folder.Write("b", "y,c\n1,z\n");
  const InputIndex index = Index(data, {a, b});
  CHECK(index.lines() == 3);
  CHECK(index.tasks(0).first_line() == 2);
  CHECK(index.tasks(0).offset() == 8);
  CHECK(index.tasks(1).first_line() == 2);
  CHECK(index.shape().fields() == 1);
  const std::string c = folder.Write("c", "c,y\nz,1\n");
  const auto differs = [&](const std::string& file, const std::string& how) {
    return file + ":1: the header differs from that of " + a + ": " + how +
           "; all files of a job must name the same columns in the same order: mend it, or start a "
           "job on such files alone (spec.model.initFrom)";
  };
  CHECK(Error(data, {a, c}) == differs(c, "column 1 is \"c\", and there \"y\""));
  const std::string more = folder.Write("more", "y,c,n\n1,z,2\n");
  CHECK(Error(data, {a, more}) == differs(more, "column 3, \"n\", is not there"));
  const std::string fewer = folder.Write("fewer", "y\n1\n");
  CHECK(Error(data, {a, fewer}) == differs(fewer, "column 2 is missing, there \"c\""));
  CHECK(Index(data, {a, folder.Write("quoted", "\"y\",c\n1,z\n")}).lines() == 3);
  const std::string d = folder.Write("d", "y,c\n");
  CHECK(Error(data, {a, d}) ==
        "input file " + d +
            " has no line of data; write data to it, or move it out of what spec.data names");
  const std::string e = folder.Write("e", "y,z\n1,2\n");
  CHECK(Error(data, {e}) ==
        e + ":1: spec.data.columns.categorical[0]: \"c\" is no column of the header, which names "
            "\"y\", \"z\"; name one of these, or give the file that column");
}

TEST_CASE("files that cannot be used", "[data][index]") {
  const ScratchFolder folder;
  const DataSpec data = Format("libsvm");
  const std::string none = folder.Path("none");
  CHECK(BuildIndex(JobOf(data), {none}, &text_files).status().code() ==
        absl::StatusCode::kNotFound);
  CHECK(Error(data, {none}) == "input file " + none + " does not exist; check spec.data");
  CHECK(Error(data, {folder.Path("")}) ==
        "input file " + folder.Path("") + " is a directory; name the files in it");
  const std::string empty = folder.Write("empty", "");
  CHECK(Error(data, {empty}) ==
        "input file " + empty +
            " is empty; write data to it, or move it out of what spec.data names");
  const std::string gzip = folder.Write("gzip", "\x1f\x8b\x08 and so on");
  CHECK(Error(data, {gzip}) ==
        "input file " + gzip +
            " is damaged at byte 4: unknown header flags set (gzip); fetch or compress it again");
  const std::string nothing = folder.Write("nothing.gz", Gzip(""));
  CHECK(Error(data, {nothing}) ==
        "input file " + nothing +
            " is empty; write data to it, or move it out of what spec.data names");
  const std::string pipe = folder.Path("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(Error(data, {pipe}) ==
        "input file " + pipe + " is not a regular file; write the data to one");
  const std::string wrong = folder.Write("wrong", "a\tb\tc\n");
  CHECK(Error(data, {wrong}) ==
        "input file " + wrong +
            ": no line has a label and a feature in libsvm form (\"label index:value ...\"); is "
            "spec.data.format right?");
  CHECK(Error(data, {}) == "no input files; set spec.data.train");
}

TEST_CASE("an index pass that nobody wants any more ends before its next read", "[data][index]") {
  const ScratchFolder folder;
  std::string lines;
  while (lines.size() < (size_t{9} << 20)) lines += "1 1:1 2:1\n";
  const std::string plain = folder.Write("plain", lines);
  const std::string packed = folder.Write("packed.gz", Gzip(lines));
  for (const std::string& path : {plain, packed}) {
    CAPTURE(path);
    int asked = 0;
    const auto ends_at = [&](int last) {
      asked = 0;
      return BuildIndex(JobOf(Format("libsvm")), {path}, &text_files,
                        {.cancelled = [&] { return ++asked >= last; }})
          .status();
    };
    const int last = path == plain ? 4 : 2;  // the file, then its reads or the copy's
    CHECK(absl::IsCancelled(ends_at(last)));
    CHECK(asked == last);
    CHECK(ends_at(1000).ok());
  }
}

TEST_CASE("a file that may not be read", "[data][index]") {
  const ScratchFolder folder;
  const std::string closed = folder.Write("closed", "1 1:1\n");
  REQUIRE(chmod(closed.c_str(), 0) == 0);
  const WithoutPrivileges root_may_read_everything;
  const absl::Status status = BuildIndex(JobOf(Format("libsvm")), {closed}, &text_files).status();
  CHECK(status.code() == absl::StatusCode::kPermissionDenied);
  CHECK(status.message() == "input file " + closed + " may not be read; check its permissions");
}

TEST_CASE("the fields of libffm are those of good lines", "[data][index]") {
  const ScratchFolder folder;
  const DataSpec data = Format("libffm");
  const std::string path = folder.Write("a", "1 6:1:1 2:1:1\n1 9:1:x\n1 70000:1:1\n0 0:1:1\n0\n");
  CHECK(Index(data, {path}).shape().fields() == 7);
  CHECK(Index(data, {path}).shape().numeric() == 0);
  const std::string wrong = folder.Write("wrong", "1 1:1\n");
  CHECK(Error(data, {wrong}) ==
        "input file " + wrong +
            ": no line has a label and a feature in libffm form (\"label field:index:value ...\"); "
            "is spec.data.format right?");
}

TEST_CASE("multi-valued columns are fields", "[data][index]") {
  const ScratchFolder folder;
  DataSpec data = Format("csv");
  data.mutable_columns()->set_label("y");
  data.mutable_columns()->add_categorical("c");
  data.mutable_columns()->add_multi_valued()->set_column("m");
  CHECK(Index(data, {folder.Write("a", "y,c,m\n1,x,a|b\n")}).shape().fields() == 2);
}

TEST_CASE("without a header the first line says how many columns there are", "[data][index]") {
  const ScratchFolder folder;
  DataSpec data = Format("csv");
  ColumnsSpec& columns = *data.mutable_columns();
  columns.set_label("0");
  columns.add_categorical("2");
  columns.add_ignored("*");
  const std::string a = folder.Write("a", "1,x,c,9\n"), b = folder.Write("b", "1,c\n");
  CHECK(Index(data, {folder.Write("h", "0,1,2\n1,x,c\n")}).shape().columns() == 0);
  columns.set_header(false);
  CHECK(Index(data, {a, b}).shape().columns() == 4);
  // Held-out lines have those of the training files.
  DataShape four;
  four.set_columns(4);
  const auto held_out =
      BuildIndex(JobOf(data), {b}, &text_files, {.labels = Labels::kOptional, .training = four});
  REQUIRE(held_out.ok());
  CHECK(held_out->shape().columns() == 4);
  columns.set_delimiter("\t");
  CHECK(Index(data, {folder.Write("t", "1\tx\tc\n")}).shape().columns() == 3);
}

TEST_CASE("a number means one column under the headers of all files", "[data][index]") {
  const ScratchFolder folder;
  DataSpec data = Format("csv");
  ColumnsSpec& columns = *data.mutable_columns();
  columns.set_label("0");
  columns.add_numeric("n");
  columns.add_categorical("2");
  columns.add_categorical("7");  // a name
  columns.add_ignored("*");
  const std::string train = folder.Write("train", "y,n,c,7,x\n1,2,a,b,\n");
  const DataShape shape = Index(data, {train}).shape();
  std::string numbered;
  for (const NumberedColumn& c : shape.numbered_columns()) {
    numbered += c.number() + "=" + c.name() + " ";
  }
  CHECK(numbered == "0=y 2=c 7=7 ");
  const auto held_out = [&](const std::string& header) {
    const std::string file = folder.Write("eval", header + "\n1,2,3,4,5,6,7,8\n");
    const auto index = BuildIndex(JobOf(data), {file}, &text_files,
                                  {.labels = Labels::kOptional, .training = shape});
    const std::string at = file + ":1: spec.data.columns.";
    const std::string fault(index.status().message());
    return fault.substr(0, at.size()) == at ? fault.substr(at.size()) : fault;
  };
  // Columns that are named may be anywhere; those that nobody reads need not be there.
  for (const char* header : {"y,n,c,7,x", "y,7,c,n", "y,x,c,z,7,n", "y,n,c,a,b,d,7,e"}) {
    CHECK(held_out(header) == "");
  }
  const std::string remedy =
      ": numbers go by places; give the file the columns of the training data in their order, or "
      "have a job name its columns";
  CHECK(held_out("y,c,n,7,x") ==
        "categorical[0]: \"2\" is the column \"n\", and that of the training data is \"c\"" +
            remedy);
  CHECK(held_out("n,y,c,7,x") ==
        "label: \"0\" is the column \"n\", and that of the training data is \"y\"" + remedy);
  // What was a name is no position, and what was a position is no name.
  CHECK(held_out("y,n,c,a,b,d,e,f") ==
        "categorical[1]: \"7\" is the column \"f\", and that of the training data is \"7\"" +
            remedy);
  CHECK(held_out("y,n,c,7,2") ==
        "categorical[0]: \"2\" is the column \"2\", and that of the training data is \"c\"" +
            remedy);
  // An index of versions before does not say.
  DataShape before = shape;
  before.clear_numbered_columns();
  CHECK(BuildIndex(JobOf(data), {folder.Write("eval", "y,c,x,n,7\n1,2,3,4,5\n")}, &text_files,
                   {.labels = Labels::kOptional, .training = before})
            .ok());
}

TEST_CASE("the index of a compressed file is that of its text", "[data][index]") {
  const ScratchFolder folder;
  std::string text = "\xef\xbb\xbf";
  for (int i = 0; i < 20'000; ++i) text += "1 " + std::to_string(i) + ":1\n";
  const InputIndex plain = Index(Format("libsvm"), {folder.Write("a", text)});
  for (const std::string& compressed : {Gzip(text), Zstd(text)}) {
    const std::string path = folder.Write("b", compressed);
    InputIndex index = Index(Format("libsvm"), {path});
    CHECK(index.files(0).bytes() == compressed.size());
    CHECK(CheckFingerprints(index, text_files).ok());
    *index.mutable_files() = plain.files();
    CHECK(index.SerializeAsString() == plain.SerializeAsString());
  }
}

TEST_CASE("a line of 100 MB stops the index pass", "[data][index]") {
  const ScratchFolder folder;
  const std::string path = folder.Write("long", "1 1:1\n" + std::string(100'000'000, '7'));
  CHECK(Error(Format("libsvm"), {path}) ==
        path +
            ":2: the line is longer than the limit of 16777216 bytes; is spec.data.format "
            "right, and does the file have line ends?");
}

TEST_CASE("a changed file is noticed", "[data][index]") {
  const ScratchFolder folder;
  const std::string path = folder.Write("a", "1 1:1\n0 2:1\n");
  const InputIndex index = Index(Format("libsvm"), {path});
  CHECK(CheckFingerprints(index, text_files).ok());
  folder.Write("a", "1 1:1\n0 3:1\n");
  CHECK(CheckFingerprints(index, text_files).code() == absl::StatusCode::kFailedPrecondition);
  CHECK(std::string(CheckFingerprints(index, text_files).message()) ==
        "input file " + path +
            " has changed since the job began (12 bytes then, 12 now); restore it, or submit a new "
            "job");
  folder.Write("a", "1 1:1\n0 2:1\n");
  CHECK(CheckFingerprints(index, text_files).ok());
}

TEST_CASE("some line must weigh something", "[data][index]") {
  const ScratchFolder folder;
  JobSpec spec = JobOf(Format("csv"));
  spec.mutable_data()->mutable_columns()->set_label("y");
  spec.mutable_data()->mutable_columns()->add_categorical("c");
  spec.set_sample_weight("w");
  const std::string zeros = folder.Write("zeros.csv", "w,y,c\n0,1,x\n0,0,y\n");
  const std::string some = folder.Write("some.csv", "w,y,c\n0,1,x\n0.5,0,y\n");
  const std::string bad = folder.Write("bad.csv", "w,y,c\n1,7,x\n0,0,y\n");
  CHECK(BuildIndex(spec, {some}, &text_files).ok());
  CHECK(BuildIndex(spec, {zeros, some}, &text_files).ok());
  const std::string remedy =
      ": column w gives no good line a weight above 0; mend it, or remove spec.sampleWeight";
  CHECK(BuildIndex(spec, {zeros}, &text_files).status().message() ==
        "input file " + zeros + remedy);
  CHECK(BuildIndex(spec, {bad, zeros}, &text_files).status().message() ==
        "input file " + bad + " and those after it" + remedy + "; the first bad line is " + bad +
            ":2:3: column y: label \"7\" is none of 0, 1, -1; spec.labels may name a number (kind: "
            "real, count), or a label that lines may lack");
  // Nor may an evaluation's.
  CHECK_FALSE(BuildIndex(spec, {zeros}, &text_files, {.labels = Labels::kOptional}).ok());
}

TEST_CASE("some line must have each label", "[data][index]") {
  const ScratchFolder folder;
  JobSpec spec = JobOf(Format("csv"));
  spec.mutable_data()->mutable_columns()->add_categorical("c");
  for (const char* name : {"click", "stars"}) {
    LabelConfig& label = *spec.add_labels();
    label.set_name(name);
    label.set_column(std::string("of ") + name);
    label.set_kind(name == std::string("stars") ? "real" : "binary");
  }
  const auto error = [&](const std::string& text, const std::string& head = "c,of click,of stars") {
    const std::string path = folder.Write("data.csv", head + "\n" + text);
    const absl::Status status = BuildIndex(spec, {path}, &text_files).status();
    const std::string before = "input file " + path + ": ";
    const std::string message(status.message());
    CHECK((status.ok() || message.substr(0, before.size()) == before));
    return status.ok() ? "" : message.substr(before.size());
  };
  CHECK(error("x,1,\nx,,2.5\n") == "");
  CHECK(error("x,1,\nx,,\n") ==
        "no good line has label stars (column of stars), so there is nothing to learn for it; mend "
        "them, or remove it from spec.labels");
  CHECK(error("x,,\nx,,\n") == "no good line has a label (columns of click, of stars); mend them");
  CHECK(error("x,,\nx,1,many\n").find("; the first bad line is ") != std::string::npos);
  // Evaluations say what has no label.
  const std::string none = folder.Write("eval.csv", "c,of click,of stars\nx,,\n");
  CHECK(BuildIndex(spec, {none}, &text_files, {.labels = Labels::kOptional}).ok());
  // A line that weighs nothing teaches nothing.
  spec.set_sample_weight("w");
  const std::string head = "c,of click,of stars,w";
  CHECK(error("x,1,2.5,0.5\n", head) == "");
  CHECK(
      error("x,1,,0.5\nx,1,2,0\n", head) ==
      "no good line of a weight above 0 has label stars (column of stars), so there is nothing to "
      "learn for it; mend them, or remove it from spec.labels");
  CHECK(error("x,1,2.5,65537\nx,1,3,65538\n", head) ==
        "no line is good; the first bad one is " + folder.Path("data.csv") +
            ":2:9: column w: weight \"65537\" is above 65536; scale the weights of all lines");
}

}  // namespace
}  // namespace strata
