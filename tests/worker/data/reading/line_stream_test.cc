// Lines that are read once, from files and from pipes; and batches of them to score.
#include "worker/data/reading/line_stream.h"

#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "tests/worker/data/files/compressed.h"
#include "tests/worker/data/files/scratch_file.h"
#include "worker/data/formats/line_parser.h"
#include "worker/data/reading/scored_lines.h"

namespace strata {
namespace {

// Both ends of a pipe; the read end closes with it.
class Pipe {
 public:
  Pipe() { REQUIRE(pipe(ends_) == 0); }
  ~Pipe() {
    close(ends_[0]);
    Close();
  }
  int out() const { return ends_[0]; }
  void Write(const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const ssize_t put = write(ends_[1], text.data() + at, text.size() - at);
      if (put < 0) return;
      at += static_cast<size_t>(put);
    }
  }
  void Close() {
    if (open_) close(ends_[1]);
    open_ = false;
  }

 private:
  int ends_[2] = {-1, -1};
  bool open_ = true;
};

// "file:line=text" of every line, or the error.
std::vector<std::string> All(LineStream& lines) {
  std::vector<std::string> out;
  LineStream::Line line;
  while (true) {
    const auto more = lines.Next(&line);
    if (!more.ok()) out.push_back("error: " + std::string(more.status().message()));
    if (!more.ok() || !*more) return out;
    const std::string where = lines.Where(line);
    out.push_back(where.substr(where.rfind('/') + 1) + "=" + std::string(line.text));
  }
}

std::vector<std::string> All(LineStreamOptions options) {
  LineStream lines(std::move(options));
  return All(lines);
}

TEST_CASE("lines of files follow one another, whatever compresses them", "[data][stream]") {
  const ScratchFolder folder;
  const std::string a = folder.Write("a",
                                     "\xef\xbb\xbf"
                                     "one\r\n\ntwo");
  const std::string b = folder.Write("b.gz", Gzip("three\n") + Gzip("four\n"));
  const std::string c = folder.Write("c.zst", Zstd("five\n"));
  CHECK(All({.paths = {a, b, c}}) == std::vector<std::string>{"a:1=one\r", "a:2=", "a:3=two",
                                                              "b.gz:1=three", "b.gz:2=four",
                                                              "c.zst:1=five"});
  // A header is that of all.
  const std::string d = folder.Write("d", "one\n1\n"), e = folder.Write("e", "one\r\n2\n");
  CHECK(All({.paths = {d, e}, .header = true}) == std::vector<std::string>{"d:2=1", "e:2=2"});
  const auto differs = All({.paths = {d, c}, .header = true});
  CHECK(differs.back() == "error: " + c + ":1: the header differs from that of " + d +
                              ": column 1 is \"five\", and there \"one\"; all inputs must name the "
                              "same columns in the same order: mend it, or predict it alone");
  // By columns, not by text.
  const std::string tabs = folder.Write("tabs", "a\t\"b\"\n1\t2\n"),
                    plain = folder.Write("plain", "a\tb\n3\t4\n");
  CHECK(All({.paths = {tabs, plain}, .header = true, .delimiter = '\t'}).size() == 2);
  // Inputs without a line.
  const std::string empty = folder.Write("empty", ""), header = folder.Write("header", "one\n");
  CHECK(All({.paths = {a, empty}}).back() ==
        "error: input file " + empty + " is empty; leave it out, or write data to it");
  CHECK(All({.paths = {header}, .header = true}).back() ==
        "error: input file " + header + " has no line of data; leave it out, or write data to it");
  const std::string cut = folder.Write("cut.gz", Gzip("three\n").substr(0, 12));
  CHECK(All({.paths = {cut}}).back().find("cut.gz is cut off") != std::string::npos);
  const std::string lies = folder.Write("lies.gz", "text\n");
  CHECK(All({.paths = {lies}}).back().find("does not begin as gzip does") != std::string::npos);
}

TEST_CASE("a line longer than the limit is told by its number", "[data][stream]") {
  const ScratchFolder folder;
  const std::string text = "short\n" + std::string(kMaxLineBytes + 1, 'x');
  for (const char* end : {"", "\nmore\n"}) {
    const std::string path = folder.Write("long", text + end);
    const auto lines = All({.paths = {path}});
    REQUIRE(lines.size() == 2);
    CHECK(lines[1].find("error: " + path + ":2: the line is longer than the limit") == 0);
  }
}

TEST_CASE("what a pipe has is ready, and no more", "[data][stream]") {
  for (const bool packed : {false, true}) {
    INFO(packed);
    Pipe pipe;
    const auto text = [&](const std::string& plain) { return packed ? Gzip(plain) : plain; };
    pipe.Write(text("1\n22\n3"));
    LineStream lines({.paths = {"-"}, .standard_input = pipe.out()});
    REQUIRE(lines.Start().ok());
    CHECK(lines.first_line() == "1");
    LineStream::Line line;
    for (const char* expected : {"1", "22"}) {
      CHECK(*lines.Ready());
      REQUIRE(*lines.Next(&line));
      CHECK(line.text == expected);
    }
    CHECK_FALSE(*lines.Ready());  // a part of a line is none
    pipe.Write(text("4\n"));
    CHECK(*lines.Ready());
    REQUIRE(*lines.Next(&line));
    CHECK(line.text == "34");
    CHECK(lines.Where(line) == "standard input:3");
    CHECK_FALSE(*lines.Ready());
    pipe.Write(text("last"));
    pipe.Close();
    CHECK(*lines.Ready());
    REQUIRE(*lines.Next(&line));
    CHECK(line.text == "last");
    CHECK(*lines.Ready());  // the end is at hand
    CHECK_FALSE(*lines.Next(&line));
  }
}

TEST_CASE("a cancellation ends the wait for a line", "[data][stream]") {
  Pipe pipe;
  std::atomic<int> asked{0};
  LineStream lines(
      {.paths = {"-"}, .standard_input = pipe.out(), .cancelled = [&] { return ++asked > 2; }});
  CHECK(absl::IsCancelled(lines.Start()));
}

// Far more than is ever held; both ends of the pipe run at once, as in `a | b`.
TEST_CASE("a long input passes through", "[data][stream]") {
  constexpr int kLines = 300000;
  Pipe pipe;
  std::thread writer([&] {
    std::string text;
    for (int i = 0; i < kLines; ++i) text += "line " + std::to_string(i) + "\n";
    pipe.Write(text);
    pipe.Close();
  });
  LineStream lines({.paths = {"-"}, .standard_input = pipe.out()});
  LineStream::Line line;
  int got = 0, wrong = 0;
  while (*lines.Next(&line)) {
    wrong += line.text == "line " + std::to_string(got) && line.number == uint64_t(got) + 1 ? 0 : 1;
    ++got;
  }
  writer.join();
  CHECK(got == kLines);
  CHECK(wrong == 0);
}

ScoredLinesOptions Libfm(std::vector<std::string> paths) {
  ScoredLinesOptions options;
  options.spec.mutable_data()->set_format("libfm");
  options.shape.set_fields(2);
  options.paths = std::move(paths);
  return options;
}

TEST_CASE("a batch is what is there, and no more than is asked for", "[data][stream]") {
  Pipe pipe;
  ScoredLinesOptions options = Libfm({"-"});
  options.standard_input = pipe.out();
  const auto lines = ScoredLines::Make(options);
  REQUIRE(lines.ok());
  Batch batch;
  pipe.Write("1 1:1\n2:1\n");
  REQUIRE(*(*lines)->Read({100}, &batch));
  CHECK(batch.size == 2);
  CHECK(batch.keys == std::vector<uint64_t>{1, 2});
  pipe.Write("3:1\n4:1\n5:1\n");
  REQUIRE(*(*lines)->Read({2}, &batch));
  CHECK(batch.keys == std::vector<uint64_t>{3, 4});
  REQUIRE(*(*lines)->Read({2}, &batch));
  CHECK(batch.keys == std::vector<uint64_t>{5});
  pipe.Close();
  CHECK_FALSE(*(*lines)->Read({2}, &batch));
}

TEST_CASE("a batch ends with the line by which it has so many features", "[data][stream]") {
  const ScratchFolder folder;
  ScoredLinesOptions options = Libfm({folder.Write("a", "1:1 2:1 3:1\n4:1\n5:1\n6:1\n")});
  options.shape.set_fields(3);
  const auto lines = ScoredLines::Make(options);
  REQUIRE(lines.ok());
  Batch batch;
  for (const size_t size : {1, 2, 1}) {
    REQUIRE(*(*lines)->Read({.lines = 100, .features = 2}, &batch));
    CHECK(batch.size == size);
  }
  CHECK_FALSE(*(*lines)->Read({.lines = 100, .features = 2}, &batch));
}

TEST_CASE("lines before those of a pipe do not wait for them", "[data][stream]") {
  const ScratchFolder folder;
  Pipe pipe;
  ScoredLinesOptions options = Libfm({folder.Write("a", "1:1\n2:1\n"), "-"});
  options.standard_input = pipe.out();
  const auto lines = ScoredLines::Make(options);
  REQUIRE(lines.ok());
  Batch batch;
  REQUIRE(*(*lines)->Read({100}, &batch));
  CHECK(batch.size == 2);
  pipe.Write("3:1\n");
  REQUIRE(*(*lines)->Read({100}, &batch));
  CHECK(batch.keys == std::vector<uint64_t>{3});
}

TEST_CASE("an input without a header is empty, not without columns", "[data][stream]") {
  const ScratchFolder folder;
  LineStream lines({.paths = {folder.Write("empty.csv", "")}, .header = true});
  CHECK(lines.Start().message() ==
        "input file " + folder.Path("empty.csv") + " is empty; leave it out, or write data to it");
}

TEST_CASE("bad lines are left out as far as that is allowed", "[data][stream]") {
  const ScratchFolder folder;
  ScoredLinesOptions options = Libfm({folder.Write("a", "1:1\nx\n2:1\n7 1:1\n3:1\n")});
  const std::string first = options.paths[0] + ":2:1: label \"x\" is none of 0, 1, -1";
  const auto read = [&](uint64_t allowed, Batch* batch) {
    options.max_bad_lines = allowed;
    const auto lines = ScoredLines::Make(options);
    REQUIRE(lines.ok());
    const auto more = (*lines)->Read({100}, batch);
    if (more.ok()) CHECK((*lines)->bad_lines() == 2);
    return std::string(more.status().message());
  };
  const std::string remedy = " (mend the line, or give --max-bad-lines to leave such lines out)";
  Batch batch;
  CHECK(read(0, &batch) == first + remedy);
  CHECK(read(1, &batch) == first + ", and 1 more bad lines" + remedy);
  CHECK(read(2, &batch) == "");
  CHECK(batch.keys == std::vector<uint64_t>{1, 2, 3});
}

TEST_CASE("a format of another shape than the model's is refused", "[data][stream]") {
  const ScratchFolder folder;
  ScoredLinesOptions options = Libfm({folder.Write("a", "1:1\n")});
  options.shape.set_numeric(13);
  const auto says = [&] { return std::string(ScoredLines::Make(options).status().message()); };
  CHECK(says() ==
        "format libfm gives 0 numbers a line, and the model takes 13 and 2 fields; give "
        "the format it was trained on");
  options.spec.mutable_data()->set_format("criteo");
  CHECK(says().find("gives 13 numbers and 26 fields a line, and the model takes 13 and 2 fields") !=
        std::string::npos);
  options.shape.set_fields(26);
  CHECK(says() == "");
  options.paths.push_back(folder.Path("none"));
  CHECK(says().find(folder.Path("none")) != std::string::npos);
}

}  // namespace
}  // namespace strata
