#include "tools/cluster/checkpoint/quantised_copy.h"

#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "proto/core/checksum.h"
#include "storage/io/file_io.h"

namespace strata {
namespace {

using Json = nlohmann::json;

// Some hundred bytes per array.
constexpr uint64_t kMostIndexBytes = uint64_t{16} << 20;
constexpr uint64_t kChunk = uint64_t{1} << 20;

uint32_t CrcOf(absl::string_view text) {
  return Crc32c({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

// The line that follows what it sums up, and the object's end.
std::string SealOf(absl::string_view summed) {
  return absl::StrFormat(" \"crc32c\": \"%08x\"\n}\n", CrcOf(summed));
}

// Of a member of an object; empty and 0 where it is not there, or of another type.
std::string TextOf(const Json& json, const char* name) {
  if (!json.is_object() || !json.contains(name) || !json[name].is_string()) return "";
  return json[name].get<std::string>();
}
uint64_t NumberOf(const Json& json, const char* name) {
  if (!json.is_object() || !json.contains(name) || !json[name].is_number_unsigned()) return 0;
  return json[name].get<uint64_t>();
}

absl::StatusOr<std::string> ReadIndex(const std::string& path) {
  auto file = storage::File::Open(path, O_RDONLY);
  if (!file.ok()) return file.status();
  const auto bytes = file->Size();
  if (!bytes.ok()) return bytes.status();
  if (*bytes > kMostIndexBytes) {
    return absl::DataLossError(
        absl::StrCat(path, " has ", *bytes, " bytes; an index has at most ", kMostIndexBytes));
  }
  std::string text(*bytes, '\0');
  absl::Status s = file->ReadAt(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
  if (!s.ok()) return s;
  return text;
}

absl::Status CheckFile(const std::string& path, uint64_t bytes, absl::string_view crc32c) {
  auto file = storage::File::Open(path, O_RDONLY);
  if (absl::IsNotFound(file.status())) return absl::DataLossError(file.status().message());
  if (!file.ok()) return file.status();
  const auto size = file->Size();
  if (!size.ok()) return size.status();
  if (*size != bytes) {
    return absl::DataLossError(
        absl::StrCat(path, " has ", *size, " bytes; the index says ", bytes));
  }
  const auto buffer = std::make_unique<uint8_t[]>(kChunk);
  uint32_t crc = 0;
  for (uint64_t at = 0; at < bytes;) {
    const std::span<uint8_t> part(buffer.get(), std::min(kChunk, bytes - at));
    if (absl::Status s = file->ReadAt(at, part); !s.ok()) return s;
    crc = Crc32cExtend(crc, part);
    at += part.size();
  }
  const std::string found = absl::StrFormat("%08x", crc);
  if (found == crc32c) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path, " has CRC32C ", found, "; the index says ", crc32c));
}

}  // namespace

std::string SealQuantisedIndex(absl::string_view json) {
  absl::ConsumeSuffix(&json, "\n}");
  const std::string summed = absl::StrCat(json, ",\n");
  return absl::StrCat(summed, SealOf(summed));
}

bool IsQuantisedCopy(const std::string& folder) {
  const auto text = ReadIndex(absl::StrCat(folder, "/", kQuantisedIndexName));
  return text.ok() && absl::StrContains(*text, absl::StrCat("\"", kQuantisedFormat, "\""));
}

// 1 the index by its own checksum  2 every file that it names.
absl::StatusOr<QuantisedCopy> VerifyQuantised(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kQuantisedIndexName);
  const auto text = ReadIndex(path);
  if (!text.ok()) return text.status();
  const auto damaged = [&path](absl::string_view why) {
    return absl::DataLossError(absl::StrCat(path, ": ", why));
  };
  const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (NumberOf(json, "version") == 1 && !json.contains("crc32c")) {
    return absl::UnimplementedError(
        absl::StrCat(path, " has version 1, which has no checksums: quantise the checkpoint anew"));
  }
  const size_t seal = SealOf("").size();
  if (text->size() < seal) return damaged("it ends too early");
  const absl::string_view summed = absl::string_view(*text).substr(0, text->size() - seal);
  if (absl::string_view(*text).substr(summed.size()) != SealOf(summed)) {
    return damaged("its checksum does not fit its contents");
  }
  if (TextOf(json, "format") != kQuantisedFormat) {
    return damaged("it is not the index of a quantised copy");
  }
  if (NumberOf(json, "version") != kQuantisedVersion) {
    return absl::UnimplementedError(absl::StrCat(path, " has version ", NumberOf(json, "version"),
                                                 "; this program reads ", kQuantisedVersion));
  }
  QuantisedCopy copy;
  copy.folder = folder;
  copy.type = TextOf(json, "type");
  copy.checkpoint = TextOf(json, "checkpoint");
  copy.model_hash = TextOf(json, "modelHash");
  copy.step = NumberOf(json, "step");
  if (!json.contains("files") || !json["files"].is_array()) return damaged("it names no files");
  for (const Json& file : json["files"]) {
    const std::string name = TextOf(file, "name");
    if (name.empty() || absl::StrContains(name, "/")) return damaged("it names a file elsewhere");
    const uint64_t bytes = NumberOf(file, "bytes");
    absl::Status s = CheckFile(absl::StrCat(folder, "/", name), bytes, TextOf(file, "crc32c"));
    if (!s.ok()) return s;
    ++copy.files;
    copy.bytes += bytes;
  }
  return copy;
}

}  // namespace strata
