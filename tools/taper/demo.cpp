// The demo: trains a small network on Fashion-MNIST, and can be stopped and resumed at any step.
#include "taper/tools/taper/demo.h"

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>

#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "taper/taper.h"
#include "taper/tools/taper/chart.h"
#include "taper/tools/taper/progress.h"

namespace taper::tools {
namespace {

using nlohmann::json;

volatile std::sig_atomic_t stop_signal = 0;

void on_signal(int signal) {
  stop_signal = signal;
}

// 784 -> 256 -> 128 -> 10.
struct MlpImpl : nn::Module {
  nn::Linear fc1{nullptr}, fc2{nullptr}, fc3{nullptr};

  MlpImpl() {
    fc1 = register_module("fc1", nn::Linear(784, 256));
    fc2 = register_module("fc2", nn::Linear(256, 128));
    fc3 = register_module("fc3", nn::Linear(128, 10));
  }

  Tensor forward(const Tensor& x) {
    const Tensor h = relu(fc1(x.flatten(1)));
    return fc3(relu(fc2(h)));
  }
};
TAPER_MODULE(Mlp);

struct Data {
  data::datasets::TensorDataset train, test;
  std::string from, note;  // where it is from, and what else there is to say of that
};

data::datasets::TensorDataset at_most(std::int64_t limit, const Tensor& x, const Tensor& target) {
  const std::int64_t n = limit > 0 && limit < x.size(0) ? limit : x.size(0);
  return {x.narrow(0, 0, n), target.narrow(0, 0, n)};
}

Data load_data(const DemoOptions& options) {
  using data::datasets::MNIST;
  const std::string root = options.glyphs         ? ""
                           : options.data.empty() ? data::datasets::find_fashion_mnist()
                                                  : options.data;
  const std::int64_t limit = options.limit;
  if (root.empty()) {
    const auto count = [&](std::int64_t n) { return limit > 0 && limit < n ? limit : n; };
    return {data::datasets::glyphs(count(20000), 1), data::datasets::glyphs(count(4000), 2),
            "ten drawn glyphs",
            options.glyphs ? ""
                           : ", as Fashion-MNIST was not found (install Debian's "
                             "dataset-fashion-mnist, or set TAPER_DATA)"};
  }
  const MNIST train(root, MNIST::Mode::kTrain), test(root, MNIST::Mode::kTest);
  return {at_most(limit, train.images(), train.targets()),
          at_most(limit, test.images(), test.targets()), "Fashion-MNIST in " + root, ""};
}

void make_folder(const std::string& path) {
  TAPER_CHECK(mkdir(path.c_str(), 0777) == 0 || errno == EEXIST, "cannot make the folder ", path,
              ": ", std::strerror(errno));
}

double accuracy_of(Mlp& model, const data::datasets::TensorDataset& test, Device device) {
  const NoGradGuard no_grad;
  const Tensor right = model(test.data().to(device)).argmax(1).eq(test.targets().to(device));
  return right.to(kFloat64).mean().item<double>();
}

// The log: a JSON object per line. When resumed, lines after the saved step are dropped.
class Log {
 public:
  Log(const std::string& path, std::int64_t keep_to_step) : path_(path) {
    std::vector<std::string> kept;
    std::ifstream old(path);
    for (std::string line; keep_to_step > 0 && std::getline(old, line);) {
      const json entry = json::parse(line, nullptr, false);
      if (entry.is_discarded() || entry.value("step", std::int64_t{0}) > keep_to_step) break;
      kept.push_back(line);
      entries_.push_back(entry);
    }
    old.close();
    out_.open(path, std::ios::trunc);
    TAPER_CHECK(out_.good(), "cannot write ", path);
    for (const std::string& line : kept) out_ << line << '\n';
  }

  void add(json entry) {
    out_ << entry.dump() << '\n';
    entries_.push_back(std::move(entry));
  }

  void flush() {
    out_.flush();
    TAPER_CHECK(out_.good(), "cannot write ", path_);
  }

  const std::vector<json>& entries() const { return entries_; }

