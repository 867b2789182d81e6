#include "tools/cluster/import/key_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "storage/io/file_io.h"
#include "tools/cluster/import/array_file.h"
#include "tools/cluster/import/array_header.h"
#include "worker/data/files/text_stream.h"

namespace strata {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;

void SkipByteOrderMark(std::string* line) {
  constexpr absl::string_view kMark = "\xEF\xBB\xBF";
  if (absl::StartsWith(*line, kMark)) line->erase(0, kMark.size());
}

class TextKeys : public KeyFile {
 public:
  explicit TextKeys(std::unique_ptr<TextStream> text) : text_(std::move(text)) {}

  absl::StatusOr<bool> Next(std::string* value) override {
    value->clear();
    while (true) {
      const size_t newline = block_.find('\n', at_);
      const size_t end = std::min(newline, block_.size());
      value->append(block_, at_, end - at_);
      at_ = end;
      if (value->size() > kMaxLineBytes) {
        return absl::InvalidArgumentError(absl::StrCat(
            Where(line_), ": the line is longer than the limit of ", kMaxLineBytes, " bytes"));
      }
      if (newline != std::string::npos) {
        ++at_;
        break;
      }
      if (text_->ended()) {
        if (value->empty()) return false;
        break;
      }
      block_.clear();
      at_ = 0;
      if (absl::Status s = text_->Read(nullptr, &block_); !s.ok()) return s;
    }
    if (line_ == 0 && IsNpy(*value)) {
      return absl::InvalidArgumentError(
          absl::StrCat(text_->name(), " is a compressed npy array; decompress it"));
    }
    if (line_ == 0) SkipByteOrderMark(value);
    if (!value->empty() && value->back() == '\r') value->pop_back();
    if (value->empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          Where(line_), ": the line is empty; give a value a line, and as many as there are rows"));
    }
    ++line_;
    return true;
  }
  std::string Where(uint64_t number) const override {
    return absl::StrCat(text_->name(), ":", number + 1);
  }

 private:
  const std::unique_ptr<TextStream> text_;
  std::string block_;
  size_t at_ = 0;  // in the block
  uint64_t line_ = 0;
};

template <typename T>
std::string Decimal(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return absl::StrCat(+value);
}

std::string IntegerAt(ElementType type, const uint8_t* at) {
  switch (type) {
    case ElementType::kInt8:
      return Decimal<int8_t>(at);
    case ElementType::kInt16:
      return Decimal<int16_t>(at);
    case ElementType::kInt32:
      return Decimal<int32_t>(at);
    case ElementType::kInt64:
      return Decimal<int64_t>(at);
    case ElementType::kUint8:
      return Decimal<uint8_t>(at);
    case ElementType::kUint16:
      return Decimal<uint16_t>(at);
    case ElementType::kUint32:
      return Decimal<uint32_t>(at);
    default:
      return Decimal<uint64_t>(at);
  }
}

class ArrayKeys : public KeyFile {
 public:
  explicit ArrayKeys(ArrayFile file) : file_(std::move(file)) {}

  absl::StatusOr<bool> Next(std::string* value) override {
    const size_t element = ElementBytes(file_.place().type);
    if (at_ == block_.size()) {
      const uint64_t left = file_.place().bytes - read_;
      if (left == 0) return false;
      block_.resize(std::min<uint64_t>(left, kBlockBytes));
      if (absl::Status s = file_.ReadBytes(read_, block_); !s.ok()) return s;
      read_ += block_.size();
      at_ = 0;
    }
    *value = IntegerAt(file_.place().type, block_.data() + at_);
    at_ += element;
    return true;
  }
  std::string Where(uint64_t number) const override {
    return absl::StrCat(file_.path(), ", row ", number);
  }

 private:
  const ArrayFile file_;
  uint64_t read_ = 0;  // bytes of the array
  std::vector<uint8_t> block_;
  size_t at_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<KeyFile>> KeyFile::Open(const std::string& path) {
  auto file = storage::File::Open(path, O_RDONLY);
  if (!file.ok()) return file.status();
  const auto size = file->Size();
  if (!size.ok()) return size.status();
  std::string head(std::min<uint64_t>(*size, 6), '\0');
  absl::Status s = file->ReadAt(0, {reinterpret_cast<uint8_t*>(head.data()), head.size()});
  if (!s.ok()) return s;
  if (!IsNpy(head)) {
    auto text = TextStream::Open(path, /*standard_input=*/-1);
    if (!text.ok()) return text.status();
    return std::make_unique<TextKeys>(*std::move(text));
  }
  auto array = ArrayFile::Open(path, "");
  if (!array.ok()) return array.status();
  const ArrayPlace& place = array->place();
  if (!IsInteger(place.type) || place.shape.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is an array ", ShapeText(place.shape), " of ", place.dtype,
                     "; keys are (n,) of integers, or a text file of one value a line"));
  }
  return std::make_unique<ArrayKeys>(*std::move(array));
}

}  // namespace strata
