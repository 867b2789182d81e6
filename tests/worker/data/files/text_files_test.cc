#include "worker/data/files/text_files.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/job_places.h"
#include "tests/worker/data/files/compressed.h"
#include "tests/worker/data/files/scratch_file.h"
#include "worker/data/files/bytes_hash.h"
#include "worker/data/files/data_file.h"
#include "worker/data/files/file_list.h"

namespace strata {
namespace {

std::string Text(const DataFile& file) {
  std::string text(file.size(), '\0');
  REQUIRE(file.Read(0, text.size(), text.data()).ok());
  return text;
}

std::string Error(TextFiles& files, const std::string& path) {
  return std::string(files.Open(path).status().message());
}

}  // namespace

TEST_CASE("bytes have one hash, however they are cut", "[data][files]") {
  const std::string text(1000, 'x');
  BytesHash whole, cut;
  CHECK(whole.value() == 0xef46db3751d8e999);  // of nothing: xxhash.com
  whole.Add(text);
  for (size_t at = 0; at < text.size(); at += 7) cut.Add(absl::string_view(text).substr(at, 7));
  CHECK(cut.value() == whole.value());
  cut.Add("x");
  CHECK(cut.value() != whole.value());
  cut.Reset();
  cut.Add(text);
  CHECK(cut.value() == whole.value());
}

TEST_CASE("compressed files read as their text, whatever their name", "[data][text_files]") {
  const ScratchFolder folder;
  TextFiles files({folder.Path(""), ""});
  const std::string text = "1 1:1\n0 2:1\n";
  for (const std::string& path : {folder.Write("a", text), folder.Write("b.gz", Gzip(text)),
                                  folder.Write("c.zst", Zstd(text)), folder.Write("d", Gzip(text)),
                                  folder.Write("e.gz", Zstd(text))}) {
    const auto file = files.Open(path);
    INFO(path << file.status().ToString());
    REQUIRE(file.ok());
    CHECK(Text(**file) == text);
    CHECK((*file)->path() == path);
    CHECK((*file)->is_copy() == (path.back() != 'a'));
  }
}

TEST_CASE("who opens a file meanwhile shares its copy", "[data][text_files]") {
  const ScratchFolder folder;
  TextFiles files({folder.Path(""), ""});
  const std::string path = folder.Write("a.gz", Gzip(std::string(1'000'000, 'x')));
  std::vector<absl::StatusOr<std::shared_ptr<const DataFile>>> opened(8);
  std::vector<std::thread> threads;
  for (auto& file : opened) threads.emplace_back([&] { file = files.Open(path); });
  for (std::thread& t : threads) t.join();
  for (const auto& file : opened) REQUIRE(file->get() == opened[0]->get());
  // Another content of the same name is another file.
  const std::string gone = path + ".old";
  std::filesystem::rename(path, gone);
  folder.Write("a.gz", Gzip("new"));
  const auto changed = files.Open(path);
  REQUIRE(changed.ok());
  CHECK(Text(**changed) == "new");
  CHECK((*opened[0])->size() == 1'000'000);
  const std::weak_ptr<const DataFile> last = *opened[0];
  opened.clear();
  CHECK(last.expired());
  CHECK(Text(**files.Open(gone)) == std::string(1'000'000, 'x'));
}

TEST_CASE("copies have no name and need a place", "[data][text_files]") {
  const ScratchFolder folder;
  const std::string path = folder.Write("a.zst", Zstd("1 1:1\n"));
  TextFiles files({folder.Path(""), ""});
  const auto file = files.Open(path);
  REQUIRE(file.ok());
  int entries = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(folder.Path(""))) {
    ++entries;
  }
  CHECK(entries == 1);
  TextFiles nowhere({folder.Path("none"), ""});
  CHECK(Error(nowhere, path) ==
        "input file " + path + ": cannot write its decompressed copy to " + folder.Path("none") +
            " (0 bytes so far): No such file or directory; set TMPDIR to a folder that can be "
            "written");
}