 private:
  std::string path_;
  std::ofstream out_;
  std::vector<json> entries_;
};

// At most kPoints of the single batches are drawn, so that the file stays small.
Chart chart_of(const std::vector<json>& entries,
               std::int64_t steps_per_epoch,
               const DemoOptions& options) {
  constexpr std::size_t kPoints = 800;
  const std::size_t every = entries.size() / kPoints + 1;
  Series raw{"batch", "#3366cc", {}, {}, true, false}, smooth{"training loss", "#3366cc", {}, {}};
  Series accuracy{"test accuracy", "#cc6633", {}, {}, false, true};
  double mean = 0, weight = 0;
  std::size_t count = 0;
  for (const json& e : entries) {
    const double epoch = e.at("step").get<double>() / static_cast<double>(steps_per_epoch);
    if (e.contains("loss")) {
      const double loss = e.at("loss").get<double>();
      mean = 0.98 * mean + 0.02 * loss, weight = 0.98 * weight + 0.02;
      if (count++ % every != 0) continue;
      raw.x.push_back(epoch), raw.y.push_back(loss);
      smooth.x.push_back(epoch), smooth.y.push_back(mean / weight);
    } else if (e.contains("test_accuracy")) {
      accuracy.x.push_back(epoch), accuracy.y.push_back(100 * e.at("test_accuracy").get<double>());
    }
  }
  return {"MLP 784-256-128-10, " + options.name,
          "epoch",
          "cross-entropy",
          "% right",
          {raw, smooth, accuracy}};
}

// Everything that a stopped run needs to go on as if it had not been stopped.
class Run {
 public:
  explicit Run(const DemoOptions& o)
      : options_(o),
        device_(o.device),
        out_(o.json ? stderr : stdout),
        folder_(o.runs + "/" + o.name),
        data_(load_data(o)) {
    make_folder(o.runs);
    make_folder(folder_);
    manual_seed(static_cast<std::uint64_t>(o.seed));
    model_ = Mlp();
    model_->to(device_);
    optimizer_ = std::make_unique<optim::Adam>(model_->parameters(), optim::AdamOptions(o.lr));
    loader_ =
        data::make_data_loader(data_.train.map(data::transforms::Stack<>()),
                               data::samplers::RandomSampler(data_.train.size().value(),
                                                             static_cast<std::uint64_t>(o.seed)),
                               data::DataLoaderOptions(static_cast<std::size_t>(o.batch))
                                   .workers(1)
                                   .drop_last(true)
                                   .device(device_));
    per_epoch_ = static_cast<std::int64_t>(loader_->size());
    TAPER_CHECK(per_epoch_ > 0, "a batch of ", o.batch, " is more than the ",
                data_.train.size().value(), " examples there are");
    schedule_ = std::make_unique<optim::WarmupCosineLR>(*optimizer_, per_epoch_ / 10,
                                                        per_epoch_ * o.epochs, 0.01);
    if (o.resume) resume();
    log_ = std::make_unique<Log>(folder_ + "/log.jsonl", step_);
  }

  int train() {
    std::fprintf(out_, "data   %s%s\nmodel  MLP 784-256-128-10, %lld parameters\nrun    %s\n",
                 data_.from.c_str(), data_.note.c_str(), static_cast<long long>(count_parameters()),
                 folder_.c_str());
    if (!device_.is_cpu()) {
      std::fprintf(
          out_, "device %s%s\n", str(device_).c_str(),
          cuda::is_available() ? "" : ", emulated on the host for tests: it takes its time");
    }
    if (step_ > 0) std::fprintf(out_, "resumed after step %lld\n", static_cast<long long>(step_));
    while (!finished()) {
      if (told_to_stop()) return stopped();
      epoch();
    }
    finish();
    return 0;
  }

 private:
  std::int64_t count_parameters() const {
    std::int64_t n = 0;
    for (const Tensor& p : model_->parameters()) n += p.numel();
    return n;
  }

  bool finished() const {
    return static_cast<std::int64_t>(loader_->position().epoch) >= options_.epochs;
  }

