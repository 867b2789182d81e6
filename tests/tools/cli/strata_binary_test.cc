// The program `strata` itself: exit codes, and which stream says what.
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "tests/temp_folder.h"

namespace {

const std::string& Folder() {
  static const strata::TempFolder folder;
  return folder.path();
}

std::string Read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Result {
  int exit_code = -1;
  std::string out, err;
};

// Runs strata with arguments as a shell splits them, in a folder of its own. What it says goes to
// the files out and err, whose names begin with `say`: one of its own for who runs beside others.
Result Run(const std::string& arguments, const std::string& input = "/dev/null",
           const std::string& say = "") {
  const std::string program = std::string(std::getenv("TEST_SRCDIR")) + "/strata/tools/cli/strata";
  const std::string command = "cd '" + Folder() + "' && XDG_CONFIG_HOME='" + Folder() +
                              "/config' '" + program + "' " + arguments + " >" + say + "out 2>" +
                              say + "err <" + input;
  Result result;
  const int status = std::system(command.c_str());
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
  result.out = Read(Folder() + "/" + say + "out");
  result.err = Read(Folder() + "/" + say + "err");
  return result;
}

void Write(const std::string& name, const std::string& text) {
  std::ofstream(Folder() + "/" + name) << text;
}

constexpr char kJob[] =
    "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: j}\n"
    "spec: {data: {format: criteo, train: [gone.tsv]}, model: {type: lr}}\n";

TEST_CASE("logs are printed as text and as JSON", "[strata]") {
  REQUIRE(std::system(("mkdir -p '" + Folder() + "/c/logs'").c_str()) == 0);
  Write("c/logs/server-0.log", "event=x y=\"1\"\n");
  CHECK(Run("logs --dir c").out == "server-0 event=x y=\"1\"\n");
  const Result json = Run("logs --dir c --json");
  CHECK(json.exit_code == 0);
  CHECK(json.out == "{\"process\":\"server-0\",\"line\":\"event=x y=\\\"1\\\"\"}\n");
  CHECK(json.err.empty());
  CHECK(Run("down --dir c --json").out.empty());  // nothing runs there: an error, and no data
}

TEST_CASE("data are on stdout, messages on stderr", "[strata]") {
  const Result version = Run("version");
  CHECK(version.exit_code == 0);
  CHECK(version.out.find("strata ") == 0);
  CHECK(version.err.empty());
  CHECK(Run("version --json").out.find("{\"version\":\"") == 0);
  const Result wrong = Run("trian");
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.out.empty());
  CHECK(wrong.err.find("did you mean 'train'?") != std::string::npos);
  CHECK(Run("").exit_code == 2);
  CHECK(Run("--help").exit_code == 0);
}

TEST_CASE("a bad job file is exit code 2 in every command that reads one", "[strata]") {
  Write("bad.yaml", "apiVersion: strata/v1\nspec:\n  trainning: {}\n");
  Write("torn.yaml", "apiVersion: strata/v1\nspec:\n  data: {train: [a.tsv\n");
  for (const char* command : {"train", "validate", "submit", "estimate"}) {
    INFO(command);
    const Result torn = Run(std::string(command) + " -f torn.yaml");
    CHECK(torn.exit_code == 2);
    CHECK(torn.out.empty());
    CHECK(torn.err.find("strata: torn.yaml:4:1: ") == 0);
    CHECK(std::count(torn.err.begin(), torn.err.end(), '\n') == 1);
    const Result r = Run(std::string(command) + " -f bad.yaml");
    CHECK(r.exit_code == 2);
    CHECK(r.out.empty());
    CHECK(r.err ==
          "strata: bad.yaml:3:3: spec: unknown field 'trainning'; did you mean 'training'?\n");
  }
  CHECK(Run("train -f none.yaml").err == "strata: none.yaml: No such file or directory\n");
}

