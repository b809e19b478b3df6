// A worker that computes on a GPU, or on the processor where there is none, the twin of examples/python/gpu_worker.py:
// at a broker, or by itself (docs/batching.md "A GPU"). Calls of several callers go through the network together. The
// text and the array of a call are views of its params, and are copied from there once: into the page-locked memory
// from which the GPU reads them.
//
//     example_gpu_worker [--url BROKER | --listen ENDPOINT] [--device cuda|cpu] [--batch N] [--in-process SECONDS]
//
// It prints what it serves on and where. With `--device cuda` it exits with 77, and says why, where there is no GPU.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <optional>
#include <pthread.h>
#include <zlib.h>

#include "network.hpp"
#include "npy.hpp"

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

/// kSide x kSide pixels of a call's image.
struct Image {
  std::span<const std::byte> pixels;
};

struct Health {
  std::string device;
  double warm_up_ms;
  std::uint64_t calls, batches;
};

}  // namespace

template <>
struct wirecall::Adapt<Image> {
  static constexpr std::string_view name = "an array (.npy) of uint8, 32 x 32 x 3";
  static bool decode(Reader& reader, Image& out) {
    const char* const mark = reader.mark();
    gpu::ArrayView array;
    if (!wirecall::decode(reader, array)) return false;
    out.pixels = array.data;
    if (array.type == "|u1" && std::ranges::equal(array.shape, std::array{gpu::kSide, gpu::kSide, std::size_t{3}}))
      return true;
    reader.rewind(mark);
    return reader.fail(name);
  }
};

namespace {

/// The methods.
class Worker {
 public:
  explicit Worker(std::unique_ptr<gpu::Network> network) : network_(std::move(network)) {
    const Clock::time_point begun = Clock::now();
    // The first launch of a kernel loads it.
    for (int i = 0; i != 2; ++i) vectorize(std::vector<std::string_view>(gpu::kBatch, "warm"), kNoImages);
    warm_up_ms_ = std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
    calls_ = batches_ = 0;
  }

  /// The unit vector of each text, or of a text and an image. Thread: one at a time.
  std::vector<wirecall::Extension> vectorize(std::span<const std::string_view> descriptions,
                                             std::span<const std::optional<Image>> images) {
    const std::size_t count = descriptions.size();
    gpu::Row* const rows = network_->inputs(count);
    for (std::size_t i = 0; i != count; ++i) {
      count_words(descriptions[i], rows[i].words);
      if (images[i]) std::memcpy(rows[i].pixels, images[i]->pixels.data(), gpu::kPixels);
    }
    const float* const computed = network_->forward(count);
    std::vector<wirecall::Extension> vectors;
    for (std::size_t i = 0; i != count; ++i) vectors.push_back(gpu::npy_of({computed + i * gpu::kSize, gpu::kSize}));
    calls_ += count;
    ++batches_;
    return vectors;
  }

  /// The principal direction of the rows of x: better estimates with each step. A step is short, so it runs on the
  /// loop.
  wirecall::Stream<wirecall::Extension> principal(wirecall::Context context, gpu::ArrayView x,
                                                  std::optional<std::uint32_t> steps) {
    if (x.type != "<f4" || x.shape.size() != 2 || x.size() == 0)
      throw wirecall::Error{wirecall::ErrorCode::invalid_params, "x is a matrix of float32"};
    const std::unique_ptr<gpu::PowerIteration> iteration = network_->power_iteration(gpu::floats_of(x), x.shape[1]);
    for (std::uint32_t i = 0; i != steps.value_or(10); ++i) {
      co_yield gpu::npy_of(iteration->next());
      co_await wirecall::sleep_for(context, 0ns);  // the loop sends the estimate, and has other calls begin
    }
  }

  Health health() const { return {network_->device(), warm_up_ms_, calls_, batches_}; }

  static inline const std::vector<std::optional<Image>> kNoImages{gpu::kBatch};

 private:
  static void count_words(std::string_view text, std::span<float> counts) {
    constexpr std::string_view kSpaces = " \t\n\v\f\r";
    std::string word;
    while (true) {
      text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
      if (text.empty()) return;
      word = text.substr(0, text.find_first_of(kSpaces));
      text.remove_prefix(word.size());
      for (char& c : word) {
        if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
      }
      const uLong hash = crc32(0, reinterpret_cast<const Bytef*>(word.data()), static_cast<uInt>(word.size()));
      ++counts[hash % counts.size()];
    }
  }

