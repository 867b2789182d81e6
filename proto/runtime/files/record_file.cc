#include "proto/runtime/files/record_file.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "proto/core/checksum.h"
#include "proto/core/mutation.h"
#include "proto/runtime/files/plain_file.h"

namespace strata {
namespace {

constexpr char kCrcPrefix[] = "crc32c ";
// A manifest is some hundred bytes per file of the checkpoint.
constexpr uint64_t kMaxRecordBytes = uint64_t{256} << 20;
constexpr double kMaxFormat = 1e9;

uint32_t CrcOf(absl::string_view text) {
  return Crc32c({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

absl::Status Damaged(absl::string_view what, absl::string_view path, absl::string_view why) {
  return absl::DataLossError(absl::StrCat(what, " ", path, ": ", why));
}

// The first line, checked.
absl::StatusOr<std::string> ReadJson(const std::string& path, absl::string_view what,
                                     FileSystem& files) {
  auto text = ReadPlainFile(path, kMaxRecordBytes, files);
  if (!text.ok()) return text.status();
  const size_t end = text->find('\n');
  if (end == std::string::npos) return Damaged(what, path, "its second line is missing");
  const absl::string_view json = absl::string_view(*text).substr(0, end);
  const std::string expected = absl::StrFormat("%s%08x\n", kCrcPrefix, CrcOf(json));
  if (absl::string_view(*text).substr(end + 1) != expected &&
      !STRATA_MUTATION("checkpoint.manifest_not_checked")) {
    return Damaged(what, path, "its checksum does not fit its contents");
  }
  text->resize(end);
  return text;
}

}  // namespace

absl::Status WriteRecordFile(const std::string& path, const google::protobuf::Message& record,
                             FileSystem& files) {
  std::string json;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = false;
  if (auto s = google::protobuf::util::MessageToJsonString(record, &json, options); !s.ok()) {
    return absl::InternalError(absl::StrCat(path, ": to JSON: ", std::string(s.message())));
  }
  return WritePlainFile(path, absl::StrFormat("%s\n%s%08x\n", json, kCrcPrefix, CrcOf(json)),
                        files);
}

absl::Status ReadRecordFile(const std::string& path, absl::string_view what,
                            google::protobuf::Message* record, FileSystem& files) {
  const auto json = ReadJson(path, what, files);
  if (!json.ok()) return json.status();
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  auto parsed = google::protobuf::util::JsonStringToMessage(*json, record, options);
  return parsed.ok() ? absl::OkStatus() : Damaged(what, path, std::string(parsed.message()));
}

absl::StatusOr<uint64_t> ReadRecordFormat(const std::string& path, absl::string_view what,
                                          FileSystem& files) {
  const auto json = ReadJson(path, what, files);
  if (!json.ok()) return json.status();
  google::protobuf::Struct fields;
  auto parsed = google::protobuf::util::JsonStringToMessage(*json, &fields);
  if (!parsed.ok()) return Damaged(what, path, std::string(parsed.message()));
  const auto format = fields.fields().find("format");
  if (format == fields.fields().end()) return 0;
  const double number = format->second.number_value();  // 0 of what is no number
  if (number >= 1 && number <= kMaxFormat) return static_cast<uint64_t>(number);
  return Damaged(what, path, "its format is no number above 0");
}

absl::Status CheckFormat(absl::string_view what, absl::string_view path, uint64_t found,
                         uint64_t wanted) {
  if (found == wanted) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(what, " ", path, " has format ", found,
                                               "; this program reads format ", wanted,
                                               "; use the version of strata that wrote it"));
}

}  // namespace strata
