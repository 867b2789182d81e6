// The part of array_header.h that reads safetensors.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/cluster/import/array_header.h"

namespace strata {
namespace {

using Json = nlohmann::json;

constexpr size_t kLengthBytes = 8;
constexpr size_t kMaxDimensions = 64;
constexpr int kMaxDepth = 4;

struct Type {
  const char* name;
  ElementType type;
};
constexpr std::array<Type, 12> kTypes = {{{"F16", ElementType::kFloat16},
                                          {"BF16", ElementType::kBfloat16},
                                          {"F32", ElementType::kFloat32},
                                          {"F64", ElementType::kFloat64},
                                          {"I8", ElementType::kInt8},
                                          {"I16", ElementType::kInt16},
                                          {"I32", ElementType::kInt32},
                                          {"I64", ElementType::kInt64},
                                          {"U8", ElementType::kUint8},
                                          {"U16", ElementType::kUint16},
                                          {"U32", ElementType::kUint32},
                                          {"U64", ElementType::kUint64}}};

absl::Status Bad(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("its safetensors header ", why,
                                                 "; save it anew as the safetensors library does"));
}

// A list of whole numbers, none below 0.
std::optional<std::vector<uint64_t>> Numbers(const Json& json, const char* member, size_t most) {
  const auto it = json.find(member);
  if (it == json.end() || !it->is_array() || it->size() > most) return std::nullopt;
  std::vector<uint64_t> out;
  for (const Json& n : *it) {
    if (!n.is_number_unsigned()) return std::nullopt;
    out.push_back(n.get<uint64_t>());
  }
  return out;
}

absl::StatusOr<ArrayPlace> ParseTensor(const std::string& name, const Json& json, uint64_t first,
                                       uint64_t file_bytes) {
  const auto bad = [&](absl::string_view why) {
    return Bad(absl::StrCat("says of tensor '", ShownText(name), "' ", why));
  };
  if (!json.is_object()) return bad("nothing but a value, where an object belongs");
  ArrayPlace out;
  out.tensor = name;
  const auto dtype = json.find("dtype");
  if (dtype == json.end() || !dtype->is_string()) return bad("no dtype");
  out.dtype = ShownText(dtype->get<std::string>());
  for (const Type& type : kTypes) {
    if (out.dtype == type.name) out.type = type.type;
  }
  auto shape = Numbers(json, "shape", kMaxDimensions);
  if (!shape) return bad("no shape of whole numbers");
  out.shape = *std::move(shape);
  const auto offsets = Numbers(json, "data_offsets", 2);
  if (!offsets || offsets->size() != 2 || (*offsets)[1] < (*offsets)[0]) {
    return bad("no data_offsets of a beginning and an end");
  }
  const uint64_t data = file_bytes - first;
  if ((*offsets)[1] > data) {
    return bad(absl::StrCat("that its bytes end at ", (*offsets)[1], ", and the file has ", data,
                            " behind the header, so it was cut off or changed"));
  }
  out.offset = first + (*offsets)[0];
  out.bytes = (*offsets)[1] - (*offsets)[0];
  if (out.type == ElementType::kOther) return out;
  const auto bytes = ShapeBytes(out.shape, ElementBytes(out.type));
  if (!bytes || *bytes != out.bytes) {
    return bad(absl::StrCat("that it has ", out.bytes, " bytes, which ", out.dtype, " ",
                            ShapeText(out.shape), " has not"));
  }
  return out;
}

// Finds a name that an object has twice: of those a parser keeps one, without a word. No member
// does anything but names.
class NameTwice : public nlohmann::json_sax<Json> {
 public:
  // Nothing: none.
  static std::optional<absl::Status> In(absl::string_view json) {
    NameTwice looks;
    Json::sax_parse(json.begin(), json.end(), &looks);
    if (!looks.twice_) return std::nullopt;
    if (looks.names_.size() == 1) {
      return Bad(absl::StrCat("names tensor '", ShownText(*looks.twice_), "' twice"));
    }
    return Bad(absl::StrCat("says '", ShownText(*looks.twice_), "' twice of a tensor"));
  }

  bool key(std::string& name) override {
    if (names_.back().insert(name).second) return true;
    twice_ = name;
    return false;
  }
  bool start_object(size_t) override {
    names_.emplace_back();
    return true;
  }
  bool end_object() override {
    names_.pop_back();
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  std::vector<std::set<std::string>> names_;  // of the objects that are open
  std::optional<std::string> twice_;
};

// How deep objects and lists lie in each other, of whatever text.
int DepthOf(absl::string_view json) {
  int depth = 0, most = 0;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') most = std::max(most, ++depth);
    if (c == '}' || c == ']') --depth;
  }
  return most;
}

}  // namespace

absl::StatusOr<size_t> SafetensorsHeaderBytes(absl::string_view head, uint64_t file_bytes) {
  if (head.size() < kLengthBytes) {
    return absl::InvalidArgumentError(
        "it is neither an npy nor a safetensors file; save the array by numpy.save");
  }
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i > 0; --i) {
    length = length << 8 | static_cast<unsigned char>(head[i - 1]);
  }
  if (length > file_bytes - kLengthBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it is neither an npy nor a whole safetensors file: as the latter its header had ", length,
        " bytes, and the file has ", file_bytes, "; save the array by numpy.save"));
  }
  if (length > kMaxSafetensorsHeaderBytes) {
    return Bad(absl::StrCat("has ", length, " bytes; more than ", kMaxSafetensorsHeaderBytes,
                            " are refused"));
  }
  return static_cast<size_t>(length);
}

absl::StatusOr<std::vector<ArrayPlace>> ParseSafetensors(absl::string_view json,
                                                         uint64_t file_bytes) {
  // A tensor's shape is the deepest that there is. Looked at before: the parser's own way to leave
  // out what is deeper takes a time that is quadratic in the number of members.
  if (DepthOf(json) > kMaxDepth) return Bad("is nested deeper than a tensor's shape");
  const Json header =
      Json::parse(json.begin(), json.end(), /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return Bad("is no JSON object");
  if (const auto twice = NameTwice::In(json)) return *twice;
  const uint64_t first = kLengthBytes + json.size();
  if (first > file_bytes) return Bad("is longer than the file");
  std::vector<ArrayPlace> out;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") continue;
    auto place = ParseTensor(name, value, first, file_bytes);
    if (!place.ok()) return place.status();
    out.push_back(*std::move(place));
  }
  std::sort(out.begin(), out.end(), [](const ArrayPlace& a, const ArrayPlace& b) {
    return std::pair(a.offset, a.offset + a.bytes) < std::pair(b.offset, b.offset + b.bytes);
  });
  for (size_t i = 1; i < out.size(); ++i) {
    if (out[i].offset < out[i - 1].offset + out[i - 1].bytes) {
      return Bad(absl::StrCat("has tensors '", ShownText(out[i - 1].tensor), "' and '",
                              ShownText(out[i].tensor), "' over each other"));
    }
  }
  return out;
}

}  // namespace strata