  bool told_to_stop() const {
    return stop_signal != 0 || (options_.max_steps > 0 && step_ >= options_.max_steps);
  }

  // Trains to the epoch's end, or until told to stop. The step at hand is finished first, and so is
  // an epoch whose last step it was.
  void epoch() {
    const auto number = static_cast<std::int64_t>(loader_->position().epoch) + 1;
    const auto first = static_cast<std::int64_t>(loader_->position().batch);
    Progress progress(out_, str("epoch ", number, "/", options_.epochs), per_epoch_, first);
    std::int64_t here = 0;
    for (auto& batch : *loader_) {
      const double loss = train_step(batch);
      seen_loss_ += loss, ++here;
      char status[96];
      const double rate = static_cast<double>(here * options_.batch) / progress.seconds();
      const std::int64_t done = first + here;
      std::snprintf(status, sizeof status, "loss %.4f  acc %.1f %%  %.0f samples/s",
                    seen_loss_ / static_cast<double>(done),
                    100 * seen_right_ / static_cast<double>(done * options_.batch), rate);
      progress.update(done, status);
      if (done < per_epoch_ && told_to_stop()) return;
    }
    end_epoch(number, progress, static_cast<double>(here * options_.batch) / progress.seconds());
  }

  double train_step(const data::Example<>& batch) {
    optimizer_->zero_grad();
    const Tensor logits = model_(batch.data);
    const Tensor loss = nn::functional::cross_entropy(logits, batch.target);
    loss.backward();
    optimizer_->step();
    schedule_->step();
    ++step_;
    const double value = loss.item<double>();
    TAPER_CHECK(std::isfinite(value), "the loss is ", value, " at step ", step_);
    seen_right_ += logits.detach().argmax(1).eq(batch.target).sum().item<double>();
    log_->add({{"step", step_}, {"loss", value}});
    return value;
  }

  void end_epoch(std::int64_t number, Progress& progress, double rate) {
    const double accuracy = accuracy_of(model_, data_.test, device_);
    const double batches = static_cast<double>(per_epoch_);
    char line[160];
    std::snprintf(line, sizeof line, " loss %.4f  train %.2f %%  test %.2f %%  %.0f samples/s  %s",
                  seen_loss_ / batches,
                  100 * seen_right_ / (batches * static_cast<double>(options_.batch)),
                  100 * accuracy, rate, duration(progress.seconds()).c_str());
    progress.finish(line);
    log_->add({{"step", step_},
               {"epoch", number},
               {"train_loss", seen_loss_ / batches},
               {"test_accuracy", accuracy},
               {"samples_per_second", rate}});
    last_accuracy_ = accuracy;
    seen_loss_ = seen_right_ = 0;
    save_checkpoint();
  }

  std::string checkpoint() const { return folder_ + "/checkpoint.safetensors"; }

  void save_checkpoint() {
    log_->flush();  // first: lines beyond the saved step are dropped on a resume
    OrderedDict<std::string, Tensor> state;
    for (const auto& item : model_->state_dict()) state.insert("model." + item.key(), item.value());
    for (const auto& item : optimizer_->state_dict()) {
      state.insert("optimizer." + item.key(), item.value());
    }
    const auto position = loader_->position();
    const auto random = default_generator().state();
    const auto number = [](std::uint64_t n) { return std::to_string(n); };
    char loss[64], right[64];
    std::snprintf(loss, sizeof loss, "%a", seen_loss_);
    std::snprintf(right, sizeof right, "%a", seen_right_);
    data::write_safetensors(state, checkpoint(),
                            {{"step", std::to_string(step_)},
                             {"epoch", number(position.epoch)},
                             {"batch", number(position.batch)},
                             {"random_seed", number(random.seed)},
                             {"random_offset", number(random.offset)},
                             {"seen_loss", loss},
                             {"seen_right", right},
                             {"settings", settings()}});
  }

  // What must be the same when a run is resumed. The device need not be.
  std::string settings() const {
    return str("epochs ", options_.epochs, ", batch ", options_.batch, ", seed ", options_.seed,
               ", lr ", options_.lr, ", data ", data_.from,
               options_.limit > 0 ? str(", limit ", options_.limit) : "");
  }

