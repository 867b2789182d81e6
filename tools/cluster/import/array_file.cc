#include "tools/cluster/import/array_file.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/cluster/checkpoint/quantise.h"

namespace strata {
namespace {

absl::Status Of(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

absl::StatusOr<std::string> ReadText(const storage::File& file, uint64_t offset, uint64_t bytes) {
  std::string out(bytes, '\0');
  absl::Status s = file.ReadAt(offset, {reinterpret_cast<uint8_t*>(out.data()), out.size()});
  if (!s.ok()) return s;
  return out;
}

std::string Names(const std::vector<ArrayPlace>& tensors) {
  constexpr size_t kMost = 20;
  std::vector<std::string> names;
  for (const ArrayPlace& t : tensors) {
    if (names.size() == kMost) {
      names.push_back(absl::StrCat("... and ", tensors.size() - kMost, " more"));
      break;
    }
    names.push_back(absl::Utf8SafeCEscape(t.tensor));
  }
  return absl::StrJoin(names, ", ");
}

absl::StatusOr<ArrayPlace> FindTensor(const std::string& path, const storage::File& file,
                                      uint64_t size, absl::string_view head,
                                      const std::string& tensor) {
  const auto length = SafetensorsHeaderBytes(head, size);
  if (!length.ok()) return Of(path, length.status());
  const auto json = ReadText(file, 8, *length);
  if (!json.ok()) return json.status();
  auto tensors = ParseSafetensors(*json, size);
  if (!tensors.ok()) return Of(path, tensors.status());
  if (tensor.empty() && tensors->size() == 1) return std::move(tensors->front());
  for (ArrayPlace& place : *tensors) {
    if (place.tensor == tensor) return std::move(place);
  }
  const std::string there =
      tensors->empty() ? "it has none" : absl::StrCat("it has ", Names(*tensors));
  if (tensor.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": name one of its tensors by --tensor; ", there));
  }
  return absl::InvalidArgumentError(absl::StrCat(path, ": no tensor '", tensor, "'; ", there));
}

float FromBfloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Nothing: no such value.
float ElementAt(ElementType type, const uint8_t* at) {
  switch (type) {
    case ElementType::kFloat16:
    case ElementType::kBfloat16: {
      uint16_t bits;
      std::memcpy(&bits, at, sizeof(bits));
      return type == ElementType::kFloat16 ? FromHalf(bits) : FromBfloat16(bits);
    }
    case ElementType::kFloat64: {
      double value;
      std::memcpy(&value, at, sizeof(value));
      return static_cast<float>(value);
    }
    default: {
      float value;
      std::memcpy(&value, at, sizeof(value));
      return value;
    }
  }
}

}  // namespace

absl::StatusOr<ArrayFile> ArrayFile::Open(const std::string& path, const std::string& tensor) {
  auto file = storage::File::Open(path, O_RDONLY);
  if (!file.ok()) return file.status();
  const auto size = file->Size();
  if (!size.ok()) return size.status();
  const auto head = ReadText(*file, 0, std::min<uint64_t>(*size, kMaxNpyHeaderBytes + 12));
  if (!head.ok()) return head.status();
  if (!IsNpy(*head)) {
    auto place = FindTensor(path, *file, *size, *head, tensor);
    if (!place.ok()) return place.status();
    return ArrayFile(*std::move(file), *std::move(place));
  }
  if (!tensor.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is an npy file, which holds one array; leave out --tensor ", tensor));
  }
  auto place = ParseNpy(*head, *size);
  if (!place.ok()) return Of(path, place.status());
  return ArrayFile(*std::move(file), *std::move(place));
}

std::string ArrayFile::name() const {
  if (place_.tensor.empty()) return path();
  return absl::StrCat(path(), ": tensor ", absl::Utf8SafeCEscape(place_.tensor));
}

absl::Status ArrayFile::CheckRows(uint32_t dim) {
  if (!IsFloat(place_.type)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name(), " is of ", place_.dtype,
                     "; rows are float32, float64, float16 or, in safetensors, bfloat16"));
  }
  if (place_.shape.size() != 2 || place_.shape[1] != dim) {
    return absl::InvalidArgumentError(absl::StrCat(name(), " has the shape ",
                                                   ShapeText(place_.shape),
                                                   "; rows of the table's embeddings are (n, ", dim,
                                                   "): save these, or give the table that dim"));
  }
  dim_ = dim;
  return absl::OkStatus();
}

absl::Status ArrayFile::ReadRows(uint64_t first, std::span<float> out) {
  const size_t element = ElementBytes(place_.type);
  bytes_.resize(out.size() * element);
  absl::Status s = ReadBytes(first * dim_ * element, bytes_);
  if (!s.ok()) return s;
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = ElementAt(place_.type, bytes_.data() + i * element);
    if (std::isfinite(out[i])) continue;
    double wide = 0;
    if (place_.type == ElementType::kFloat64) std::memcpy(&wide, &bytes_[i * element], 8);
    const bool beyond = place_.type == ElementType::kFloat64 && std::isfinite(wide);
    return absl::InvalidArgumentError(absl::StrCat(
        name(), ", row ", first + i / dim_, ", column ", i % dim_, " (both from 0): ",
        beyond ? absl::StrCat(wide, " is beyond float32") : absl::StrCat(out[i], " is no number"),
        "; leave the row out, or give it another value"));
  }
  return absl::OkStatus();
}

absl::Status ArrayFile::ReadBytes(uint64_t offset, std::span<uint8_t> out) const {
  return file_.ReadAt(place_.offset + offset, out);
}

}  // namespace strata