TEST_CASE("no room for a copy names the place", "[data][text_files]") {
  const ScratchFolder folder;
  TextFiles files({folder.Path(""), ""});
  const std::string path = folder.Write("a.gz", Gzip(std::string(3'000'000, 'x')));
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small = {1'000'000, before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const absl::Status s = files.Open(path).status();
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(s.code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(s.message())
            .find("input file " + path + ": cannot write its decompressed copy to " +
                  folder.Path("")) == 0);
  CHECK(std::string(s.message()).find("make room there, or set TMPDIR") != std::string::npos);
  REQUIRE(files.Open(path).ok());  // when there is room again
}

TEST_CASE("files that are not what they say", "[data][text_files]") {
  const ScratchFolder folder;
  TextFiles files({folder.Path(""), ""});
  const std::string plain = folder.Write("plain.gz", "1 1:1\n");
  CHECK(Error(files, plain) ==
        "input file " + plain +
            " does not begin as gzip does; is it complete? (A plain file must not be named .gz or "
            ".zst)");
  std::string lines(5000, 'x');
  lines += "1 1:1\n";
  const std::string gzip = Gzip(lines);
  const std::string cut = folder.Write("cut.gz", gzip.substr(0, gzip.size() - 3));
  CHECK(Error(files, cut) == "input file " + cut + " is cut off: it ends at byte " +
                                 std::to_string(gzip.size() - 3) +
                                 " within a gzip member; fetch or compress it again");
  CHECK(files.Open(cut).status().code() == absl::StatusCode::kDataLoss);
  CHECK(Text(**files.Open(folder.Write("empty.gz", ""))).empty());
  CHECK(Text(**files.Open(folder.Write("nothing.gz", Gzip("")))).empty());
}

TEST_CASE("standard input is a file that somebody has spooled", "[data][text_files]") {
  const ScratchFolder folder;
  TextFiles none({folder.Path(""), ""});
  CHECK(Error(none, "-") ==
        "input file -: standard input can be read by `strata train` and `strata predict` only; "
        "write the data to a file");
  TextFiles files({folder.Path(""), folder.Write("spool", Zstd("1 1:1\n"))});
  const auto file = files.Open("-");
  REQUIRE(file.ok());
  CHECK(Text(**file) == "1 1:1\n");
  CHECK((*file)->path() == "standard input");
  CHECK((*files.OpenRaw("-"))->size() == Zstd("1 1:1\n").size());
}

TEST_CASE("paths, folders and globs become files, sorted", "[data][file_list]") {
  const ScratchFolder folder;
  for (const char* day : {"day=2026-11-02", "day=2026-11-10", "day=2026-12-01"}) {
    std::filesystem::create_directory(folder.Path(day));
    for (const char* name : {"part-1", "part-0", "_SUCCESS", ".part-0.crc"}) {
      folder.Write(std::string(day) + "/" + name, "x");
    }
  }
  std::filesystem::create_directory(folder.Path("day=2026-11-02/_below"));
  folder.Write("day=2026-11-02/_below/part-9", "x");
  const std::string odd = folder.Write("a[1]*", "x");
  const auto list = [&](const std::vector<std::string>& names) {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(name == "-" ? name : folder.Path(name));
    const auto files = ListFiles("spec.data.train", paths);
    INFO(files.status().ToString());
    REQUIRE(files.ok());
    std::vector<std::string> out;
    for (const std::string& file : *files) {
      out.push_back(file == "-" ? file : file.substr(folder.Path("").size()));
    }
    return out;
  };
  using Files = std::vector<std::string>;
  const Files november = {"day=2026-11-02/part-0", "day=2026-11-02/part-1", "day=2026-11-10/part-0",
                          "day=2026-11-10/part-1"};
  CHECK(list({"day=2026-11-*/part-*"}) == november);
  CHECK(list({"day=2026-11-*"}) == november);
  CHECK(list({"day=2026-11-02"}) == Files{november[0], november[1]});
  CHECK(list({"day=2026-1[13-9]*/part-?"}) == november);
  CHECK(list({"day=2026-12-01/*", "none", "-", "day=2026-11-02/part-1"}) ==
        Files{"day=2026-12-01/part-0", "day=2026-12-01/part-1", "none", "-",
              "day=2026-11-02/part-1"});
  CHECK(list({"day=2026-12-01/_*"}) == Files{"day=2026-12-01/_SUCCESS"});
  CHECK(list({"a[1]*"}) == Files{"a[1]*"});
  CHECK(list({"none", "none"}) == Files{"none", "none"});
  // A folder of such a name is that folder.
  for (const char* name : {"d[1]", "d1", "d[1]/*"}) {
    std::filesystem::create_directory(folder.Path(name));
    folder.Write(std::string(name) + "/part-0", "x");
  }
  CHECK(list({"d[1]/part-*"}) == Files{"d[1]/part-0"});
  CHECK(list({"d[1]/[*]/part-?"}) == Files{"d[1]/*/part-0"});
  CHECK(list({"d[1]/*/part-?"}) == Files{"d[1]/*/part-0"});
  CHECK(list({"d[12]/part-*"}) == Files{"d1/part-0"});
}

TEST_CASE("what gives no file, or a file twice, is told by its path", "[data][file_list]") {
  const ScratchFolder folder;
  const std::string file = folder.Write("a", "x"), base = folder.Path("");
  std::filesystem::create_directory(folder.Path("hollow"));
  folder.Write("hollow/_SUCCESS", "");
  const auto fault = [&](const std::vector<std::string>& paths, const MayRead& may = nullptr) {
    return std::string(ListFiles("spec.data.eval", paths, {.may_read = may}).status().message());
  };
  CHECK(fault({file, base + "b*"}) == "spec.data.eval[1]: " + base +
                                          "b*: the glob matches no file; mend it, or wait for the "
                                          "files");
  CHECK(fault({base + "hollow"}) ==
        "spec.data.eval[0]: " + base +
            "hollow: the folder has no file (names that begin with . or "
            "_ do not count); name another");
  CHECK(fault({file, base + "?"}) == "spec.data.eval[1]: " + base + "?: " + file +
                                         " is given by spec.data.eval[0] too; name each file once");
  // Nothing of a folder is left out without a word.
  std::filesystem::create_directories(folder.Path("p/x/y"));
  const std::string part = folder.Write("p/part-0", "x"), below = folder.Write("p/x/part-1", "x");
  const std::string among = ": the folder " + base + "p/x lies among the files of " + base +
                            "p, and what is in it would be left out; name " + base +
                            "p/* for its files too, a glob that does not match it, or each file";
  CHECK(fault({base + "p"}) == "spec.data.eval[0]: " + base + "p" + among);
  CHECK(fault({base + "[p]"}) == "spec.data.eval[0]: " + base + "[p]" + among);
  CHECK(fault({base + "p/*"}).find("the folder " + base + "p/x/y lies among the files of") !=
        std::string::npos);
  std::filesystem::remove(folder.Path("p/x/y"));
  CHECK(*ListFiles("x", {base + "p/*"}) == std::vector<std::string>{part, below});
  for (const char* deep : {"p/**/part-*", "**", "p/**"}) {
    CHECK(fault({base + deep}) ==
          "spec.data.eval[0]: " + base + deep +
              ": ** is no pattern for folders of any depth; write one * for each, as in "
              "a/*/*/part-*");
  }
  std::filesystem::create_directory(folder.Path("**"));
  const std::string odd = folder.Write("**/part-0", "x");
  CHECK(*ListFiles("x", {base + "**/part-*"}) == std::vector<std::string>{odd});
  std::filesystem::create_directory(folder.Path("pipes"));
  folder.Write("pipes/a", "x");
  REQUIRE(mkfifo(folder.Path("pipes/b").c_str(), 0600) == 0);
  for (const char* pipe : {"pipes", "pipes/*", "pipe?"}) {
    CHECK(fault({base + pipe}) == "spec.data.eval[0]: " + base + pipe + ": " + base +
                                      "pipes/b is not a regular file; write the data to one, or "
                                      "move it away");
  }
  const auto none = [](const std::string& path) {
    return absl::PermissionDeniedError("not " + path);
  };
  CHECK(fault({base + "*"}, none).find("*: not ") != std::string::npos);
}

TEST_CASE("no folder and no wildcard gives what will be written", "[data][file_list]") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.Path("d"));
  std::filesystem::create_directory(folder.Path("e"));
  std::filesystem::create_directory_symlink(folder.Path("d"), folder.Path("link"));
  folder.Write("d/a", "x");
  const std::string there = folder.Write("d/b.csv", "x"), base = folder.Path("");
  const auto fault = [&](const std::string& path, const std::string& written,
                         const char* field = "--output") {
    const std::vector<WrittenFile> all = {{field, base + "e/other"}, {field, base + written}};
    return std::string(ListFiles("inputs", {base + path}, {.written = all}).status().message());
  };
  CHECK(fault("d", "d/new.csv") ==
        "--output " + base + "d/new.csv would be one of the files that inputs[0], " + base +
            "d, stands for, and be read as one, at once or the next time; write to another folder");
  CHECK(fault("d/*.csv", "d/new.csv", "spec.output.metrics") ==
        "spec.output.metrics: " + base + "d/new.csv would be one of the files that inputs[0], " +
            base +
            "d/*.csv, stands for, and be read as one, at once or the next time; write to another "
            "folder, or to a name that the glob does not match");
  for (const std::string path :
       {"d", "d/*", "d/*.csv", "[d]", "[d]/*.csv", "link", "l*", "?", "*/b*"}) {
    INFO(path);
    const bool old = path == "*/b*";
    for (const char* written : {"d/b.csv", "link/b.csv", "d/../d/b.csv"}) {
      CHECK(fault(path, written).find(" would be one of the files") != std::string::npos);
    }
    CHECK(fault(path, "d/new.csv").empty() == old);
    CHECK(fault(path, "link/new.csv").empty() == old);
  }
  // A glob that gives no file yet.
  CHECK(fault("e/*.csv", "e/new.csv").find(" would be one of the files") != std::string::npos);
  // Names that do not count, or do not match, other folders, and paths that name the file itself.
  for (const auto& [path, written] :
       {std::pair{"d", "d/_new.csv"}, std::pair{"d/*.csv", "d/new"}, std::pair{"d", "e/new"},
        std::pair{"d", "none/new"}, std::pair{"d/b.csv", "d/b.csv"}, std::pair{"d/n", "d/n"}}) {
    INFO(path << " " << written);
    CHECK(fault(path, written).empty());
  }
  CHECK(*ListFiles("inputs", {base + "d"}, {.written = {{"--output", base + "e/new"}}}) ==
        std::vector<std::string>{base + "d/a", there});
}

