// Lines and files that a job does not read: bad ones, and those that changed after the index pass.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/ids.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/worker/data/files/compressed.h"
#include "tests/worker/data/files/scratch_file.h"
#include "tests/worker/data/reading/opened_source.h"
#include "worker/data/files/text_files.h"
#include "worker/data/index/index.h"
#include "worker/data/reading/batch_source.h"
#include "worker/data/reading/file_batch_source.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

TEST_CASE("bad lines stop the job or are counted", "[data][source]") {
  const ScratchFolder folder;
  const std::string path = folder.Write("a", "1 1:1\n\n0 -2:1\n1 3:1\n5 4:1\n0 5:1");
  JobSpec spec = Spec(1, 10, 10);
  const InputIndex index = Index(spec, {path});
  const auto strict = Open(spec, index);
  Batch batch;
  const absl::Status s = strict->ReadLines(0, {10}, &batch).status();
  CHECK(s.code() == absl::StatusCode::kInvalidArgument);
  CHECK(std::string(s.message()) ==
        path +
            ":3:3: feature index \"-2\" is negative (mend the line, or set "
            "spec.data.maxBadLines to skip such lines)");
  CHECK(strict->Read(Step(1), LaneId(0), &batch).code() == absl::StatusCode::kInvalidArgument);
  spec.mutable_data()->set_max_bad_lines(5);
  const auto lenient = Open(spec, index);
  CHECK(lenient->first_bad_line().empty());
  REQUIRE(lenient->ReadLines(0, {10}, &batch).ok());
  CHECK(batch.bad_lines == 2);
  CHECK(batch.keys == std::vector<uint64_t>{1, 3, 5});
  CHECK(lenient->first_bad_line() == path + ":3:3: feature index \"-2\" is negative");
  REQUIRE(lenient->Read(Step(1), LaneId(0), &batch).ok());
  CHECK(batch.bad_lines == 2);
  CHECK(batch.size == 3);
}

TEST_CASE("a file that changed after the index pass is refused", "[data][source]") {
  const ScratchFolder folder;
  const std::string path = folder.Write("a", "1 1:1\n0 2:1\n1 3:1\n");
  const JobSpec spec = Spec(1, 2, 2);
  const InputIndex index = Index(spec, {path});
  Batch batch;
  const auto after = [&](const std::string& text) {
    folder.Write("a", text);
    return Open(spec, index)->ReadLines(0, {3}, &batch).status();
  };
  CHECK(after("1 1:1\n0 2:1\n").code() == absl::StatusCode::kFailedPrecondition);
  CHECK(after("1 1:1\n0 2:1 1 3:1\n").code() == absl::StatusCode::kFailedPrecondition);
  CHECK(after("1 1:1\n0 2:\n\n1 3:1\n").code() == absl::StatusCode::kFailedPrecondition);
  CHECK(after("1 1:1\n0 2:1\n1 4:1\n").message() ==
        "input file " + path +
            " has changed since the job began (18 bytes then, 18 now); restore it, or submit a new "
            "job");
  CHECK(after("1 1:1\n0 2:1\n1 3:1\n").ok());
}

TEST_CASE("a file that is replaced while the job reads is refused, one that is put back is not",
          "[data][source]") {
  const bool packed = GENERATE(false, true);
  const ScratchFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    return folder.Write(name, packed ? Gzip(text) : text);
  };
  const std::string good = "1 3:1\n0 4:1\n";
  const std::vector<std::string> files = {write("a", "1 1:1\n0 2:1\n"), write("b", good)};
  const JobSpec spec = Spec(1, 2, 2);
  const auto source = Open(spec, Index(spec, files));
  Batch batch;
  REQUIRE(source->ReadLines(0, {2}, &batch).ok());
  CHECK(batch.keys == std::vector<uint64_t>{1, 2});
  // Beside it first, as who replaces a file does: the reader's own is another inode.
  const auto replace = [&](const std::string& text) {
    std::filesystem::rename(write("new", text), files[1]);
  };
  replace("1 3:1\n0 9:1\n");
  const absl::Status s = source->ReadLines(2, {2}, &batch).status();
  CHECK(s.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(s.message().find("input file " + files[1] + " has changed since the job began") == 0);
  replace(good);
  REQUIRE(source->ReadLines(2, {2}, &batch).ok());
  CHECK(batch.keys == std::vector<uint64_t>{3, 4});
  REQUIRE(source->ReadLines(0, {2}, &batch).ok());
  std::filesystem::remove(files[1]);
  CHECK(source->ReadLines(2, {2}, &batch).status().code() == absl::StatusCode::kNotFound);
}

