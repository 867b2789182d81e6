#include "tools/generate/movielens_generator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/natural_log.h"
#include "proto/core/position.h"
#include "tools/generate/zipf.h"

namespace strata {
namespace {

constexpr uint32_t kGenres = 8;
constexpr uint32_t kMostTags = 3;
constexpr uint32_t kFirstItems = 6;  // that a user begins with
constexpr double kZipf = 0.8;        // of items within their genre

// Parts of a click's logit.
constexpr double kConstant = -0.6;
constexpr double kUserWeight = 0.4;
constexpr double kItemWeight = 0.6;
constexpr double kTagBonus = 0.7;
constexpr double kPriceSlope = 0.5;
constexpr double kAffinity = 3.0;
constexpr double kFading = 0.9;  // of an item of the same genre, for each newer one

uint64_t Hash(std::initializer_list<uint64_t> parts) {
  uint64_t h = 0;
  for (const uint64_t part : parts) h = Mix64((h ^ part) + 0x9e3779b97f4a7c15ull);
  return h;
}

// Evenly in [-sqrt(3), sqrt(3)): mean 0, variance 1.
double Centered(uint64_t bits) {
  return (static_cast<double>(bits & 0xffff) + 0.5) * (2 * 1.7320508075688772 / 65536) -
         1.7320508075688772;
}

// Mean 0, variance 1, nearly normal: the sum of twelve.
double NearlyNormal(RandomStream& random) {
  double sum = -6.0;
  for (int i = 0; i < 12; ++i) sum += random.Uniform();
  return sum;
}

double Sigmoid(double x) { return 1.0 / (1.0 + NaturalExp(-std::clamp(x, -30.0, 30.0))); }

struct Item {
  uint32_t genre = 0;
  double flavour = 1;  // 1 or -1
  double weight = 0;
  double quality = 0;
  uint32_t cents = 0;
};

struct User {
  double weight = 0;
  double leniency = 0;
  std::vector<uint32_t> tags;     // genres
  std::vector<uint32_t> history;  // items, oldest first
};

class Generator : public MovielensGenerator {
 public:
  explicit Generator(const MovielensGeneratorOptions& options)
      : seed_(options.seed), most_history_(options.most_history) {
    for (uint32_t i = 0; i < options.items; ++i) items_.push_back(MakeItem(i));
    for (uint32_t g = 0; g < kGenres; ++g) {
      genres_.emplace_back((options.items - g + kGenres - 1) / kGenres, kZipf);
    }
    for (uint32_t u = 0; u < options.users; ++u) users_.push_back(MakeUser(u));
  }

  MovielensRow AppendRow(std::string* out) override;

 private:
  Item MakeItem(uint32_t i) const;
  User MakeUser(uint32_t u) const;
  // Items i, i + kGenres, ... are of one genre, by how often they are drawn.
  uint32_t DrawOfGenre(uint32_t genre, RandomStream& random) const {
    return genre + kGenres * static_cast<uint32_t>(genres_[genre].Draw(random));
  }
  // Half of the rows show something like what the user clicked.
  uint32_t DrawItem(const User& user, RandomStream& random) const;
  double Affinity(const User& user, const Item& item) const;
  void Write(uint32_t user, uint32_t item, bool has_price, const MovielensRow& row, double weight,
             std::string* out) const;