// Files of which one cannot be looked at.
class FailingDisk : public FileSystem {
 public:
  explicit FailingDisk(std::string path) : path_(std::move(path)) {}
  int Look(const std::string& path, FileInfo& out) override {
    return path == path_ ? -EIO : FileSystem::Look(path, out);
  }

 private:
  const std::string path_;
};

TEST_CASE("what cannot be looked at is told, not left out", "[data][file_list]") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.Path("d"));
  folder.Write("d/a", "x");
  const std::string b = folder.Write("d/b", "x");
  FailingDisk disk(b);
  for (const char* path : {"d", "d/*", "*"}) {
    INFO(path);
    const auto fault = [&](FileSystem& files) {
      return std::string(
          ListFiles("spec.data.train", {folder.Path(path)}, {}, files).status().message());
    };
    CHECK(fault(FileSystem::Kernel()).empty());
    CHECK(fault(disk).find("spec.data.train[0]: " + folder.Path(path) + ": ") == 0);
    CHECK(fault(disk).find(b) != std::string::npos);
    std::filesystem::create_symlink(folder.Path("nowhere"), folder.Path("d/c"));
    CHECK(fault(FileSystem::Kernel()).find(folder.Path("d/c")) != std::string::npos);
    std::filesystem::remove(folder.Path("d/c"));
  }
}

}  // namespace strata