  void resume() {
    const data::SafeTensors saved = data::read_safetensors(checkpoint());
    const auto text = [&](const char* key) -> const std::string& {
      for (const auto& [name, value] : saved.metadata) {
        if (name == key) return value;
      }
      fail(str(checkpoint(), " has no '", key, "'; it is no checkpoint"));
    };
    TAPER_CHECK(text("settings") == settings(),
                "the run was started with other settings: ", text("settings"),
                "; now: ", settings());
    OrderedDict<std::string, Tensor> model, optimizer;
    for (const auto& item : saved.tensors) {
      if (item.key().starts_with("model.")) model.insert(item.key().substr(6), item.value());
      else if (item.key().starts_with("optimizer."))
        optimizer.insert(item.key().substr(10), item.value());
    }
    model_->load_state_dict(model);
    optimizer_->load_state_dict(optimizer);
    step_ = std::stoll(text("step"));
    schedule_->set_step(step_);
    loader_->set_position({std::stoull(text("epoch")), std::stoull(text("batch"))});
    default_generator().set_state(
        {std::stoull(text("random_seed")), std::stoull(text("random_offset"))});
    seen_loss_ = std::strtod(text("seen_loss").c_str(), nullptr);
    seen_right_ = std::strtod(text("seen_right").c_str(), nullptr);
  }

  static void print_json(const json& result) { std::printf("%s\n", result.dump().c_str()); }

  int stopped() {
    const Progress clock(out_, "", 1);
    save_checkpoint();
    write_chart();
    const double took = clock.seconds();
    const char* why = stop_signal == SIGTERM  ? "told to end"
                      : stop_signal == SIGINT ? "interrupted"
                                              : "stopped";
    std::fprintf(out_, "%s after step %lld; saved in %s", why, static_cast<long long>(step_),
                 duration(took).c_str());
    if (stop_signal == SIGTERM)
      std::fprintf(out_, " of the %s allowed", duration(options_.deadline).c_str());
    std::fprintf(out_, ".\nGo on with the same command and --resume.\n");
    if (options_.json) print_json({{"run", folder_}, {"steps", step_}, {"stopped", why}});
    return 75;
  }

  void write_chart() {
    std::ofstream out(folder_ + "/loss.svg");
    out << to_svg(chart_of(log_->entries(), per_epoch_, options_));
  }

  void finish() {
    save_checkpoint();
    write_chart();
    save(model_, folder_ + "/model.safetensors");
    if (last_accuracy_ < 0) last_accuracy_ = accuracy_of(model_, data_.test, device_);
    if (options_.json) {
      print_json({{"run", folder_},
                  {"steps", step_},
                  {"test_accuracy", last_accuracy_},
                  {"data", data_.from}});
      return;
    }
    std::printf("test accuracy %.2f %%\nwrote %s/log.jsonl, loss.svg and model.safetensors\n",
                100 * last_accuracy_, folder_.c_str());
  }

  using Loader = decltype(data::make_data_loader(
      std::declval<data::MapDataset<data::datasets::TensorDataset, data::transforms::Stack<>>>(),
      std::declval<data::samplers::RandomSampler>()));

  const DemoOptions& options_;
  const Device device_;
  std::FILE* out_;  // what is said on the way; with --json the result alone is on stdout
  std::string folder_;
  Data data_;
  Mlp model_{nullptr};
  std::unique_ptr<optim::Adam> optimizer_;
  Loader loader_;
  std::unique_ptr<optim::WarmupCosineLR> schedule_;
  std::unique_ptr<Log> log_;
  std::int64_t per_epoch_ = 0, step_ = 0;
  double seen_loss_ = 0, seen_right_ = 0, last_accuracy_ = -1;
};

}  // namespace

int run_demo(const DemoOptions& options) {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  if (options.threads > 0) set_num_threads(static_cast<int>(options.threads));
  return Run(options).train();
}

}  // namespace taper::tools