  const uint64_t seed_;
  const uint32_t most_history_;
  std::vector<Item> items_;
  std::vector<ZipfDistribution> genres_;
  std::vector<User> users_;
  uint64_t next_ = 0;
};

Item Generator::MakeItem(uint32_t i) const {
  RandomStream random(Hash({seed_, 11, i}));
  Item item;
  item.genre = i % kGenres;
  item.flavour = (random.Next() >> 40) % 2 == 0 ? 1.0 : -1.0;
  item.weight = Centered(random.Next() >> 32);
  item.quality = Centered(random.Next() >> 32);
  // From 1 to about 50, the logarithm even.
  item.cents = static_cast<uint32_t>(100.0 * NaturalExp(4.0 * random.Uniform()));
  return item;
}

User Generator::MakeUser(uint32_t u) const {
  RandomStream random(Hash({seed_, 12, u}));
  User user;
  user.weight = Centered(random.Next() >> 32);
  user.leniency = Centered(random.Next() >> 32);
  const uint32_t tags = static_cast<uint32_t>((random.Next() >> 32) % (kMostTags + 1));
  for (uint32_t t = 0; t < tags; ++t) {
    const uint32_t genre = static_cast<uint32_t>((random.Next() >> 32) % kGenres);
    if (std::find(user.tags.begin(), user.tags.end(), genre) == user.tags.end()) {
      user.tags.push_back(genre);
    }
  }
  for (uint32_t h = 0; h < std::min(kFirstItems, most_history_); ++h) {
    const bool follows = !user.tags.empty() && h % 2 == 0;
    const uint32_t genre = follows ? user.tags[h / 2 % user.tags.size()]
                                   : static_cast<uint32_t>((random.Next() >> 32) % kGenres);
    user.history.push_back(DrawOfGenre(genre, random));
  }
  return user;
}

uint32_t Generator::DrawItem(const User& user, RandomStream& random) const {
  const uint64_t bits = random.Next();
  if ((bits & 1) == 0) {
    return DrawOfGenre(static_cast<uint32_t>((bits >> 32) % kGenres), random);
  }
  const uint32_t like = user.history[(bits >> 32) % user.history.size()];
  return DrawOfGenre(items_[like].genre, random);
}

double Generator::Affinity(const User& user, const Item& item) const {
  double sum = 0;
  double weight = 1;
  for (auto h = user.history.rbegin(); h != user.history.rend(); ++h) {
    const Item& before = items_[*h];
    if (before.genre != item.genre) continue;
    sum += weight * before.flavour * item.flavour;
    weight *= kFading;
  }
  return sum / (1.0 + std::fabs(sum));
}

MovielensRow Generator::AppendRow(std::string* out) {
  RandomStream random(Hash({seed_, 13, next_++}));
  const uint32_t u = static_cast<uint32_t>((random.Next() >> 32) % users_.size());
  User& user = users_[u];
  const uint32_t i = DrawItem(user, random);
  const Item& item = items_[i];
  const double affinity = Affinity(user, item);
  const bool has_price = (random.Next() >> 60) != 0;
  const bool follows = std::find(user.tags.begin(), user.tags.end(), item.genre) != user.tags.end();
  // The mean of the logarithm stands for a price that is missing.
  const double log_price = has_price ? ops::NaturalLog(1.0 + item.cents / 100.0) : 2.2;
  MovielensRow row;
  row.click_probability =
      Sigmoid(kConstant + kUserWeight * user.weight + kItemWeight * item.weight +
              (follows ? kTagBonus : 0.0) - kPriceSlope * (log_price - 2.2) + kAffinity * affinity);
  row.clicked = random.Uniform() < row.click_probability;
  row.mean_rating =
      std::clamp(3.2 + 0.5 * item.quality + 0.3 * user.leniency + 0.6 * affinity, 0.5, 5.0);
  const double rating = row.mean_rating + 0.5 * NearlyNormal(random);
  row.rating = std::clamp(std::floor(2.0 * rating + 0.5), 1.0, 10.0) / 2.0;
  const uint64_t bits = random.Next();
  row.rated = row.clicked || (bits & 3) == 0;
  constexpr std::array<double, 4> kWeights = {0.5, 1.0, 1.0, 2.0};
  Write(u, i, has_price, row, kWeights[(bits >> 8) & 3], out);
  if (!row.clicked) return row;
  if (user.history.size() == most_history_) user.history.erase(user.history.begin());
  user.history.push_back(i);
  return row;
}

void Generator::Write(uint32_t u, uint32_t i, bool has_price, const MovielensRow& row,
                      double weight, std::string* out) const {
  const User& user = users_[u];
  absl::StrAppend(out, "u", u, ",i", i, ",");
  for (size_t h = 0; h < user.history.size(); ++h) {
    absl::StrAppend(out, h == 0 ? "i" : "|i", user.history[h]);
  }
  absl::StrAppend(out, ",");
  for (size_t t = 0; t < user.tags.size(); ++t) {
    absl::StrAppend(out, t == 0 ? "t" : "|t", user.tags[t]);
  }
  absl::StrAppend(out, ",");
  if (has_price) {
    const uint32_t cents = items_[i].cents % 100;
    absl::StrAppend(out, items_[i].cents / 100, cents < 10 ? ".0" : ".", cents);
  }
  absl::StrAppend(out, ",", row.clicked ? "1" : "0", ",");
  if (row.rated) absl::StrAppend(out, row.rating);
  absl::StrAppend(out, ",", weight, "\n");
}

}  // namespace

const char* MovielensGenerator::Header() {
  return "user_id,item_id,clicked_items,tags,price,clicked,rating,weight\n";
}

absl::StatusOr<std::unique_ptr<MovielensGenerator>> MovielensGenerator::Make(
    const MovielensGeneratorOptions& options) {
  constexpr uint32_t kMost = 100'000'000;
  if (options.users < 1 || options.users > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("users: ", options.users, " is not in 1 .. ", kMost));
  }
  if (options.items < 64 || options.items > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("items: ", options.items, " is not in 64 .. ", kMost));
  }
  if (options.most_history < 1 || options.most_history > 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat("history: ", options.most_history, " is not in 1 .. 4096"));
  }
  return std::unique_ptr<MovielensGenerator>(std::make_unique<Generator>(options));
}

}  // namespace strata
