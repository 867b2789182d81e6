// Text in an SVG.
#ifndef STRATA_TOOLS_CLI_PLOT_SVG_TEXT_H_
#define STRATA_TOOLS_CLI_PLOT_SVG_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace strata {

// As it stands between tags or in an attribute's quotes. A byte that is no UTF-8, and a character
// that XML forbids, becomes U+FFFD; a tab or an end of line a space.
std::string SvgText(absl::string_view text);

// About how wide it is, in parts of the font's size: rather too much than too little, as the font
// is the reader's.
double TextWidth(absl::string_view text);

// `text`, or where it is wider than `most` its two ends with an ellipsis in between.
std::string Shortened(absl::string_view text, double most);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_PLOT_SVG_TEXT_H_
