#include "tools/cluster/import/array_header.h"

#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace strata {
namespace {

struct Type {
  const char* npy;  // without the byte order
  ElementType type;
  size_t bytes;
};
constexpr std::array<Type, 11> kTypes = {{{"f2", ElementType::kFloat16, 2},
                                          {"f4", ElementType::kFloat32, 4},
                                          {"f8", ElementType::kFloat64, 8},
                                          {"i1", ElementType::kInt8, 1},
                                          {"i2", ElementType::kInt16, 2},
                                          {"i4", ElementType::kInt32, 4},
                                          {"i8", ElementType::kInt64, 8},
                                          {"u1", ElementType::kUint8, 1},
                                          {"u2", ElementType::kUint16, 2},
                                          {"u4", ElementType::kUint32, 4},
                                          {"u8", ElementType::kUint64, 8}}};

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicBytes = 6;

absl::Status Bad(absl::string_view why) { return absl::InvalidArgumentError(why); }

// A literal of Python as numpy writes it: strings, True and False, and tuples of whole numbers.
class Literal {
 public:
  explicit Literal(absl::string_view text) : rest_(text) {}

  bool Take(char c) {
    Skip();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::optional<std::string> String() {
    Skip();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return std::nullopt;
    const size_t end = rest_.find(rest_[0], 1);
    if (end == absl::string_view::npos) return std::nullopt;
    std::string out(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return out;
  }
  std::optional<bool> Bool() {
    Skip();
    for (const bool value : {true, false}) {
      const absl::string_view word = value ? "True" : "False";
      if (rest_.substr(0, word.size()) != word) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    return std::nullopt;
  }
  std::optional<std::vector<uint64_t>> Tuple() {
    std::vector<uint64_t> out;
    if (!Take('(')) return std::nullopt;
    while (!Take(')')) {
      const auto number = Number();
      if (!number) return std::nullopt;
      out.push_back(*number);
      if (Take(',')) continue;
      if (!Take(')')) return std::nullopt;
      break;
    }
    return out;
  }
  bool AtEnd() {
    Skip();
    return rest_.empty();
  }

 private:
  void Skip() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  std::optional<uint64_t> Number() {
    Skip();
    uint64_t out = 0;
    size_t digits = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits) {
      if (digits == 19) return std::nullopt;  // 10^19 fits 64 bits
      out = out * 10 + static_cast<uint64_t>(rest_[digits] - '0');
    }
    if (digits == 0) return std::nullopt;
    rest_.remove_prefix(digits);
    return out;
  }

  absl::string_view rest_;
};

struct NpyDict {
  std::optional<std::string> descr;
  std::optional<bool> fortran;
  std::optional<std::vector<uint64_t>> shape;
};

std::optional<NpyDict> ParseDict(absl::string_view text) {
  Literal in(text);
  NpyDict out;
  if (!in.Take('{')) return std::nullopt;
  while (!in.Take('}')) {
    const auto key = in.String();
    if (!key || !in.Take(':')) return std::nullopt;
    if (*key == "descr" && !out.descr) {
      out.descr = in.String();
      if (!out.descr) return std::nullopt;
    } else if (*key == "fortran_order" && !out.fortran) {
      out.fortran = in.Bool();
      if (!out.fortran) return std::nullopt;
    } else if (*key == "shape" && !out.shape) {
      out.shape = in.Tuple();
      if (!out.shape) return std::nullopt;
    } else {
      return std::nullopt;
    }
    if (in.Take(',')) continue;
    if (!in.Take('}')) return std::nullopt;
    break;
  }
  if (!in.AtEnd() || !out.descr || !out.fortran || !out.shape) return std::nullopt;
  return out;
}

absl::StatusOr<ElementType> NpyType(const std::string& descr) {
  const std::string is = absl::StrCat("its dtype is ", ShownText(descr), ", ");
  const char order = descr.empty() ? ' ' : descr[0];
  const std::string kind = descr.substr(descr.empty() ? 0 : 1);
  for (const Type& type : kTypes) {
    if (kind != type.npy) continue;
    if (order == '<' || (order == '|' && type.bytes == 1)) return type.type;
    if (order == '>') {
      return Bad(absl::StrCat(is, "big-endian; save it as array.astype('<", kind, "')"));
    }
  }
  if (kind == "V2") {
    return Bad(absl::StrCat(
        is, "which may be bfloat16; save it as array.astype('<f4'), or in safetensors"));
  }
  if (!kind.empty() && (kind[0] == 'U' || kind[0] == 'S' || kind[0] == 'O')) {
    return Bad(absl::StrCat(is, "text or objects; write a text file of one value a line instead"));
  }
  return Bad(absl::StrCat(
      is, "not one of f2, f4, f8, i1 to i8 and u1 to u8; save it as array.astype('<f4')"));
}

}  // namespace

std::optional<uint64_t> ShapeBytes(const std::vector<uint64_t>& shape, size_t element_bytes) {
  unsigned __int128 bytes = element_bytes;
  for (const uint64_t n : shape) {
    bytes *= n;
    if (bytes > std::numeric_limits<uint64_t>::max()) return std::nullopt;
  }
  return static_cast<uint64_t>(bytes);
}

size_t ElementBytes(ElementType type) {
  if (type == ElementType::kBfloat16) return 2;
  for (const Type& t : kTypes) {
    if (t.type == type) return t.bytes;
  }
  return 0;
}

bool IsFloat(ElementType type) { return type <= ElementType::kFloat64; }

bool IsInteger(ElementType type) {
  return type >= ElementType::kInt8 && type <= ElementType::kUint64;
}

std::string ShownText(const std::string& text) {
  constexpr size_t kMost = 100;
  const std::string shown = absl::Utf8SafeCEscape(text.substr(0, kMost));
  return text.size() <= kMost ? shown : absl::StrCat(shown, "...");
}

std::string ShapeText(const std::vector<uint64_t>& shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)" : ")");
}

