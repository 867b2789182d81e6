// Where a delta is exported to, when the disk does not do what it should.
#include "tools/cluster/export/folder.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/position.h"
#include "storage/delta/file.h"
#include "tests/storage/io/scripted_files.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using storage::ScriptedFiles;
using Call = ScriptedFiles::Call;
using absl::StatusCode;

constexpr char kDelta[] = "delta-000000000010-000000000020.strata";
constexpr char kIndex[] =
    R"({"format":"strata-export","files":[{"name":"delta-000000000010-000000000020.strata"}]})";

// A delta of so many rows, as an export writes it.
absl::Status ExportDelta(const std::string& path, uint64_t rows, ScriptedFiles& files) {
  auto folder = ExportFolder::Open({.path = path,
                                    .files = {kDelta},
                                    .index = kNpyIndexName,
                                    .overwrite = true,
                                    .system = &files});
  if (!folder.ok()) return folder.status();
  storage::DeltaHeader header;
  header.from = {10, {1, 2}};
  header.to = {20, {3, 4}};
  header.tables = {{TableId(0), TableKind::kHashed, 3, 2}};
  auto writer = storage::DeltaWriter::Create((*folder)->PartialPath(kDelta), header, files);
  if (!writer.ok()) return writer.status();
  for (uint64_t p = 0; p < rows; ++p) {
    absl::Status s = (*writer)->Upsert(TableId(0), Position(p), std::vector<uint8_t>(12));
    if (!s.ok()) return s;
  }
  if (auto done = (*writer)->Finish(); !done.ok()) return done.status();
  return (*folder)->Publish(kIndex);
}

uint64_t RowsIn(const std::string& folder) {
  const auto read = storage::VerifyDelta(folder + "/" + kDelta);
  INFO(read.status());
  REQUIRE(read.ok());
  return read->upserts;
}

std::set<std::string> NamesIn(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

// What is there when an export fails, where one was before.
enum class Left : uint8_t { kOld, kNothing, kNew };

struct Fault {
  const char* what;
  Call call;
  int error;
  uint64_t nth;
  StatusCode code;
  const char* remedy;
  Left left;
};

constexpr char kRoom[] = "free disk space";
constexpr char kDisk[] = "look at the disk";
constexpr char kHandles[] = "raise the limit of open files";

// Opened and written: plan, delta (header, block, end), index. Opened as well: the folder, after
// the old index went, after the delta got its name, after the index did.
const Fault kFaults[] = {
    {"no handle", Call::kOpen, EMFILE, 1, StatusCode::kResourceExhausted, kHandles, Left::kOld},
    {"no handle for the delta", Call::kOpen, EMFILE, 2, StatusCode::kResourceExhausted, kHandles,
     Left::kOld},
    {"full at once", Call::kWrite, ENOSPC, 1, StatusCode::kResourceExhausted, kRoom, Left::kOld},
    {"full later", Call::kWrite, ENOSPC, 3, StatusCode::kResourceExhausted, kRoom, Left::kOld},
    {"full at the end", Call::kWrite, ENOSPC, 5, StatusCode::kResourceExhausted, kRoom, Left::kOld},
    {"a write fails", Call::kWrite, EIO, 2, StatusCode::kUnavailable, kDisk, Left::kOld},
    {"the delta's sync fails", Call::kSync, EIO, 2, StatusCode::kUnavailable, kDisk, Left::kOld},
    {"the index's sync fails", Call::kSync, EIO, 3, StatusCode::kUnavailable, kDisk, Left::kOld},
    {"the old index stays", Call::kRemove, EIO, 1, StatusCode::kUnavailable, kDisk, Left::kOld},
    {"the delta's rename fails", Call::kRename, EIO, 1, StatusCode::kUnavailable, kDisk,
     Left::kNothing},
    {"the folder's sync fails", Call::kSync, EIO, 5, StatusCode::kUnavailable, kDisk,
     Left::kNothing},
    {"the index's rename fails", Call::kRename, ENOSPC, 2, StatusCode::kResourceExhausted, kRoom,
     Left::kNothing},
    {"the last sync fails", Call::kSync, EIO, 6, StatusCode::kUnavailable, kDisk, Left::kNew},
};

TEST_CASE("an export that fails leaves the old one, or none that could be taken for one",
          "[export][delta]") {
  for (const Fault& fault : kFaults) {
    CAPTURE(fault.what);
    TempFolder folder;
    ScriptedFiles files(1);
    const std::string out = folder.path() + "/out", after = folder.path() + "/after";
    REQUIRE(ExportDelta(out, 5, files).ok());
    files.Fail(fault.call, fault.error, fault.nth);
    const absl::Status failed = ExportDelta(out, 9, files);
    INFO(failed);
    CHECK(failed.code() == fault.code);
    const std::string text(failed.message());
    CHECK(text.find(out) != std::string::npos);
    CHECK(text.find(fault.remedy) != std::string::npos);
    if (fault.left == Left::kNothing) {
      CHECK(NamesIn(out).empty());
    } else {
      CHECK(NamesIn(out) == std::set<std::string>{kDelta, kNpyIndexName});
      CHECK(RowsIn(out) == (fault.left == Left::kOld ? 5 : 9));
    }
    const absl::Status again = ExportDelta(out, 11, files);
    INFO(again);
    REQUIRE(again.ok());
    CHECK(RowsIn(out) == 11);
    fs::create_directory(after);
    files.PowerLoss(out, after);
    CHECK(fs::exists(after + "/" + kNpyIndexName));
    CHECK(RowsIn(after) == 11);
  }
}

}  // namespace
}  // namespace strata
