#include "tests/golden/golden_data.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>

#include "tests/worker/data/files/compressed.h"

namespace strata::golden {
namespace {

constexpr uint64_t kFields = 6;

// Rows first .. end-1 go to one file.
struct Part {
  const char* name;
  uint64_t first, end;
};
constexpr std::array<Part, 3> kParts = {
    {{"train-0", 0, 200}, {"train-1", 200, 320}, {"eval", 320, 400}}};

// splitmix64.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

uint64_t Draw(uint64_t a, uint64_t b, uint64_t c = 0) { return Mix(Mix(Mix(a) + b) + c); }

struct Example {
  bool positive = false;
  std::array<uint64_t, kFields> ids{};  // small ids are more frequent
  uint64_t more = 0;                    // one more id of the last field
  uint64_t number = 0;                  // 0 .. 49
};

// Labels follow a weight of each id, and noise.
Example MakeExample(uint64_t row, uint64_t ids) {
  Example e;
  int score = static_cast<int>(Draw(row, 300) % 9) - 4;
  for (uint64_t f = 0; f < kFields; ++f) {
    const uint64_t random = Draw(row, f);
    e.ids[f] = std::min(random % ids, (random >> 32) % ids);
    score += static_cast<int>(Draw(uint64_t{1} << 32, f, e.ids[f]) % 7) - 3;
  }
  e.positive = score > 0;
  e.more = Draw(row, 100) % ids;
  e.number = Draw(row, 200) % 50;
  return e;
}

std::string Feature(uint64_t field, uint64_t id) { return std::to_string(field * 1000 + id); }

std::string Libfm(const Example& e) {
  std::string line = e.positive ? "1" : "-1";
  for (uint64_t f = 0; f < kFields; ++f) line += ' ' + Feature(f, e.ids[f]) + ":1";
  return line;
}

std::string Libsvm(const Example& e) {
  std::string line = e.positive ? "1" : "0";
  for (uint64_t f = 0; f < kFields; ++f) line += ' ' + Feature(f, e.ids[f]) + ":1";
  return line + " 9000:" + std::to_string(e.number % 4) + ".5";
}

std::string Libffm(const Example& e) {
  std::string line = e.positive ? "1" : "0";
  for (uint64_t f = 0; f < kFields; ++f) {
    line += ' ' + std::to_string(f) + ':' + Feature(f, e.ids[f]) + ":1";
  }
  if (e.more != e.ids[5]) line += " 5:" + Feature(5, e.more) + ":1";
  return line;
}

std::string Csv(const Example& e) {
  const auto id = [&e](const char* prefix, size_t f) { return prefix + std::to_string(e.ids[f]); };
  std::string tags;
  if (e.number % 7 != 0) tags = id("t", 2);
  if (e.number % 7 > 3 && e.more != e.ids[2]) tags += "|t" + std::to_string(e.more);
  return std::string(e.positive ? "1," : "0,") + std::to_string(e.number) + ',' + id("u", 0) + ',' +
         id("c", 1) + ',' + tags + ',' + id("g", 3) + ';' + id("h", 4);
}

void WriteFiles(const User& user, const std::string& name, const std::string& head, uint64_t ids,
                const std::function<std::string(const Example&)>& line) {
  for (const Part& part : kParts) {
    std::string text = head;
    for (uint64_t row = part.first; row < part.end; ++row) {
      text += line(MakeExample(row, ids)) + '\n';
      const bool bad = name == "bad_lines" && (row == 17 || row == 250);
      if (bad) text += "1 not-a-feature\n";
    }
    user.Write("data/" + name + '.' + part.name, text);
  }
}

void WriteCriteo(const User& user) {
  std::string head = "Label";
  for (int i = 1; i <= 13; ++i) head += ",I" + std::to_string(i);
  for (int c = 1; c <= 26; ++c) head += ",C" + std::to_string(c);
  for (const Part& part : kParts) {
    const std::string file = std::string("data/criteo.") + part.name;
    const ProgramResult made =
        user.Strata("generate criteo --vocab 400 --rows " + std::to_string(part.end - part.first) +
                    " --first-row " + std::to_string(part.first) + " --output " + file);
    INFO(made.err);
    REQUIRE(made.exit_code == 0);
    std::string text = user.Read(file);
    std::replace(text.begin(), text.end(), '\t', ',');
    user.Write(std::string("data/criteo_csv.") + part.name, head + '\n' + text);
  }
}

// The csv lines with more labels, of which some are empty, and weights of 0 to 1.5.
std::string Labelled(const std::string& csv) {
  std::string out;
  size_t at = 0;
  for (size_t line = 0; at < csv.size(); ++line) {
    const size_t end = csv.find('\n', at);
    out += csv.substr(at, end - at);
    at = end + 1;
    if (line == 0) {
      out += ",stars,pages,visits,weight\n";
      continue;
    }
    const size_t n = line * 7919 % 31;
    out += n % 5 == 1 ? "," : "," + std::to_string(n % 9) + ".5";
    out += n % 7 == 2 ? "," : "," + std::to_string(n) + ".25";
    out += n % 6 == 3 ? "," : "," + std::to_string(n % 4);
    out += n % 8 == 4 ? ",\n" : "," + std::to_string(n % 3 / 2) + (n % 2 == 0 ? ".5\n" : ".1\n");
  }
  return out;
}

// The csv lines with a weight for the second tag.
std::string WeightedTags(const std::string& csv) {
  std::string out;
  for (size_t i = 0; i < csv.size(); ++i) {
    if (csv[i] == '|') out += ":0.5";
    out += csv[i];
  }
  return out;
}

std::string With(std::string text, char to, char from) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

// The files of csv in other ways to write them, and those of libfm compressed.
void WriteOtherWays(const User& user) {
  for (const Part& part : kParts) {
    const std::string name = part.name;
    const std::string csv = user.Read("data/csv." + name);
    const std::string body = csv.substr(csv.find('\n') + 1);
    user.Write("data/csv_headless." + name, body);
    user.Write("data/csv_labels." + name, Labelled(csv));
    user.Write("data/csv_fields." + name, WeightedTags(csv));
    user.Write("data/csv_tabs." + name, With(body, '\t', ','));
    user.Write("data/csv_semicolons." + name, With(With(csv, '+', ';'), ';', ','));
    const std::string libfm = user.Read("data/libfm." + name);
    user.Write("data/packed." + name, name == "train-1" ? Zstd(libfm) : Gzip(libfm));
  }
  std::string countries;
  for (int i = 0; i < 20; ++i) countries += 'c' + std::to_string(3 * i) + '\n';
  user.Write("data/countries.txt", countries);
}

// Of a job file: what each column of the csv files is.
const std::map<std::string, std::string>& ColumnsOf() {
  static const std::map<std::string, std::string> columns = {
      {"csv",
       "label: clicked, numeric: [age], categorical: [user, country],"
       " multiValued: [{column: tags}, {column: genres, separator: ';', pooling: mean}]"},
      {"csv_headless",
       "header: false, label: '0', numeric: ['1'], categorical: ['2', '3'],"
       " multiValued: [{column: '4', pooling: sum}, {column: '5', separator: ';', pooling: mean}]"},
      {"csv_tabs",
       "header: false, delimiter: '\\t', label: '0', numeric: ['1'], categorical: ['3', '2'],"
       " ignored: ['4'], multiValued: [{column: '5', separator: ';'}]"},
      {"csv_labels",
       "numeric: [age], categorical: [user, country], ignored: ['*'],"
       " multiValued: [{column: tags}]"},
      {"csv_fields", "label: clicked, delimiter: ','"},
      {"csv_sequences", "label: clicked"},
      {"csv_semicolons",
       "header: true, delimiter: ';', label: clicked, categorical: [country, user],"
       " ignored: ['*'], multiValued: [{column: genres, separator: '+', pooling: mean}]"},
  };
  return columns;
}

// Of a job file: tables of the fields of libffm, each with something of its own.
constexpr char kTables[] =
    "  tables:\n"
    "    - {name: item, dim: 4, dramShare: 3}\n"
    "    - {name: user, dim: 4, initScale: 0.1, optimizer: {type: adam}, pullCodec: bf16}\n"
    "    - {name: place, dim: 4, linear: {learningRate: 0.2},\n"
    "       lifeCycle: {admission: {type: exact, minSteps: 2, filterBytes: 64KiB},\n"
    "                   removal: {everySteps: 5, ttlSteps: 8}}}\n"
    "  fields:\n"
    "    - {name: shown, column: '0', kind: multiValued, table: item}\n"
    "    - {name: buyer, column: '1', kind: multiValued, table: user}\n"
    "    - {name: before, column: '2', kind: multiValued, table: item}\n"
    "    - {name: city, column: '3', kind: multiValued, table: place}\n"
    "    - {name: seller, column: '4', kind: multiValued, table: user}\n"
    "    - {name: tags, column: '5', kind: multiValued, table: item}\n";

// Of a job file: the labels of csv_labels, and what is told of them.
constexpr char kLabels[] =
    "  labels:\n"
    "    - {name: click, column: clicked, kind: binary, loss: logloss}\n"
    "    - {name: stars, kind: real, loss: squared, weight: 0.25}\n"
    "    - {name: pages, kind: real, loss: huber, delta: 2.5, weight: 0.125}\n"
    "    - {name: visits, kind: count, loss: poisson, weight: 0.5}\n"
    "  sampleWeight: weight\n"
    "  evaluation: {metrics: [auc, logloss, ne, calibration, gauc(user), mse, mae]}\n";

// Of a job file: the fields of csv_fields.
constexpr char kFieldsOfCsv[] =
    "  fields:\n"
    "    - {name: age, kind: numeric, transform: {type: log}}\n"
    "    - {name: years, column: age, kind: numeric, transform: {type: clip, min: 5, max: 40},"
    " defaultValue: '18'}\n"
    "    - {name: z, column: age, kind: numeric,"
    " transform: {type: standardise, mean: 25, deviation: 14.5}}\n"
    "    - {name: ages, column: age, kind: numeric, table: features,"
    " transform: {type: bucketise, bounds: [10, 20, 40]}}\n"
    "    - {name: user, kind: categorical, hashSeed: 3}\n"
    "    - {name: country, kind: categorical,"
    " vocabulary: {file: ../data/countries.txt, outOfVocabulary: 4}}\n"
    "    - {name: tags, kind: multiValued, separator: '|', weightSeparator: ':', pooling: mean}\n"
    "    - {name: weighted, column: tags, kind: multiValued, weightSeparator: ':',"
    " pooling: sum}\n"
    "    - {name: genres, kind: multiValued, separator: ';', pooling: max, defaultValue: g}\n";

// Of a job file: the columns of csv in tables of two widths, one of them as a sequence.
constexpr char kSequences[] =
    "  tables:\n"
    "    - {name: word, dim: 4}\n"
    "    - {name: person, dim: 3, initScale: 0.1}\n"
    "  fields:\n"
    "    - {name: tags, kind: sequence, maxLength: 2, truncate: newest, table: word}\n"
    "    - {name: user, kind: categorical, table: person}\n"
    "    - {name: country, kind: categorical, table: word}\n"
    "    - {name: genres, kind: multiValued, separator: ';', pooling: mean, table: person}\n"
    "    - {name: age, kind: numeric, transform: {type: log}}\n";

std::string FormatOf(const std::string& name) {
  if (name == "wide" || name == "bad_lines" || name == "packed") return "libfm";
  return ColumnsOf().contains(name) ? "csv" : name;
}

}  // namespace

void WriteData(const User& user) {
  std::filesystem::create_directory(user.Path("data"));
  WriteFiles(user, "libfm", "", 60, Libfm);
  WriteFiles(user, "libsvm", "", 60, Libsvm);
  WriteFiles(user, "libffm", "", 60, Libffm);
  WriteFiles(user, "csv", "clicked,age,user,country,tags,genres\n", 60, Csv);
  WriteFiles(user, "wide", "", 1000, Libfm);
  WriteFiles(user, "bad_lines", "", 60, Libfm);
  WriteCriteo(user);
  WriteOtherWays(user);
}

std::string DataField(const std::string& name) {
  if (name == "libffm_tables") return DataField("libffm") + kTables;
  const bool sequences = name == "csv_sequences";
  const std::string path = "../data/" + (sequences ? "csv" : name);
  const auto columns = ColumnsOf().find(name);
  const std::string more =
      columns == ColumnsOf().end() ? "" : ", columns: {" + columns->second + "}";
  return "  data: {format: " + FormatOf(name) + ", train: [" + path + ".train-0, " + path +
         ".train-1], eval: [" + path + ".eval], shuffle: {bufferLines: 64}" + more + "}\n" +
         (name == "csv_labels" ? kLabels : "") + (name == "csv_fields" ? kFieldsOfCsv : "") +
         (sequences ? kSequences : "");
}

}  // namespace strata::golden
