// Where the time of a training step goes: by line, by module, and as a trace for ui.perfetto.dev.

#include <cstdio>

#include "taper/taper.h"

using namespace taper;

struct CnnImpl : nn::Module {
  CnnImpl()
      : conv1(register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 16, 3).padding(1)))),
        conv2(register_module("conv2", nn::Conv2d(nn::Conv2dOptions(16, 32, 3).padding(1)))),
        fc(register_module("fc", nn::Linear(32 * 7 * 7, 10))) {}

  Tensor forward(const Tensor& x) {
    const Tensor h = max_pool2d(relu(conv1(x)), 2);
    const Tensor g = max_pool2d(relu(conv2(h)), 2);
    return fc(g.flatten(1));
  }

  nn::Conv2d conv1, conv2;
  nn::Linear fc;
};
TAPER_MODULE(Cnn);

int main(int argc, char** argv) {
  Cnn model;
  optim::Adam optimizer(model->parameters(), optim::AdamOptions(2e-3));
  const data::datasets::TensorDataset train = data::datasets::glyphs(320, 1);
  const lens::Profile profile;
  for (std::int64_t step = 0; step < 5; ++step) {
    const Tensor x = train.data().narrow(0, 64 * step, 64);
    const Tensor y = train.targets().narrow(0, 64 * step, 64);
    optimizer.zero_grad();
    // Not model(x): lines are those of the outermost call, and here it is those of forward() that
    // tell more.
    cross_entropy(model->forward(x), y).backward();
    optimizer.step();
  }
  std::printf("%s\n%s", profile.table(lens::By::kLine).c_str(),
              profile.table(lens::By::kModule).c_str());
  if (argc > 1) profile.write(argv[1]);
}