  std::unique_ptr<gpu::Network> network_;
  double warm_up_ms_ = 0;
  std::atomic<std::uint64_t> calls_ = 0, batches_ = 0;  // read by another thread
};

struct Words {
  std::string url = "tcp://127.0.0.1:8545";
  std::string listen, device;
  std::size_t batch = gpu::kBatch;
  double in_process_seconds = 0;
};

Words parse(std::span<char*> arguments) {
  Words words;
  for (std::size_t i = 1; i + 1 < arguments.size(); i += 2) {
    const std::string_view name = arguments[i];
    const std::string value = arguments[i + 1];
    if (name == "--url") {
      words.url = value;
    } else if (name == "--listen") {
      words.listen = value;
    } else if (name == "--device" && (value == "cuda" || value == "cpu")) {
      words.device = value;
    } else if (name == "--batch" && std::atoi(value.c_str()) > 0) {
      words.batch = std::min<std::size_t>(std::stoul(value), gpu::kBatch);
    } else if (name == "--in-process" && std::atof(value.c_str()) > 0) {
      words.in_process_seconds = std::atof(value.c_str());
    } else {
      throw std::invalid_argument{std::string{name} + " " + value + ": no such option, or no such value"};
    }
  }
  if (arguments.size() % 2 == 0) throw std::invalid_argument{std::string{arguments.back()} + ": its value is missing"};
  return words;
}

std::unique_ptr<gpu::Network> make_network(const std::string& device) {
  if (device == "cpu") return gpu::make_cpu_network();
  try {
    return gpu::make_cuda_network();
  } catch (const gpu::NoDevice& error) {
    std::cerr << error.what() << std::endl;
    if (device == "cuda") std::exit(77);
    return gpu::make_cpu_network();
  }
}

/// Calls a second of one text and image, alone and as full batches, without wirecall between.
void measure(Worker& worker, double seconds) {
  const std::vector<std::byte> pixels(gpu::kPixels, std::byte{77});
  const std::vector<std::string_view> texts(gpu::kBatch, "a cat");
  const std::vector<std::optional<Image>> images(gpu::kBatch, Image{pixels});
  const auto rate = [&](std::size_t calls) {
    const Clock::time_point begun = Clock::now();
    std::size_t done = 0;
    std::chrono::duration<double> taken{};
    while (taken.count() < seconds) {
      done += worker.vectorize(std::span{texts}.first(calls), std::span{images}.first(calls)).size();
      taken = Clock::now() - begun;
    }
    return static_cast<double>(done) / taken.count();
  };
  std::printf("{\"device\":%s,\"alone\":%.1f,\"batched\":%.1f}\n", wirecall::to_json(worker.health().device).c_str(),
              rate(1), rate(gpu::kBatch));
}

int run(const Words& words) {
  // For sigwait below; before there are threads, so that they have it as well.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGINT);
  sigaddset(&ending, SIGTERM);
  if (words.listen.empty()) pthread_sigmask(SIG_BLOCK, &ending, nullptr);

  Worker worker{make_network(words.device)};
  if (words.in_process_seconds > 0) return measure(worker, words.in_process_seconds), 0;
  const auto vectorize = [&worker](std::span<const std::string_view> descriptions,
                                   std::span<const std::optional<Image>> images) {
    return worker.vectorize(descriptions, images);
  };
  const auto principal = [&worker](wirecall::Context context, gpu::ArrayView x, std::optional<std::uint32_t> steps) {
    return worker.principal(std::move(context), std::move(x), steps);
  };
  const auto health = [&worker] { return worker.health(); };
  const wirecall::BatchOptions batch{.size = words.batch, .queue = 16 * gpu::kBatch};

  if (!words.listen.empty()) {
    wirecall::Server server;
    server.batch_method("vectorize", vectorize, batch, {"description", "image"});
    server.method("principal", principal, {"x", "steps"});
    server.method("gpu.health", health);
    const wirecall::Endpoint endpoint = server.listen(words.listen);
    std::cout << "serving on " << worker.health().device << " at " << endpoint.uri() << std::endl;
    server.run();
    return 0;
  }
  wirecall::ClientOptions options;
  options.encoding = wirecall::Encoding::msgpack;
  options.wait_ms = 10'000;  // for a broker that starts together with it
  wirecall::Client client{words.url, options};
  // The broker keeps what two batches do not take; so a quicker worker gets more of it.
  client.provide("vectorize", wirecall::batched(vectorize, batch), {.params = {"description", "image"}});
  client.provide("principal", principal, {.concurrency = 1, .queue = 100, .params = {"x", "steps"}});
  client.provide("gpu.health", health);
  client.connect();
  std::cout << "serving on " << worker.health().device << " at " << words.url << std::endl;
  int signal = 0;
  sigwait(&ending, &signal);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(parse({argv, static_cast<std::size_t>(argc)}));
} catch (const std::exception& error) {
  std::cerr << "example_gpu_worker: " << error.what() << std::endl;
  return 1;
}
