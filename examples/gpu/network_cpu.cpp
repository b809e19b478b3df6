// The network on the processor, and its weights.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "network.hpp"

namespace gpu {

constexpr std::uint64_t kSeed = 7;

Weights make_weights() {
  // SplitMix64, of whose numbers the upper 24 bits become a float from -1 to 1; scaled to a variance of 1 / rows.
  std::uint64_t state = kSeed;
  const auto draw = [&state](std::size_t rows, std::size_t columns) {
    const float scale = static_cast<float>(std::sqrt(3.0 / static_cast<double>(rows)));
    std::vector<float> matrix(rows * columns);
    for (float& weight : matrix) {
      std::uint64_t bits = state += 0x9E3779B97F4A7C15;
      bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9;
      bits = (bits ^ bits >> 27) * 0x94D049BB133111EB;
      bits ^= bits >> 31;
      weight = (static_cast<float>(bits >> 40) * 0x1p-23F - 1.0F) * scale;
    }
    return matrix;
  };
  Weights weights;
  weights.words = draw(kWords, kHidden);
  weights.pixels = draw(kPixels, kHidden);
  weights.out = draw(2 * kHidden, kSize);
  return weights;
}

#ifndef WIRECALL_CUDA
std::unique_ptr<Network> make_cuda_network() {
  throw NoDevice{"this program was built without CUDA: configure it with -D WIRECALL_CUDA=ON"};
}
#endif

namespace {

void normalize(float* vector, std::size_t size) {
  const float norm = std::max(std::sqrt(std::inner_product(vector, vector + size, vector, 0.0F)), 1e-12F);
  std::for_each(vector, vector + size, [norm](float& x) { x /= norm; });
}

/// The product of a batch and a matrix, which is read once: out[call] += x(call, i) * matrix[i], for i below `rows`.
template <std::size_t columns, class X>
void add_products(std::size_t calls, std::size_t rows, const X& x, const float* matrix, float* out,
                  std::size_t stride) {
  for (std::size_t i = 0; i != rows; ++i, matrix += columns) {
    for (std::size_t call = 0; call != calls; ++call) {
      const float factor = x(call, i);
      if (factor == 0) continue;
      float* const to = out + call * stride;
      for (std::size_t column = 0; column != columns; ++column) to[column] += factor * matrix[column];
    }
  }
}

class CpuPowerIteration final : public PowerIteration {
 public:
  CpuPowerIteration(std::vector<float> matrix, std::size_t columns)
      : matrix_(std::move(matrix)), vector_(columns, 1.0F / std::sqrt(static_cast<float>(columns))) {}

  std::vector<float> next() override {
    std::vector<float> product(vector_.size());
    for (std::size_t at = 0; at != matrix_.size(); at += vector_.size()) {
      const float* const row = matrix_.data() + at;
      const float dot = std::inner_product(vector_.begin(), vector_.end(), row, 0.0F);
      for (std::size_t i = 0; i != vector_.size(); ++i) product[i] += row[i] * dot;
    }
    normalize(product.data(), product.size());
    vector_ = product;
    return product;
  }

 private:
  std::vector<float> matrix_, vector_;
};

class CpuNetwork final : public Network {
 public:
  std::string device() const override { return "cpu"; }

  Row* inputs(std::size_t count) override {
    std::fill_n(rows_.begin(), count, Row{});
    return rows_.data();
  }

  const float* forward(std::size_t count) override {
    constexpr std::size_t kBoth = 2 * kHidden;
    std::vector<float> hidden(count * kBoth);
    const auto words = [this](std::size_t call, std::size_t i) { return rows_[call].words[i]; };
    const auto pixels = [this](std::size_t call, std::size_t i) {
      return static_cast<float>(rows_[call].pixels[i]) / 255;
    };
    add_products<kHidden>(count, kWords, words, weights_.words.data(), hidden.data(), kBoth);
    add_products<kHidden>(count, kPixels, pixels, weights_.pixels.data(), hidden.data() + kHidden, kBoth);
    for (float& x : hidden) x = std::tanh(x);

    std::fill_n(vectors_.begin(), count * kSize, 0.0F);
    const auto both = [&hidden](std::size_t call, std::size_t i) { return hidden[call * kBoth + i]; };
    add_products<kSize>(count, kBoth, both, weights_.out.data(), vectors_.data(), kSize);
    for (std::size_t call = 0; call != count; ++call) normalize(vectors_.data() + call * kSize, kSize);
    return vectors_.data();
  }

  std::unique_ptr<PowerIteration> power_iteration(std::vector<float> matrix, std::size_t columns) const override {
    return std::make_unique<CpuPowerIteration>(std::move(matrix), columns);
  }

 private:
  Weights weights_ = make_weights();
  std::vector<Row> rows_ = std::vector<Row>(kBatch);
  std::vector<float> vectors_ = std::vector<float>(kBatch * kSize);
};

}  // namespace

std::unique_ptr<Network> make_cpu_network() { return std::make_unique<CpuNetwork>(); }

}  // namespace gpu