TEST_CASE("GPUs of up are one for each server, and a wrong one is told at once", "[strata]") {
  const Result few = Run("up --dir gpus --servers 2 --devices GPU-1234");
  CHECK(few.exit_code == 2);
  CHECK(few.err == "strata: --devices: 1 for 2 servers; name one for each, or no list\n");
  const Result few_workers = Run("up --dir gpus --workers 3 --worker-devices GPU-1234,none");
  CHECK(few_workers.exit_code == 2);
  CHECK(few_workers.err ==
        "strata: --worker-devices: 2 for 3 workers; name one for each, or no list\n");
  REQUIRE(std::system(("mkdir -p '" + Folder() + "/gpus/logs'").c_str()) == 0);
  Write("gpus/logs/server-0.log", "E of an earlier run\n");
  // Beside each other: each gives up after some restarts with pauses in between.
  Result none, worker;
  std::thread first([&] { none = Run("up --dir gpus --devices GPU-no-such"); });
  worker = Run("up --dir more --worker-devices GPU-no-such", "/dev/null", "worker-");
  first.join();
  CHECK(none.exit_code == 1);
  CHECK(none.out.empty());
  CHECK(none.err.find("server-0 does not come up") != std::string::npos);
  CHECK(none.err.find("--device GPU-no-such: ") != std::string::npos);
  CHECK(none.err.find("of an earlier run") == std::string::npos);
  CHECK(Run("down --dir gpus").exit_code != 0);  // nothing was left running
  CHECK(worker.exit_code == 1);
  CHECK(worker.err.find("worker-0 does not come up") != std::string::npos);
  CHECK(worker.err.find("--device GPU-no-such: ") != std::string::npos);
}

TEST_CASE("validate names data files that cannot be used", "[strata]") {
  Write("job.yaml", kJob);
  const Result r = Run("validate -f job.yaml");
  CHECK(r.exit_code == 2);
  CHECK(r.err == "strata: spec.data.train[0]: " + Folder() +
                     "/gone.tsv: No such file or directory; mend the path, or wait for the file\n");
  Write("gone.tsv", "");
  CHECK(Run("validate -f job.yaml").err ==
        "strata: spec.data.train[0]: " + Folder() +
            "/gone.tsv: is empty; write data to it, or move it away\n");
  Write("gone.tsv", "1\n");
  const Result right = Run("validate -f job.yaml --json");
  CHECK(right.exit_code == 0);
  CHECK(right.err == "job.yaml is right\n");
  REQUIRE(std::system(("ln -s gone.tsv '" + Folder() + "/link.tsv'").c_str()) == 0);
  const Result twice = Run("validate -f job.yaml --json --set spec.data.eval=[link.tsv]");
  CHECK(twice.exit_code == 0);
  CHECK(twice.err.find("strata: warning: spec.data.eval: " + Folder() +
                       "/link.tsv seems to have the content of " + Folder() +
                       "/gone.tsv of spec.data.train") == 0);
  // What it prints is a job file again.
  Write("again.json", right.out);
  CHECK(Run("validate -f again.json --json").out == right.out);
  CHECK(Run("validate -f - --json", "again.json").out == right.out);
}

TEST_CASE("what validate prints is the same job again", "[strata]") {
  Write("tags.csv", "y,genres,tags\n1,a|b,c;d\n");
  Write("tags.yaml",
        "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: j}\n"
        "spec:\n"
        "  data: {format: csv, train: [tags.csv], shuffle: {enabled: false},\n"
        "    columns: {label: y, multiValued: [{column: genres},\n"
        "      {column: tags, separator: ';', pooling: mean}]}}\n"
        "  model: {type: deepfm, hidden: [64, 32]}\n"
        "  optimizer: {sparse: {learningRate: 0.1, weightDecay: 0.0}}\n"
        "  training: {mode: downpour, nFetch: 2, nPush: 7, localLearningRate: 0.3}\n");
  const Result first = Run("validate -f tags.yaml --json");
  CHECK(first.err == "tags.yaml is right\n");
  REQUIRE(first.exit_code == 0);
  const Result text = Run("validate -f tags.yaml");
  REQUIRE(text.exit_code == 0);
  CHECK(text.out != first.out);
  for (const Result& printed : {first, text}) {
    Write("printed.json", printed.out);
    const Result again = Run("validate -f printed.json --json");
    CHECK(again.err == "printed.json is right\n");
    CHECK(again.out == first.out);
  }
}

// A job over a file without a header, whose columns go by their positions.
std::string HeadlessJob(const std::string& columns) {
  return "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: h}\nspec:\n"
         "  data:\n    format: csv\n    train: [h.csv]\n"
         "    columns: {header: false, label: '0', categorical: " +
         columns +
         ", ignored: ['*']}\n"
         "  model: {type: fm, embeddingDim: 4}\n"
         "  training: {mode: bsp, lanes: 2, batchSize: 2, epochs: 1}\n"
         "  checkpoint: {directory: h-ck}\n";
}

TEST_CASE("a din without a sequence is warned of", "[strata]") {
  Write("h.csv", "1,a,x\n");
  Write("h.yaml", HeadlessJob("['1', '2']"));
  const std::string warning = "strata: warning: spec.model.type: din weighs sequences by the item";
  CHECK(Run("validate -f h.yaml --set spec.model.type=din").err.find(warning) != std::string::npos);
  CHECK(Run("validate -f h.yaml").err.find(warning) == std::string::npos);
}

