// Several callers of the worker, whose numbers are compared with a plain loop; exits with 0 where all are right.
//
//     example_gpu_caller URI                              # as examples/gpu/run.sh runs it
//     example_gpu_caller URI --load IN_FLIGHT SECONDS     # prints how many calls a second were answered
#include <cmath>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <thread>

#include "network.hpp"
#include "npy.hpp"

namespace {

struct Health {
  std::string device;
  double warm_up_ms;
  std::uint64_t calls, batches;
};

using Vector = std::vector<float>;

Vector vector_of(const wirecall::Extension& npy) {
  gpu::ArrayView array;
  if (!gpu::read_npy(npy.data, array)) throw std::runtime_error{"no array came back"};
  return gpu::floats_of(array);
}

/// An image whose bytes are drawn from `seed`.
wirecall::Extension image_of(std::uint32_t seed) {
  std::vector<std::byte> pixels(gpu::kPixels);
  for (std::byte& pixel : pixels) pixel = static_cast<std::byte>(seed = seed * 5 + 1);
  return gpu::npy_of("|u1", "(32, 32, 3)", pixels);
}

/// What the network computes for words of these hashes and an image that may be missing, in the plainest way.
Vector plain(const gpu::Weights& weights, const std::vector<std::size_t>& words, const wirecall::Extension* image) {
  std::vector<double> hidden(2 * gpu::kHidden), out(gpu::kSize);
  for (std::size_t h = 0; h != gpu::kHidden; ++h) {
    for (const std::size_t word : words) hidden[h] += weights.words[word * gpu::kHidden + h];
    for (std::size_t i = 0; image != nullptr && i != gpu::kPixels; ++i) {
      const auto pixel = static_cast<double>(image->data[image->data.size() - gpu::kPixels + i]);
      hidden[gpu::kHidden + h] += pixel / 255 * weights.pixels[i * gpu::kHidden + h];
    }
  }
  double squares = 0;
  for (std::size_t i = 0; i != gpu::kSize; ++i) {
    for (std::size_t h = 0; h != hidden.size(); ++h) out[i] += std::tanh(hidden[h]) * weights.out[h * gpu::kSize + i];
    squares += out[i] * out[i];
  }
  Vector vector;
  for (const double x : out) vector.push_back(static_cast<float>(x / std::sqrt(squares)));
  return vector;
}

bool close(const Vector& a, const Vector& b) {
  return std::ranges::equal(a, b, [](float x, float y) { return std::abs(x - y) < 1e-4F; });
}

wirecall::Client connect(const std::string& uri) {
  wirecall::ClientOptions options;
  options.encoding = wirecall::Encoding::msgpack;
  return wirecall::Client{uri, options};
}

bool check(bool holds, const char* what) {
  if (!holds) std::cerr << "not so: " << what << std::endl;
  return holds;
}

/// Whether the vectors of many calls at once are right, half of which have an image.
bool vectors_are_right(const std::string& uri, const gpu::Weights& weights, std::uint32_t caller) {
  // The places of the words are the CRC-32 of each, modulo kWords.
  const std::vector<std::pair<std::string, std::vector<std::size_t>>> texts{
      {"a cat", {0xE8B7BE43 % gpu::kWords, 0x9E5E43A8 % gpu::kWords}},
      {" CAT\tcat\n", {0x9E5E43A8 % gpu::kWords, 0x9E5E43A8 % gpu::kWords}}};
  wirecall::Client client = connect(uri);
  auto calls = client.batch_of<wirecall::Extension>();
  std::vector<Vector> expected;
  for (std::uint32_t i = 0; i != 20; ++i) {
    const auto& [text, words] = texts[i % 2];
    const std::optional<wirecall::Extension> image =
        i % 4 < 2 ? std::optional{image_of(100 * caller + i)} : std::nullopt;
    calls.call("vectorize", text, image);
    expected.push_back(plain(weights, words, image ? &*image : nullptr));
  }
  const auto results = std::move(calls).send();
  for (std::size_t i = 0; i != results.size(); ++i) {
    if (!results[i]) std::cerr << results[i].error().what() << std::endl;
    if (!results[i] || !close(vector_of(*results[i]), expected[i])) return false;
  }
  return true;
}

/// A matrix whose rows lie along one direction but for small deviations; the last estimate is that direction.
bool principal_is_right(wirecall::Client& client) {
  const Vector direction{0.6F, 0.0F, -0.8F};
  Vector matrix;
  for (int row = 0; row != 50; ++row) {
    for (std::size_t i = 0; i != direction.size(); ++i)
      matrix.push_back(static_cast<float>(row - 20) * direction[i] + (row % 3 == static_cast<int>(i) ? 0.01F : 0.0F));
  }
  const wirecall::Extension x = gpu::npy_of("<f4", "(50, 3)", std::as_bytes(std::span{matrix}));
  Vector last;
  int steps = 0;
  for (const wirecall::Extension& estimate : client.stream<wirecall::Extension>("principal", x, 20)) {
    last = vector_of(estimate);
    ++steps;
  }
  double dot = 0;
  for (std::size_t i = 0; i != direction.size(); ++i) dot += direction[i] * last[i];
  return steps == 20 && std::abs(dot) > 0.9999;
}

bool refused(wirecall::Client& client, const auto&... params) {
  try {
    static_cast<void>(client.call<wirecall::Extension>("vectorize", params...));
    return false;
  } catch (const wirecall::Error& error) {
    return error.code() == -32602;
  }
}

bool all_is_right(const std::string& uri) {
  const gpu::Weights weights = gpu::make_weights();
  wirecall::Client client = connect(uri);
  const Health before = client.call<Health>("gpu.health");
  bool right[4];
  {
    std::vector<std::jthread> callers;
    for (std::uint32_t i = 0; i != std::size(right); ++i)
      callers.emplace_back([&, i] { right[i] = vectors_are_right(uri, weights, i); });
  }
  const Health after = client.call<Health>("gpu.health");
  std::cout << after.device << ": " << after.calls - before.calls << " calls in " << after.batches - before.batches
            << " batches" << std::endl;
  Vector cat = vector_of(client.call<wirecall::Extension>("vectorize", "a cat", nullptr));
  cat.resize(4);
  const Vector nothing = vector_of(client.call<wirecall::Extension>("vectorize", "", nullptr));
  return check(std::ranges::all_of(right, std::identity{}), "the vectors are those of a plain loop") &&
         check(after.calls - before.calls == 80 && after.batches - before.batches < 40, "calls go together") &&
         check(close(cat, {-0.0979317F, 0.0234864F, -0.030965F, -0.0738766F}), "they are those of gpu_worker.py") &&
         check(nothing == Vector(gpu::kSize), "the vector of nothing is of zeros") &&
         check(refused(client, "a cat", gpu::npy_of(Vector{1, 2})), "what is no image is refused") &&
         check(refused(client, 7, nullptr), "what is no text is refused") &&
         check(principal_is_right(client), "the last estimate is the principal direction");
}

/// Keeps so many calls in flight, each of a text and an image.
double rate_of(const std::string& uri, int in_flight, double seconds) {
  using Clock = std::chrono::steady_clock;
  wirecall::Client client = connect(uri);
  const wirecall::Extension image = image_of(1);
  std::mutex mutex;
  std::condition_variable ended;
  int open = in_flight;
  std::size_t answered = 0;
  const Clock::time_point begun = Clock::now();
  std::function<void()> next = [&] {
    client.request<wirecall::Extension>("vectorize", "a cat", image)
        .then([&](const std::expected<wirecall::Extension, wirecall::Error>& result) {
          const std::lock_guard lock{mutex};
          if (!result) std::cerr << result.error().what() << std::endl;
          answered += result.has_value();
          if (result && std::chrono::duration<double>(Clock::now() - begun).count() < seconds) return next();
          --open;
          ended.notify_one();
        });
  };
  for (int i = 0; i != in_flight; ++i) next();
  std::unique_lock lock{mutex};
  ended.wait(lock, [&] { return open == 0; });
  return static_cast<double>(answered) / std::chrono::duration<double>(Clock::now() - begun).count();
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 4 && words[1] == "--load") {
    std::cout << rate_of(words[0], std::stoi(words[2]), std::stod(words[3])) << std::endl;
    return 0;
  }
  if (words.size() != 1) throw std::invalid_argument{"give the URI of a worker, or of its broker"};
  return all_is_right(words[0]) ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "example_gpu_caller: " << error.what() << std::endl;
  return 1;
}
