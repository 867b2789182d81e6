#include "tools/cluster/embedded/score_output.h"

namespace strata {

absl::Status ScoreOutput::Open(const PredictionsPlace& place) {
  return place.device ? device_.Open(place.path) : file_.OpenAlone(place.path);
}

absl::Status ScoreOutput::Append(absl::string_view text) {
  return device_.is_open() ? device_.Append(text) : file_.Append(text);
}

absl::Status ScoreOutput::Finish() { return device_.is_open() ? device_.Finish() : file_.Finish(); }

}  // namespace strata