TEST_CASE("fields of one table that share no rows are warned of", "[strata]") {
  Write("v.csv", "y,item,seen\n1,a,b\n");
  Write("items.txt", "a\nb\n");
  const auto job = [](const std::string& vocabulary) {
    return "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: v}\nspec:\n"
           "  data: {format: csv, train: [v.csv], columns: {label: y}}\n"
           "  tables: [{name: items}]\n  fields:\n"
           "    - {name: item, kind: categorical, table: items}\n"
           "    - {name: seen, kind: categorical, table: items" +
           vocabulary + "}\n  model: {type: fm, embeddingDim: 4}\n";
  };
  const std::string warning =
      "strata: warning: spec.fields: fields 'item' and 'seen' have their rows in table items and "
      "share none, as only 'seen' has a vocabulary: ";
  Write("v.yaml", job(", vocabulary: {file: items.txt}"));
  const Result warned = Run("validate -f v.yaml");
  CHECK(warned.exit_code == 0);
  CHECK(warned.err.find(warning) != std::string::npos);
  Write("v.yaml", job(""));
  CHECK(Run("validate -f v.yaml").err.find("share none") == std::string::npos);
}

TEST_CASE("what a model is made of is printed whole, and compared first", "[strata]") {
  Write("h.csv", "1,a,x\n0,b,y\n1,a,y\n0,c,x\n");
  Write("h.yaml", HeadlessJob("['1', '2']"));
  const auto warns = [](const Result& r) {
    return r.err.find(
               "warning: spec.data.columns: the categories of columns 1, 2 are hashed with "
               "the column's position") != std::string::npos;
  };
  const Result declared = Run("validate --schema -f h.yaml");
  CHECK(declared.exit_code == 0);
  CHECK(warns(declared));
  for (const char* line :
       {"model fm\n", "table features  number 0\n  embedding(4)  normal(0, 0.01)  adagrad(",
        "\ntensor bias(1)  1 row from ",
        "\nfield 1  categorical  table features  keys by column\nfield 2 ",
        "\nlabel label  binary  column 0  loss logloss  weight 1\n"}) {
    INFO(line);
    CHECK(declared.out.find(line) != std::string::npos);
  }
  const Result valid = Run("validate -f h.yaml");
  CHECK(warns(valid));
  CHECK(valid.err.find(declared.out) != std::string::npos);
  const Result explained = Run("explain --schema h.yaml");
  CHECK(explained.out == declared.out);
  CHECK(Run("explain -f h.yaml").out == declared.out);
  CHECK(Run("validate --schema --json -f h.yaml").out == Run("explain --schema h.yaml --json").out);

  const Result trained = Run("train -f h.yaml");
  CHECK(trained.exit_code == 0);
  CHECK((trained.out + trained.err).find("KeysByPosition: spec.data.columns: ") !=
        std::string::npos);
  const Result shown = Run("checkpoint show h-ck");
  CHECK(shown.exit_code == 0);
  const size_t data = shown.out.find("\ndata ");
  REQUIRE(data != std::string::npos);
  CHECK(shown.out.ends_with("\n\n" + declared.out));
  CHECK(shown.out.size() == data + sizeof("\ndata \n") - 1 + 32);  // a fingerprint
  // Which data they are nobody can say while a file is missing.
  Write("gone.yaml", HeadlessJob("['1', '2']"));
  CHECK(Run("validate --schema -f gone.yaml --set spec.data.train=[gone.csv]").out +
            shown.out.substr(data + 1) ==
        declared.out);

  Write("one.yaml", HeadlessJob("['2']"));
  REQUIRE(Run("train -f one.yaml --set spec.checkpoint.directory=one-ck").exit_code == 0);
  const std::string diff = Run("checkpoint diff h-ck one-ck").out;
  const size_t schema = diff.find("schema: dropped: field 1: b has none\n");
  CHECK(schema != std::string::npos);
  CHECK(schema < diff.find("features: "));
  CHECK(Run("checkpoint diff h-ck h-ck")
            .out.find("schema: the same tables, tensors, fields, labels and weights of lines\n") !=
        std::string::npos);
}

