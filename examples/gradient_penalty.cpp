// Double backward at work: a WGAN-GP (Gulrajani et al. 2017) learns a ring. gradient_penalty
// [STEPS]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "taper/taper.h"

using namespace taper;

constexpr std::int64_t kBatch = 128;

// Points (n, 2) near the circle of radius 1.
Tensor ring(std::int64_t n) {
  const Tensor angle = rand({n}) * (2 * 3.14159265358979);
  const Tensor radius = 1 + 0.05 * randn({n});
  return stack({radius * angle.cos(), radius * angle.sin()}, 1);
}

nn::Sequential network(std::int64_t out) {
  return nn::Sequential(nn::Linear(2, 48), nn::SiLU(), nn::Linear(48, 48), nn::SiLU(),
                        nn::Linear(48, out));
}

// The slopes (n) of the critic at x. They are recorded, so that a loss made of them has gradients.
Tensor slopes(nn::Sequential& critic, const Tensor& x) {
  const Tensor at = x.detach().clone().requires_grad_();
  const Tensor score = critic(at).sum();
  const Tensor g = grad({score}, {at}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
  return (g.square().sum(1) + 1e-12).sqrt();
}

// A point between each real and each false one.
Tensor between(const Tensor& real, const Tensor& fake) {
  const Tensor mix = rand({real.size(0), 1});
  return mix * real + (1 - mix) * fake;
}

void draw(const Tensor& real, const Tensor& fake) {
  std::vector<std::string> rows(19, std::string(45, ' '));
  for (const auto& [points, mark] : {std::pair{real, '.'}, std::pair{fake, 'o'}}) {
    const auto p = points.accessor<float, 2>();
    for (std::int64_t i = 0; i < p.size(0); ++i) {
      const long column = std::lround((p[i][0] + 1.5f) / 3 * 44),
                 row = std::lround((1.5f - p[i][1]) / 3 * 18);
      if (column < 0 || column > 44 || row < 0 || row > 18) continue;
      rows[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)] = mark;
    }
  }
  for (const std::string& row : rows) std::printf("    %s\n", row.c_str());
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 400;
  manual_seed(1);
  nn::Sequential generator = network(2), critic = network(1);
  const auto options = optim::AdamOptions(2e-3).betas({0.5, 0.9});
  optim::Adam learn_generator(generator->parameters(), options),
      learn_critic(critic->parameters(), options);

  std::printf(
      "A critic scores real points (.) above false ones (o), its slope held near 1 by a penalty\n"
      "(|d critic / d x| - 1)^2: a gradient inside the loss, so backward runs through a "
      "backward.\n\n");
  for (int step = 1; step <= steps; ++step) {
    for (int k = 0; k < 3; ++k) {
      const Tensor real = ring(kBatch);
      const Tensor fake = generator(randn({kBatch, 2})).detach();
      const Tensor penalty = (slopes(critic, between(real, fake)) - 1).square().mean();
      const Tensor loss = critic(fake).mean() - critic(real).mean() + 10 * penalty;
      learn_critic.zero_grad();
      loss.backward();
      learn_critic.step();
    }
    learn_generator.zero_grad();
    const Tensor loss = -critic(generator(randn({kBatch, 2}))).mean();
    loss.backward();
    learn_generator.step();

    if (step % (steps < 5 ? 1 : steps / 5) == 0) {
      const Tensor real = ring(kBatch), fake = generator(randn({kBatch, 2})).detach();
      const double slope = slopes(critic, between(real, fake)).mean().item<double>();
      const NoGradGuard no_grad;
      const double distance = (critic(real).mean() - critic(fake).mean()).item<double>();
      const double radius = fake.square().sum(1).sqrt().mean().item<double>();
      std::printf("step %4d   slope %.3f   distance between the two %.3f   mean radius of o %.3f\n",
                  step, slope, distance, radius);
    }
  }
  const Tensor real = ring(400);
  const Tensor fake = generator(randn({400, 2})).detach();
  const double slope = slopes(critic, between(real, fake)).mean().item<double>();
  std::printf("\n");
  draw(real, fake);
  std::printf("\nThe critic's mean slope is %.3f.\n", slope);
  return slope > 0.6 && slope < 1.4 ? 0 : 1;
}