// A label y and a category c of csv.
JobSpec CategorySpec() {
  JobSpec spec = Spec(1, 8, 8);
  spec.mutable_data()->set_format("csv");
  spec.mutable_data()->mutable_columns()->set_label("y");
  FieldConfig& field = *spec.add_fields();
  field.set_name("c");
  field.set_column("c");
  field.set_kind("categorical");
  return spec;
}

// Whose midst no fingerprint tells.
std::string LongText() {
  std::string text;
  for (int line = 0; text.size() < (512 << 10); ++line) {
    text += absl::StrCat(line % 2, " ", line + 1, ":1\n");
  }
  return text;
}

// Size, beginning and end are what they were: the fingerprint is, too. (Compressed files end by a
// checksum of their text.)
TEST_CASE("lines in the midst of a file that are others than when it was indexed are refused",
          "[data][source]") {
  const bool open = GENERATE(false, true);
  INFO((open ? "open" : "not open yet"));
  const ScratchFolder folder;
  const std::string good = LongText();
  std::string other = good;
  other[other.find('\n', other.size() / 2) + 1] ^= 1;  // a label
  const std::string path = folder.Write("a", good);
  const auto lines = static_cast<uint32_t>(std::count(good.begin(), good.end(), '\n'));
  JobSpec spec = Spec(1, 512, 512);
  const auto source = Open(spec, Index(spec, {path}));
  Batch batch;
  if (open) REQUIRE(source->Read(Step(1), LaneId(0), &batch).ok());
  folder.Write("a", other);
  absl::Status s;
  for (uint64_t step = 1; s.ok() && step <= lines / 512; ++step) {
    s = source->Read(Step(step), LaneId(0), &batch);
  }
  CHECK(s.code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(s.message()),
             Catch::Contains("input file " + path + " has changed since it was indexed: lines "));
  folder.Write("a", good);
  for (uint64_t step = 1; step <= lines / 512; ++step) {
    REQUIRE(source->Read(Step(step), LaneId(0), &batch).ok());
  }
}

// Another lane reads the task's end, and did so before the change.
TEST_CASE("so are those of a lane that ends in the midst of a task", "[data][source]") {
  const ScratchFolder folder;
  const std::string good = LongText();
  const std::string path = folder.Write("a", good);
  const auto lines = static_cast<uint32_t>(std::count(good.begin(), good.end(), '\n'));
  const uint64_t steps = (lines / 2 + 511) / 512;
  JobSpec spec = Spec(2, 512, 512);
  spec.mutable_data()->mutable_shuffle()->set_enabled(false);
  const auto source = Open(spec, Index(spec, {path}));
  Batch batch;
  for (uint64_t step = 1; step <= steps; ++step) {
    REQUIRE(source->Read(Step(step), LaneId(1), &batch).ok());
  }
  REQUIRE(source->Read(Step(1), LaneId(0), &batch).ok());
  std::string other = good;
  other[other.find(absl::StrCat(" ", lines / 2 - 10, ":1\n")) - 1] ^= 1;  // its label
  folder.Write("a", other);
  absl::Status s;
  for (uint64_t step = 2; s.ok() && step <= steps; ++step) {
    s = source->Read(Step(step), LaneId(0), &batch);
  }
  CHECK(s.code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(s.message()),
             Catch::Contains("input file " + path + " has changed since it was indexed: lines "));
}