TEST_CASE("what two checkpoints were trained with is compared, and why rows are not is told",
          "[strata]") {
  Write("d.csv", "y,u,v\n1,a,x\n0,b,y\n1,b,x\n0,c,x\n");
  const auto job = [](const std::string& tables) {
    return "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: d}\nspec:\n"
           "  data: {format: csv, train: [d.csv], columns: {label: y}}\n  tables:\n" +
           tables +
           "  fields:\n    - {name: u, kind: categorical, table: one}\n"
           "    - {name: v, kind: categorical, table: two}\n"
           "  model: {type: lr}\n  training: {mode: bsp, lanes: 1, batchSize: 2}\n"
           "  checkpoint: {directory: d-ck}\n";
  };
  const std::string one = "    - {name: one}\n", two = "    - {name: two}\n";
  Write("d.yaml", job(one + two));
  Write("turned.yaml", job(two + one));
  Write("rates.yaml",
        job("    - {name: one, optimizer: {type: adagrad, learningRate: 0.5}, pullCodec: bf16}\n" +
            two));
  const std::string to = " --set spec.checkpoint.directory=", set = " --set spec.";
  REQUIRE(Run("train -f d.yaml" + to + "d-ck").exit_code == 0);
  REQUIRE(Run("train -f rates.yaml" + to + "rates-ck").exit_code == 0);
  REQUIRE(Run("train -f turned.yaml" + to + "turned-ck").exit_code == 0);
  REQUIRE(Run("train -f d.yaml" + set + "storage.partitions=64" + to + "parts-ck").exit_code == 0);

  const Result rates = Run("checkpoint diff d-ck rates-ck");
  CHECK(rates.exit_code == 0);
  INFO(rates.out);
  CHECK(rates.out.find("schema: other settings: table one: weight: optimizer was adagrad("
                       "learningRate 0.05, epsilon 1e-10), is adagrad(learningRate 0.5, epsilon "
                       "1e-10); pullCodec was none, is bf16\n") != std::string::npos);
  CHECK(rates.out.find("table two") == std::string::npos);
  CHECK(Run("checkpoint diff d-ck rates-ck --json").out.find("\"other settings\"") !=
        std::string::npos);

  const Result turned = Run("checkpoint diff d-ck turned-ck");
  CHECK(turned.exit_code == 0);
  CHECK(turned.out.starts_with("a  step "));
  INFO(turned.out << turned.err);
  CHECK(turned.out.find("\none: ") == std::string::npos);
  CHECK(turned.out.find("\ndense: 1 rows in a, 1 in b; ") != std::string::npos);
  CHECK(
      turned.out.ends_with("not compared: table two (number 2 in a, 0 in b); table one (number 0 "
                           "in a, 2 in b)\n"));
  CHECK(Run("checkpoint diff d-ck turned-ck --json")
            .out.find(R"({"part":"table","name":"one","why":"number 0 in a, 2 in b"})") !=
        std::string::npos);
  const Result parts = Run("checkpoint diff d-ck parts-ck");
  CHECK(parts.exit_code != 0);
  CHECK(parts.out.starts_with("a  step "));
  INFO(parts.err);
  CHECK(parts.err.find("; spec.storage.partitions is ") == std::string::npos);
  CHECK(parts.err.find("cannot be compared: spec.storage.partitions is ") != std::string::npos);
  CHECK(parts.err.find(" in a, 64 in b") != std::string::npos);
}

TEST_CASE("weights of lines that come, or are read from another column, are a difference",
          "[strata]") {
  Write("w.csv", "y,u,w,v\n1,a,1,2\n0,b,1,1\n1,b,2,1\n0,c,1,3\n");
  Write("w.yaml",
        "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: w}\nspec:\n"
        "  data:\n    format: csv\n    train: [w.csv]\n"
        "    columns: {label: y, categorical: [u], ignored: ['*']}\n"
        "  model: {type: lr}\n  training: {mode: bsp, lanes: 1, batchSize: 2}\n"
        "  checkpoint: {directory: w-ck}\n");
  const std::string train = "train -f w.yaml --set spec.checkpoint.directory=";
  REQUIRE(Run(train + "plain-ck").exit_code == 0);
  REQUIRE(Run(train + "w-ck --set spec.sampleWeight=w").exit_code == 0);
  REQUIRE(Run(train + "v-ck --set spec.sampleWeight=v").exit_code == 0);
  CHECK(Run("checkpoint diff plain-ck w-ck")
            .out.find("schema: changed: spec.sampleWeight was none, is w\n") != std::string::npos);
  CHECK(Run("checkpoint diff w-ck v-ck")
            .out.find("schema: changed: spec.sampleWeight was w, is v\n") != std::string::npos);
  CHECK(Run("checkpoint diff w-ck v-ck --json").out.find("\"part\":\"spec.sampleWeight\"") !=
        std::string::npos);
  CHECK(Run("checkpoint diff w-ck w-ck").out.find("spec.sampleWeight") == std::string::npos);
  // A job that starts from one may say that the column has another name.
  const auto from = [&](const std::string& more) {
    return Run(train +
               "x-ck --set spec.sampleWeight=v --set 'spec.model.initFrom={checkpoint: "
               "w-ck/step-000000000002" +
               more + "}'");
  };
  CHECK(from("").err.find("rename: {w: v}; else allow it with ") != std::string::npos);
  CHECK(from(", rename: {w: v}").exit_code == 0);
}

