#include "tools/cli/plot/svg_text.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace strata {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";
constexpr absl::string_view kEllipsis = "\xE2\x80\xA6";

// How many bytes the character at the front has, 0 where it is no UTF-8 or not allowed in XML.
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return 0;
  uint32_t code = first & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  const uint32_t least = bytes == 2 ? 0x80 : bytes == 3 ? 0x800 : 0x10000;
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  const bool no_character = (code & 0xFFFE) == 0xFFFE;
  const bool control = code < 0xA0;
  return code < least || code > 0x10FFFF || surrogate || no_character || control ? 0 : bytes;
}

// The text's characters, as they may be shown.
std::vector<absl::string_view> Characters(absl::string_view text) {
  std::vector<absl::string_view> characters;
  while (!text.empty()) {
    const bool space = text[0] == '\t' || text[0] == '\n' || text[0] == '\r';
    const size_t bytes = CharacterBytes(text);
    characters.push_back(space        ? absl::string_view(" ")
                         : bytes == 0 ? kReplacement
                                      : text.substr(0, bytes));
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return characters;
}

double Width(absl::string_view character) {
  if (character.size() >= 3) return 1;  // ideographs, and what few labels have
  const char c = character[0];
  if (character.size() == 1 && absl::string_view("ijl.,:;|!' ").find(c) != std::string::npos) {
    return 0.36;
  }
  const bool wide = c == 'm' || c == 'w' || c == 'M' || c == 'W' || c == '@' || c == '%';
  return wide ? 0.95 : c >= 'A' && c <= 'Z' ? 0.74 : 0.64;
}

}  // namespace

std::string SvgText(absl::string_view text) {
  std::string out;
  for (const absl::string_view character : Characters(text)) {
    if (character == "&") {
      out += "&amp;";
    } else if (character == "<") {
      out += "&lt;";
    } else if (character == ">") {
      out += "&gt;";
    } else if (character == "\"") {
      out += "&quot;";
    } else if (character == "'") {
      out += "&apos;";
    } else {
      absl::StrAppend(&out, character);
    }
  }
  return out;
}

double TextWidth(absl::string_view text) {
  double width = 0;
  for (const absl::string_view character : Characters(text)) width += Width(character);
  return width;
}

std::string Shortened(absl::string_view text, double most) {
  if (TextWidth(text) <= most) return std::string(text);
  const std::vector<absl::string_view> all = Characters(text);
  double room = most - Width(kEllipsis);
  size_t front = 0, back = all.size();
  // The end tells more of a path than its beginning does.
  while (front < back) {
    const bool end = front >= (all.size() - back) / 2;
    const double width = Width(end ? all[back - 1] : all[front]);
    if (width > room) break;
    room -= width;
    end ? --back : ++front;
  }
  return absl::StrCat(absl::StrJoin(all.begin(), all.begin() + front, ""), kEllipsis,
                      absl::StrJoin(all.begin() + back, all.end(), ""));
}

}  // namespace strata
