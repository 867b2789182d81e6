// The metrics of an evaluation, weighted, against those of scikit-learn (Pedregosa et al., JMLR
// 2011), where it is installed.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/skip.h"
#include "tests/temp_folder.h"
#include "worker/eval/task_metrics.h"

namespace strata {
namespace {

constexpr uint32_t kLines = 2000;

// Two labels a line: a binary one and a real one. Many predictions are equal; every fifth line
// weighs nothing.
struct Lines {
  Batch batch;
  std::vector<float> predictions;  // (lines, 2)
};

Lines MakeLines() {
  std::mt19937 random(11);
  Lines lines;
  Batch& b = lines.batch;
  b.Clear();
  b.size = kLines;
  b.tasks = 2;
  for (uint32_t i = 0; i < kLines; ++i) {
    const float p = (static_cast<float>(random() % 200) + 0.5f) / 200;
    const bool positive = static_cast<float>(random() % 1000) < 1000 * (0.2f + 0.5f * p);
    const float stars = static_cast<float>(random() % 50) / 10;
    b.labels.insert(b.labels.end(), {positive ? 1.0f : 0.0f, stars});
    lines.predictions.insert(lines.predictions.end(), {p, 5 * p});
    b.weights.push_back(random() % 5 == 0 ? 0 : static_cast<float>(random() % 1000) / 64);
    b.keys.insert(b.keys.end(), {1000 + random() % 300, random() % 9});
    b.offsets.push_back(2 * (i + 1));
  }
  return lines;
}

constexpr char kScript[] = R"(import sys
try:
    import numpy as np
    from sklearn import metrics as m
except ImportError:
    sys.exit(3)
p, y, q, z, w, g = np.loadtxt(sys.argv[1], dtype=np.float64).T
logloss = m.log_loss(y, p, sample_weight=w)
rate = np.average(y, weights=w)
print("auc", repr(float(m.roc_auc_score(y, p, sample_weight=w))))
print("logloss", repr(float(logloss)))
print("ne", repr(float(logloss / m.log_loss(y, np.full_like(y, rate), sample_weight=w))))
print("calibration", repr(float(np.average(p, weights=w) / rate)))
print("mse", repr(float(m.mean_squared_error(z, q, sample_weight=w))))
print("mae", repr(float(m.mean_absolute_error(z, q, sample_weight=w))))
a = b = 0.0
for k in np.unique(g):
    i = g == k
    if len(np.unique(y[i][w[i] > 0])) < 2:
        continue
    a += w[i].sum() * m.roc_auc_score(y[i], p[i], sample_weight=w[i])
    b += w[i].sum()
print("gauc", repr(float(a / b)))
)";

// By name; nothing: scikit-learn is not installed.
std::optional<std::map<std::string, double>> ScikitLearn(const Lines& lines) {
  const TempFolder folder;
  const std::string data = folder.path() + "/examples", script = folder.path() + "/metrics.py";
  const std::string answer = folder.path() + "/answer", errors = folder.path() + "/errors";
  std::ofstream(script) << kScript;
  std::ofstream out(data);
  out << std::setprecision(17);
  const Batch& b = lines.batch;
  for (uint32_t i = 0; i < kLines; ++i) {
    out << lines.predictions[2 * i] << ' ' << b.labels[2 * i] << ' ' << lines.predictions[2 * i + 1]
        << ' ' << b.labels[2 * i + 1] << ' ' << b.weights[i] << ' ' << b.keys[2 * i + 1] << '\n';
  }
  out.close();
  const char* named = std::getenv("STRATA_PYTHON");
  const std::string python = named != nullptr && *named != '\0' ? named : "/usr/bin/python3";
  const int status = std::system(
      absl::StrCat(python, " ", script, " ", data, " > ", answer, " 2> ", errors).c_str());
  constexpr int kNotInstalled = 3;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotInstalled) return std::nullopt;
  std::ifstream said(errors);
  INFO(std::string(std::istreambuf_iterator<char>(said), {}));
  REQUIRE(status == 0);
  std::map<std::string, double> values;
  std::ifstream in(answer);
  std::string name;
  for (double value = 0; in >> name >> value;) values[name] = value;
  return values;
}

TEST_CASE("metrics are scikit-learn's", "[eval]") {
  const Lines lines = MakeLines();
  const auto expected = ScikitLearn(lines);
  if (!expected) STRATA_SKIP("needs scikit-learn (STRATA_PYTHON names a Python that has it)");
  REQUIRE(expected->size() == 7);
  std::vector<TaskSpec> tasks(2);
  tasks[0].name = "click";
  tasks[1].name = "stars";
  tasks[1].kind = LabelKind::kReal;
  tasks[1].loss = TaskLoss::kSquared;
  MetricsPlan plan;
  plan.by_task = true;
  plan.gauc_field = "user";
  TaskMetrics metrics(tasks, plan, 1);
  metrics.Add(lines.batch, lines.predictions);
  EvaluationResult result;
  metrics.Fill(&result);
  REQUIRE(result.tasks_size() == 2);
  const TaskResult& click = result.tasks(0);
  const TaskResult& stars = result.tasks(1);
  const auto near = [&](const char* name) {
    return Approx(expected->at(name)).epsilon(1e-9).margin(0);
  };
  CHECK(click.auc() == near("auc"));
  CHECK(click.gauc() == near("gauc"));
  CHECK(click.logloss() == near("logloss"));
  CHECK(click.normalised_entropy() == near("ne"));
  CHECK(click.calibration() == near("calibration"));
  CHECK(stars.mse() == near("mse"));
  CHECK(stars.mae() == near("mae"));
}

}  // namespace
}  // namespace strata