TEST_CASE("validate prints columns as fields and fields as columns", "[strata]") {
  Write("columns.csv", "y,a,b,t\n1,2,c,x|z\n");
  Write("columns.yaml",
        "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: j}\n"
        "spec:\n"
        "  data: {format: csv, train: [columns.csv], columns: {label: y, numeric: [a],\n"
        "    categorical: [b], multiValued: [{column: t, pooling: mean}], ignored: ['*']}}\n"
        "  model: {type: lr}\n");
  const Result columns = Run("validate -f columns.yaml --json");
  REQUIRE(columns.exit_code == 0);
  const Result fields = Run("validate -f columns.yaml --json --form fields");
  INFO(fields.err);
  REQUIRE(fields.exit_code == 0);
  CHECK(fields.out.find("\"fields\":[{\"name\":\"a\"") != std::string::npos);
  CHECK(fields.out.find("\"categorical\":[") == std::string::npos);
  Write("fields.json", fields.out);
  CHECK(Run("validate -f fields.json --json").out == fields.out);
  CHECK(Run("validate -f fields.json --json --form columns").out == columns.out);
  const Result max =
      Run("validate -f fields.json --form columns --set 'spec.fields=[{name: t, kind: multiValued, "
          "pooling: max}]'");
  CHECK(max.exit_code == 2);
  CHECK(max.err.find("field 't' is pooled by max, which spec.data.columns cannot say") !=
        std::string::npos);
}

TEST_CASE("validate lists what folders and globs stand for", "[strata]") {
  std::filesystem::create_directory(Folder() + "/parts");
  for (const char* name : {"parts/p-0", "parts/_SUCCESS"}) Write(name, "1 1:1\n");
  Write("parts/p-1", "0 1:1\n");
  Write("parts.yaml",
        "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: j}\n"
        "spec: {data: {format: libfm, train: ['p*rts/p-*']}, model: {type: lr}}\n");
  const Result r = Run("validate -f parts.yaml");
  CHECK(r.exit_code == 0);
  const std::string at = Folder() + "/parts/p-";
  INFO(r.err);
  CHECK(r.err.starts_with("spec.data.train[0]: " + Folder() + "/p*rts/p-*: 2 files\n  " + at +
                          "0\n  " + at + "1\nmodel lr\n"));
  CHECK(r.err.ends_with("\nparts.yaml is right\n"));
  CHECK(Run("validate -f parts.yaml --set spec.data.train=none*").err ==
        "strata: spec.data.train[0]: " + Folder() +
            "/none*: the glob matches no file; mend it, or wait for the files\n");
}

TEST_CASE("without a cluster commands say so; a silent address is exit code 3", "[strata]") {
  Write("gone.tsv", "1\n");
  Write("job.yaml", kJob);
  const std::string none =
      "strata: no cluster is known here; start one with 'strata up', or name one with --scheduler "
      "HOST:PORT, or for good with 'strata context add'\n";
  for (const char* command : {"list", "status", "status j", "cancel j", "submit -f job.yaml",
                              "checkpoint create j", "predict --job j x.tsv"}) {
    const Result r = Run(command);
    CHECK(r.exit_code == 2);
    CHECK(r.err == none);
  }
  // Nothing listens on port 1 of loopback.
  const Result silent = Run("list --scheduler 127.0.0.1:1");
  CHECK(silent.exit_code == 3);
  CHECK(silent.err.find("127.0.0.1:1") != std::string::npos);
  CHECK(Run("down").exit_code == 2);
  CHECK(Run("logs").exit_code == 2);
}

TEST_CASE("predict and checkpoint name what they do not find", "[strata]") {
  CHECK(Run("predict x.tsv").err ==
        "strata: predict: give --checkpoint DIR or --job JOB (one of them)\n");
  CHECK(Run("checkpoint list nowhere").err == "strata: nowhere: no such folder\n");
  const Result verify = Run("checkpoint verify nowhere");
  CHECK(verify.exit_code == 2);
  CHECK(verify.err.find("nowhere") != std::string::npos);
}

}  // namespace
