#include "worker/data/reading/file_batch_source.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/core/position.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tests/worker/data/files/compressed.h"
#include "tests/worker/data/files/scratch_file.h"
#include "worker/data/files/text_files.h"
#include "worker/data/index/epoch_plan.h"
#include "worker/data/index/index.h"
#include "worker/data/index/job_epoch_plan.h"
#include "worker/data/reading/batch_source.h"
#include "worker/step/batch.h"

namespace strata {
namespace {

std::shared_ptr<TextFiles> TextFilesOfTest() {
  static const auto* const files = new std::shared_ptr<TextFiles>(std::make_shared<TextFiles>());
  return *files;
}

// Some 20,000 lines in three files; line n of all has key n (blank lines have none).
struct Input {
  ScratchFolder folder;
  std::vector<std::string> files;
  std::vector<uint64_t> keys;  // of the lines that are examples

  Input() {
    uint64_t n = 0;
    const int lines[] = {9000, 11'000, 7};
    for (int f = 0; f < 3; ++f) {
      std::string text;
      for (int i = 0; i < lines[f]; ++i, ++n) {
        if (i % 1000 != 500) {
          text += std::to_string(n % 2) + " " + std::to_string(n) + ":1";
          keys.push_back(n);
        }
        const bool last = i + 1 == lines[f];
        text += f == 1 ? "\r\n" : last && f == 2 ? "" : "\n";
      }
      files.push_back(folder.Write("f" + std::to_string(f), text));
    }
  }
};

JobSpec Spec(uint32_t lanes, uint32_t batch, uint32_t buffer) {
  JobSpec spec;
  spec.mutable_data()->set_format("libsvm");
  spec.mutable_data()->mutable_shuffle()->set_buffer_lines(buffer);
  spec.mutable_training()->set_lanes(lanes);
  spec.mutable_training()->set_batch_size(batch);
  spec.mutable_training()->set_seed(3);
  return spec;
}

InputIndex Index(const JobSpec& spec, const std::vector<std::string>& files) {
  absl::StatusOr<InputIndex> index = BuildIndex(spec, files, TextFilesOfTest().get());
  INFO(index.status().ToString());
  REQUIRE(index.ok());
  return *std::move(index);
}

std::unique_ptr<BatchSource> Open(const JobSpec& spec, const InputIndex& index) {
  absl::StatusOr<std::unique_ptr<BatchSource>> source =
      OpenFileBatchSource(spec, index, index.shape(), TextFilesOfTest());
  INFO(source.status().ToString());
  REQUIRE(source.ok());
  return *std::move(source);
}

std::vector<uint64_t> Keys(BatchSource& source, uint64_t step, uint32_t lane) {
  Batch batch;
  const absl::Status s = source.Read(Step(step), LaneId(lane), &batch);
  INFO(s.ToString());
  REQUIRE(s.ok());
  REQUIRE(batch.size == batch.keys.size());
  return batch.keys;
}

}  // namespace

TEST_CASE("an epoch gives every line once, in random order as in sequence", "[data][source]") {
  const Input input;
  // Buffers below, at and above a task; batches that span buffers.
  const auto [lanes, size, buffer] = GENERATE(table<uint32_t, uint32_t, uint32_t>(
      {{1, 700, 500}, {3, 256, 8192}, {4, 512, 100'000}, {7, 1000, 3000}}));
  const JobSpec spec = Spec(lanes, size, buffer);
  const InputIndex index = Index(spec, input.files);
  const absl::StatusOr<EpochPlan> plan = MakeEpochPlan(spec, index);
  REQUIRE(plan.ok());
  const uint64_t steps = plan->StepsPerEpoch();
  const auto source = Open(spec, index);
  std::map<std::pair<uint64_t, uint32_t>, std::vector<uint64_t>> batches;
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<uint64_t> seen;
    for (uint64_t s = 1 + epoch * steps; s <= (epoch + 1) * steps; ++s) {
      for (uint32_t l = 0; l < lanes; ++l) {
        const std::vector<uint64_t> keys = Keys(*source, s, l);
        seen.insert(seen.end(), keys.begin(), keys.end());
        batches[{s, l}] = keys;
      }
    }
    CHECK(seen != input.keys);
    std::sort(seen.begin(), seen.end());
    CHECK(seen == input.keys);
  }
  CHECK(batches[{1, 0}] != batches[{1 + steps, 0}]);
  // Another process that hosts some lanes, and starts anywhere.
  const auto other = Open(spec, index);
  for (uint64_t i = 0; i < 40; ++i) {
    const uint64_t step = 1 + Mix64(i) % (2 * steps);
    const uint32_t lane = static_cast<uint32_t>(Mix64(i + 1000) % lanes);
    REQUIRE(Keys(*other, step, lane) == batches[{step, lane}]);
  }
}

TEST_CASE("without shuffling lines come in file order", "[data][source]") {
  const Input input;
  JobSpec spec = Spec(1, 999, 4000);
  spec.mutable_data()->mutable_shuffle()->set_enabled(false);
  const InputIndex index = Index(spec, input.files);
  const auto source = Open(spec, index);
  std::vector<uint64_t> seen;
  for (uint64_t s = 1; s <= MakeEpochPlan(spec, index)->StepsPerEpoch(); ++s) {
    const auto keys = Keys(*source, s, 0);
    seen.insert(seen.end(), keys.begin(), keys.end());
  }
  CHECK(seen == input.keys);
}

TEST_CASE("windows of all tasks give every line once", "[data][source]") {
  const Input input;
  const uint32_t buffer = GENERATE(300u, 100'000u);
  const JobSpec spec = Spec(2, 450, buffer);
  const InputIndex index = Index(spec, input.files);
  const absl::StatusOr<EpochPlan> plan = MakeEpochPlan(spec, index);
  const auto source = Open(spec, index);
  const uint64_t tasks = plan->tasks();
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<uint64_t> seen;
    const auto order = plan->TaskOrder(epoch);
    for (uint64_t i = 0; i < tasks; ++i) {
      const uint64_t windows = plan->Windows(plan->task_lines(order[i]));
      Batch batch;
      for (uint64_t w = 0; w < windows; ++w) {
        REQUIRE(source->ReadWindow(TaskId(epoch * tasks + i), w, &batch).ok());
        seen.insert(seen.end(), batch.keys.begin(), batch.keys.end());
      }
      CHECK(source->ReadWindow(TaskId(epoch * tasks + i), windows, &batch).code() ==
            absl::StatusCode::kInvalidArgument);
    }
    std::sort(seen.begin(), seen.end());
    CHECK(seen == input.keys);
  }
}

TEST_CASE("evaluation reads lines in file order", "[data][source]") {
  const Input input;
  const JobSpec spec = Spec(1, 1, 1);
  const auto source = Open(spec, Index(spec, input.files));
  std::vector<uint64_t> seen;
  Batch batch;
  for (uint64_t at = 0; at < 20'007; at += 1234) {
    REQUIRE(source->ReadLines(at, {1234}, &batch).ok());
    seen.insert(seen.end(), batch.keys.begin(), batch.keys.end());
  }
  CHECK(seen == input.keys);
  REQUIRE(source->ReadLines(9001, {2}, &batch).ok());
  CHECK(batch.keys == std::vector<uint64_t>{9001, 9002});
  REQUIRE(source->ReadLines(20'007, {UINT64_MAX}, &batch).ok());
  CHECK(batch.size == 0);
}

TEST_CASE("lines that were indexed are there, or that is an error", "[data][source]") {
  const Input input;
  const JobSpec spec = Spec(1, 8, 64);
  const auto source = Open(spec, Index(spec, input.files));
  Batch batch;
  CHECK(ReadIndexedLines(source.get(), 20'005, 20'007, {8}, &batch).value() == 2);
  CHECK(ReadIndexedLines(source.get(), 20'007, 20'008, {8}, &batch).status() ==
        absl::InternalError("reading stopped after 20007 of the 20008 lines that were indexed, "
                            "which is an error of this program; submit the job again"));
}

TEST_CASE("evaluation reads up to so many features", "[data][source]") {
  const ScratchFolder folder;
  // Of 400 lines every tenth has 50,000 features, which take 400 KB of text.
  std::string text;
  std::vector<uint64_t> all;
  for (int line = 0; line < 400; ++line) {
    text += "1";
    for (int f = 0; f < (line % 10 == 0 ? 50'000 : 3); ++f) {
      all.push_back(f);
      text += " " + std::to_string(f) + ":1";
    }
    text += "\n";
  }
  JobSpec spec = Spec(1, 1, 1);
  const auto source = Open(spec, Index(spec, {folder.Write("wide", text)}));
  std::vector<uint64_t> seen;
  uint64_t calls = 0;
  for (uint64_t line = 0; line < 400; ++calls) {
    Batch batch;
    const auto read = source->ReadLines(line, {.lines = 4096, .features = 100'000}, &batch);
    REQUIRE(read.ok());
    REQUIRE(*read >= 1);
    CHECK(batch.size == *read);
    // The line with which it passes the limit is the last.
    CHECK(batch.keys.size() < 100'000 + 50'000);
    seen.insert(seen.end(), batch.keys.begin(), batch.keys.end());
    line += *read;
  }
  CHECK(calls > 5);
  CHECK(seen == all);
  Batch batch;
  CHECK(source->ReadLines(400, {4096}, &batch).value() == 0);
  // So many lines come whatever they have.
  const auto read = [&](uint64_t first, uint64_t least) {
    return source->ReadLines(first, {.lines = 4096, .features = 1, .least = least}, &batch).value();
  };
  CHECK(read(7, 1) == 1);
  CHECK(read(7, 25) == 25);
  CHECK(batch.size == 25);
  CHECK(batch.keys.size() == 3 * 50'000 + 22 * 3);
  CHECK(read(390, 25) == 10);
}

TEST_CASE("lanes are read side by side", "[data][source]") {
  const Input input;
  const JobSpec spec = Spec(4, 500, 2000);
  const InputIndex index = Index(spec, input.files);
  const uint64_t steps = 2 * MakeEpochPlan(spec, index)->StepsPerEpoch();
  const auto alone = Open(spec, index);
  const auto shared = Open(spec, index);
  std::vector<std::vector<std::vector<uint64_t>>> got(4);
  std::vector<std::thread> threads;
  for (uint32_t l = 0; l < 4; ++l) {
    threads.emplace_back([&, l] {
      for (uint64_t s = 1; s <= steps; ++s) {
        Batch batch;
        if (shared->Read(Step(s), LaneId(l), &batch).ok()) got[l].push_back(batch.keys);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (uint32_t l = 0; l < 4; ++l) {
    REQUIRE(got[l].size() == steps);
    for (uint64_t s = 1; s <= steps; ++s) REQUIRE(got[l][s - 1] == Keys(*alone, s, l));
  }
}

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
  JobSpec spec = Spec(1, 8, 8);
  spec.mutable_data()->set_format("csv");
  spec.mutable_data()->mutable_columns()->set_label("y");
  FieldConfig* field = spec.add_fields();
  field->set_name("c");
  field->set_column("c");
  field->set_kind("categorical");
  field->mutable_vocabulary()->set_file(folder.Write("words", "a\nb\n"));
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
  JobSpec spec = Spec(1, 8, 8);
  spec.mutable_data()->set_format("csv");
  spec.mutable_data()->mutable_columns()->set_label("y");
  FieldConfig* field = spec.add_fields();
  field->set_name("c");
  field->set_column("c");
  field->set_kind("categorical");
  const auto words = [](uint32_t first, uint32_t second) {
    std::string text;
    for (uint32_t i = 0; i < 40'000; ++i) {
      const uint32_t word = i == 20'000 ? first : i == 20'001 ? second : i;
      text += std::to_string(100'000 + word) + "\n";
    }
    return text;
  };
  field->mutable_vocabulary()->set_file(folder.Write("words", words(20'000, 20'001)));
  const InputIndex index = Index(spec, {folder.Write("train", "y,c\n1,100001\n0,100002\n")});
  REQUIRE(OpenFileBatchSource(spec, index, index.shape(), TextFilesOfTest()).ok());
  folder.Write("words", words(20'001, 20'000));
  CHECK(CheckFingerprints(index, *TextFilesOfTest()).ok());  // size and ends are the same
  CHECK(OpenFileBatchSource(spec, index, index.shape(), TextFilesOfTest()).status().message() ==
        "vocabulary file " + folder.Path("words") +
            " has changed since the job began; restore it, or submit a new job");
}

TEST_CASE("csv reads the header of its own files", "[data][source]") {
  const ScratchFolder folder;
  JobSpec spec = Spec(1, 8, 8);
  spec.mutable_data()->set_format("csv");
  spec.mutable_data()->mutable_columns()->set_label("y");
  spec.mutable_data()->mutable_columns()->add_numeric("a");
  const std::string path = folder.Write("a", "\xef\xbb\xbfy,a\r\n1,2\r\n0,3\r\n");
  const auto source = Open(spec, Index(spec, {path}));
  Batch batch;
  REQUIRE(source->ReadLines(0, {8}, &batch).ok());
  CHECK(batch.labels == std::vector<float>{1, 0});
  CHECK(batch.dense == std::vector<float>{2, 3});
  CHECK(batch.numeric == 1);
}

TEST_CASE("compressed files give the batches of their text", "[data][source]") {
  const Input input;
  const JobSpec spec = Spec(3, 700, 3000);
  const auto plain = Open(spec, Index(spec, input.files));
  // The three files once each way, and all three in one.
  std::vector<std::string> texts, files;
  for (const std::string& path : input.files) {
    std::ifstream in(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  files.push_back(
      input.folder.Write("0.gz", Gzip(texts[0].substr(0, 5000)) + Gzip(texts[0].substr(5000))));
  files.push_back(input.folder.Write("1.zst", Zstd(texts[1])));
  files.push_back(input.folder.Write("2", texts[2]));
  const InputIndex index = Index(spec, files);
  const auto compressed = Open(spec, index);
  const uint64_t steps = MakeEpochPlan(spec, index)->StepsPerEpoch();
  for (uint64_t s = 1; s <= 2 * steps; ++s) {
    for (uint32_t l = 0; l < 3; ++l) REQUIRE(Keys(*compressed, s, l) == Keys(*plain, s, l));
  }
  // The files may go while they are in use.
  for (const std::string& path : {files[0], files[1]}) std::filesystem::rename(path, path + ".x");
  Batch a, b;
  REQUIRE(plain->ReadLines(8990, {20}, &a).ok());
  CHECK(compressed->ReadLines(8990, {20}, &b).status().code() == absl::StatusCode::kNotFound);
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

TEST_CASE("an index that contradicts itself is refused", "[data][source]") {
  const Input input;
  const JobSpec spec = Spec(1, 8, 8);
  InputIndex index = Index(spec, input.files);
  index.mutable_tasks(0)->set_file(9);
  CHECK(OpenFileBatchSource(spec, index, index.shape(), TextFilesOfTest()).status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(OpenFileBatchSource(spec, InputIndex(), DataShape(), TextFilesOfTest()).status().code() ==
        absl::StatusCode::kInvalidArgument);
}

}  // namespace strata