bool IsNpy(absl::string_view head) {
  return head.substr(0, kMagicBytes) == absl::string_view(kMagic, kMagicBytes);
}

absl::StatusOr<ArrayPlace> ParseNpy(absl::string_view head, uint64_t file_bytes) {
  if (!IsNpy(head)) {
    return Bad("it does not begin as an npy file does (\\x93NUMPY); save it by numpy.save");
  }
  if (head.size() < kMagicBytes + 4) return Bad("it is cut off within its header; save it again");
  const auto byte = [&](size_t i) { return size_t{static_cast<unsigned char>(head[i])}; };
  const size_t version = byte(kMagicBytes);
  if (version < 1 || version > 3) {
    return Bad(absl::StrCat("it is of npy version ", version, "; save it as 1.0, 2.0 or 3.0"));
  }
  const size_t prefix = kMagicBytes + (version == 1 ? 4 : 6);
  if (head.size() < prefix) return Bad("it is cut off within its header; save it again");
  size_t length = 0;
  for (size_t i = prefix; i > kMagicBytes + 2; --i) length = length << 8 | byte(i - 1);
  if (length > kMaxNpyHeaderBytes) {
    return Bad(absl::StrCat("its header has ", length, " bytes; more than ", kMaxNpyHeaderBytes,
                            " are refused; save one plain array of numbers with numpy.save"));
  }
  if (prefix + length > head.size()) return Bad("it is cut off within its header; save it again");
  auto dict = ParseDict(head.substr(prefix, length));
  if (!dict) {
    return Bad(
        "its header is not {'descr': '<f4', 'fortran_order': False, 'shape': (n, dim)} or alike; "
        "save one plain array of numbers with numpy.save");
  }
  ArrayPlace out;
  out.dtype = ShownText(*dict->descr);
  const auto type = NpyType(*dict->descr);
  if (!type.ok()) return type.status();
  out.type = *type;
  out.shape = *std::move(dict->shape);
  if (*dict->fortran && out.shape.size() > 1) {
    return Bad("it is in Fortran order; save numpy.ascontiguousarray(array)");
  }
  out.offset = prefix + length;
  if (file_bytes < out.offset) return Bad("it is cut off within its header; save it again");
  const auto bytes = ShapeBytes(out.shape, ElementBytes(out.type));
  if (!bytes || *bytes != file_bytes - out.offset) {
    const std::string said =
        bytes ? absl::StrCat(*bytes, " bytes") : std::string("more than 2^64 bytes");
    return Bad(absl::StrCat("an array ", ShapeText(out.shape), " of ", out.dtype, " has ", said,
                            ", and behind the header are ", file_bytes - out.offset,
                            "; it was cut off or changed: save it again"));
  }
  out.bytes = *bytes;
  return out;
}

}  // namespace strata
