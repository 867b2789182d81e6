#include "tests/worker/models/products.h"

#include <cstddef>

namespace strata::testing {
namespace {

std::vector<Shape> EveryModel() {
  std::vector<Shape> models = {{"lr", 2, 1, 0, {}, 9, 5},
                               {"fm", 3, 1, 3, {}, 9, 5},
                               {"wide_deep", 3, 1, 3, {4}, 9, 5},
                               {"deepfm", 3, 1, 3, {4}, 9, 5},
                               {"dcn_v2", 3, 1, 2, {4}, 9, 5, false, Fields::kMulti, {}, 1, 2},
                               {"dlrm", 3, 1, 3, {4}, 9, 5, false, Fields::kMulti, {3}},
                               {"shared_bottom", 3, 1, 3, {4}, 9, 5},
                               {"mmoe", 3, 1, 3, {}, 9, 5},
                               {"din", 3, 1, 3, {4}, 9, 5}};
  for (Shape& model : models) {
    if (model.type == "shared_bottom" || model.type == "mmoe") model.tower_hidden = {3};
    if (model.type == "mmoe") {
      model.experts = 2;
      model.expert_hidden = {4};
    }
    if (model.type == "din") {
      model.sequences = 1;
      model.attention_hidden = {3};
    }
  }
  return models;
}

}  // namespace

std::vector<Shape> LossesAndPoolings() {
  std::vector<Shape> shapes;
  for (Shape shape : EveryModel()) {
    shape.named = Fields::kMulti;
    for (const char* loss : {"b", "s", "h", "p", "S", "H"}) {
      shape.labels = loss;
      shapes.insert(shapes.end(), 4, shape);  // sums, if nothing else is said
      const size_t first = shapes.size() - 4;
      shapes[first + 1].values = true;
      shapes[first + 2].mean = true;
      shapes[first + 3].max = true;
    }
  }
  return shapes;
}

}  // namespace strata::testing
