// What the benches of the engine share: texts with the replies that they must get, and the time that answering them
// takes. Whatever answers is an object with `bool answer(const Text&, wirecall::Buffer& out)`.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "varied.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/packing.hpp"
#include "wirecall/registry.hpp"

namespace bench {

struct Text {
  std::string padded;  // with what a scanner needs behind it
  std::size_t bytes;
  std::string reply;

  Text(std::string_view request, std::string_view expected) : padded(request), bytes(request.size()), reply(expected) {
    padded.append(wirecall::kPaddingBytes, '\0');
  }
  [[nodiscard]] std::string_view request() const { return {padded.data(), bytes}; }
};

/// One call in its usual form, 62 bytes.
inline std::vector<Text> plain_texts() {
  return {
      {R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1})", R"({"jsonrpc":"2.0","result":19,"id":1})"}};
}

/// The same with its params and result packed.
inline std::vector<Text> packed_texts() {
  const auto packed = []<class T>(const T& value) { return wirecall::to_json(wirecall::Packed<T>{value}); };
  return {{R"({"jsonrpc":"2.0","method":"subtract","params":[)" + packed(std::tuple{42, 23}) + R"(],"id":1})",
           R"({"jsonrpc":"2.0","result":)" + packed(19) + R"(,"id":1})"}};
}

inline std::vector<Text> varied_texts() {
  std::vector<Text> texts;
  for (const auto& [request, reply] : varied_requests()) texts.emplace_back(request, reply);
  return texts;
}

inline int subtract(int minuend, int subtrahend) { return minuend - subtrahend; }

/// What no engine can go below: the request is copied and a fixed reply is written.
class Ceiling {
 public:
  bool answer(const Text& text, wirecall::Buffer& out) {
    in_.clear();
    in_.append(text.request());
    out.clear();
    out.append(text.reply);
    asm volatile("" : : "g"(in_.data()), "g"(out.data()) : "memory");
    return true;
  }

 private:
  wirecall::Buffer in_;
};

class Wirecall {
 public:
  Wirecall() { registry.method("subtract", subtract, {"minuend", "subtrahend"}).packed(wirecall::packing(subtract)); }
  bool answer(const Text& text, wirecall::Buffer& out) {
    registry.handle_padded(text.request(), out);
    return true;
  }

  wirecall::Registry registry;
};

/// Ends the program unless each text gets its reply.
template <class Engine>
void check(Engine& engine, const std::vector<Text>& texts) {
  wirecall::Buffer out;
  for (const Text& text : texts) {
    if (engine.answer(text, out) && out.view() == text.reply) continue;
    std::fprintf(stderr, "wrong reply\n  to:     %s\n  wanted: %s\n  got:    %.*s\n", text.padded.c_str(),
                 text.reply.c_str(), static_cast<int>(out.size()), out.data());
    std::exit(1);
  }
}

/// Nanoseconds for each of the `count` things that `run` does: the best of several rounds, which is what the code costs
/// when nothing else runs.
template <class F>
double nanoseconds(std::size_t count, F&& run) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  for (int round = 0; round < 9; ++round) {
    const auto begin = Clock::now();
    run();
    const std::chrono::duration<double, std::nano> spent = Clock::now() - begin;
    best = std::min(best, spent.count() / static_cast<double>(count));
  }
  return best;
}

/// Nanoseconds a text.
template <class Engine>
double measure(Engine& engine, const std::vector<Text>& texts) {
  check(engine, texts);
  wirecall::Buffer out;
  const std::size_t cycles = 400'000 / texts.size();
  return nanoseconds(cycles * texts.size(), [&] {
    for (std::size_t cycle = 0; cycle < cycles; ++cycle) {
      for (const Text& text : texts) engine.answer(text, out);
    }
  });
}

}  // namespace bench
