// A handler in C, in the shared library, against the same in C++: text in, text out, on one core, without a socket.
// Both are given the same texts in turns; a figure is the best of its rounds.
//
//   bench_c            the table
//   bench_c --check    exit status 1 when C takes more than 1.15 of the time that C++ takes
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "handlers.h"
#include "wirecall/registry.hpp"

namespace {

constexpr double kBound = 1.15;
constexpr int kRounds = 201;
constexpr int kCalls = 40'000;

struct Case {
  const char* what;
  std::string request;
  std::string reply;
};

double nanoseconds(const auto& run, int calls) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i != calls; ++i) run();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / calls;
}

double median(std::vector<double> figures) {
  std::ranges::nth_element(figures, figures.begin() + static_cast<std::ptrdiff_t>(figures.size() / 2));
  return figures[figures.size() / 2];
}

std::string many_numbers() {
  std::string text = R"({"jsonrpc":"2.0","method":"sum","params":[[)";
  for (int i = 0; i != 100; ++i) text += (i != 0 ? "," : "") + std::to_string(i) + ".5";
  return text + "]],\"id\":1}";
}

void require(std::string_view got, const Case& wanted, const char* language) {
  if (got == wanted.reply) return;
  std::fprintf(stderr, "wrong reply in %s: %.*s\n", language, static_cast<int>(got.size()), got.data());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  wirecall::Registry registry;
  registry.method("subtract", [](std::int64_t minuend, std::int64_t subtrahend) { return minuend - subtrahend; },
                  {"minuend", "subtrahend"});
  registry.method("echo", [](std::string_view text) { return text; }, {"text"});
  registry.method("sum",
                  [](const std::vector<double>& values) {
                    double sum = 0;
                    for (const double value : values) sum += value;
                    return sum;
                  },
                  {"values"});

  wc_server* const server = wc_server_new(nullptr);
  wc_server_method(server, "subtract", bench_subtract, nullptr);
  wc_server_method(server, "echo", bench_echo, nullptr);
  wc_server_method(server, "sum", bench_sum, nullptr);

  const std::vector<Case> cases{
      {"62-byte subtract, by position", R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1})",
       R"({"jsonrpc":"2.0","result":19,"id":1})"},
      {"the same by name", R"({"jsonrpc":"2.0","method":"subtract","params":{"minuend":42,"subtrahend":23},"id":1})",
       R"({"jsonrpc":"2.0","result":19,"id":1})"},
      {"a text there and back", R"({"jsonrpc":"2.0","method":"echo","params":["a text without escapes"],"id":1})",
       R"({"jsonrpc":"2.0","result":"a text without escapes","id":1})"},
      {"the sum of 100 numbers", many_numbers(), R"({"jsonrpc":"2.0","result":5000,"id":1})"},
  };
  bool within = true;
  std::printf("%-36s %10s %10s %8s\n", "", "C++ ns", "C ns", "ratio");
  for (const Case& one : cases) {
    wirecall::Buffer out;
    const char* reply = nullptr;
    std::size_t size = 0;
    const auto in_cpp = [&] { registry.handle(one.request, out); };
    const auto in_c = [&] { wc_server_handle(server, one.request.data(), one.request.size(), &reply, &size); };
    in_cpp();
    require(out.view(), one, "C++");
    in_c();
    require({reply, size}, one, "C");
    const int calls = one.request.size() > 200 ? kCalls / 20 : kCalls;
    std::vector<double> cpp;
    std::vector<double> c;
    std::vector<double> ratios;
    for (int round = 0; round != kRounds; ++round) {
      cpp.push_back(nanoseconds(in_cpp, calls));
      c.push_back(nanoseconds(in_c, calls));
      ratios.push_back(c.back() / cpp.back());
    }
    const double ratio = median(ratios);
    within &= ratio <= kBound;
    std::printf("%-36s %10.1f %10.1f %8.2f  bound %.2f  %s\n", one.what, median(cpp), median(c), ratio, kBound,
                ratio <= kBound ? "ok" : "over");
  }
  wc_server_free(server);
  return argc > 1 && std::strcmp(argv[1], "--check") == 0 && !within ? 1 : 0;
}