TEST_CASE(
    "a file that is written in place while it is open is refused, one that is put back is not",
    "[data][source]") {
  const bool packed = GENERATE(false, true);
  const ScratchFolder folder;
  const std::string good = "1 1:1\n0 2:1\n1 3:1\n0 4:1\n", flipped = "0 1:1\n1 2:1\n0 3:1\n1 4:1\n";
  auto time = std::filesystem::file_time_type();
  const auto write = [&](const std::string& text) {
    const std::string path = folder.Write("a", packed ? Gzip(text) : text);
    // Two writes within one tick of the file system's clock could not be told apart.
    time += std::chrono::hours(1);
    std::filesystem::last_write_time(path, time);
    return path;
  };
  const std::string path = write(good);
  JobSpec spec = Spec(1, 2, 2);
  const auto source = Open(spec, Index(spec, {path}));
  Batch batch;
  const auto read = [&](uint64_t step) { return source->Read(Step(step), LaneId(0), &batch); };
  REQUIRE(read(1).ok());
  write(good);  // the same again
  REQUIRE(read(2).ok());
  for (const std::string& text : {flipped, good.substr(0, 6), good + "1 5:1\n"}) {
    write(text);
    const absl::Status s = read(3);  // of the next epoch
    CHECK(s.code() == absl::StatusCode::kFailedPrecondition);
    CHECK(s.message().find("input file " + path + " has changed since the job began") == 0);
  }
  write(good);
  CHECK(read(3).ok());
  // Its name may go: the reader has what was indexed.
  std::filesystem::remove(path);
  CHECK(read(4).ok());
}

TEST_CASE("a vocabulary that is another one when the data are opened is refused",
          "[data][source]") {
  const ScratchFolder folder;
  JobSpec spec = CategorySpec();
  spec.mutable_fields(0)->mutable_vocabulary()->set_file(folder.Write("words", "a\nb\n"));
  const InputIndex index = Index(spec, {folder.Write("train", "y,c\n1,a\n0,b\n")});
  REQUIRE(OpenFileBatchSource(spec, index, index.shape(), TextFilesOfTest()).ok());
  folder.Write("words", "b\na\n");
  CHECK(OpenFileBatchSource(spec, index, index.shape(), TextFilesOfTest()).status().message() ==
        "vocabulary file " + folder.Path("words") +
            " has changed since the job began; restore it, or submit a new job");
}

TEST_CASE("a vocabulary that changed far from its ends is refused when the data are opened",
          "[data][source]") {
  const ScratchFolder folder;
  JobSpec spec = CategorySpec();
  const auto words = [](uint32_t first, uint32_t second) {
    std::string text;
    for (uint32_t i = 0; i < 40'000; ++i) {
      const uint32_t word = i == 20'000 ? first : i == 20'001 ? second : i;
      text += std::to_string(100'000 + word) + "\n";
    }
    return text;
  };
  spec.mutable_fields(0)->mutable_vocabulary()->set_file(
      folder.Write("words", words(20'000, 20'001)));
  const InputIndex index = Index(spec, {folder.Write("train", "y,c\n1,100001\n0,100002\n")});
  REQUIRE(OpenFileBatchSource(spec, index, index.shape(), TextFilesOfTest()).ok());
  folder.Write("words", words(20'001, 20'000));
  CHECK(CheckFingerprints(index, *TextFilesOfTest()).ok());  // size and ends are the same
  CHECK(OpenFileBatchSource(spec, index, index.shape(), TextFilesOfTest()).status().message() ==
        "vocabulary file " + folder.Path("words") +
            " has changed since the job began; restore it, or submit a new job");
}

TEST_CASE("bad lines of compressed files are told by their line", "[data][source]") {
  const ScratchFolder folder;
  const std::string path = folder.Write("a.gz", Gzip("1 1:1\n\n0 -2:1\n"));
  const JobSpec spec = Spec(1, 10, 10);
  const auto source = Open(spec, Index(spec, {path}));
  Batch batch;
  CHECK(source->ReadLines(0, {10}, &batch).status().message() ==
        path +
            ":3:3: feature index \"-2\" is negative (mend the line, or set "
            "spec.data.maxBadLines to skip such lines)");
}

}  // namespace
}  // namespace strata
