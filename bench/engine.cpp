// Text in, text out, on one core, linking wirecall::core alone: nanoseconds a text, allocations once warm, and the
// peak memory of the whole process. Every reply is compared with the expected bytes before it is timed.
//
//   engine            the table
//   engine --check    exit status 1 when a bound is exceeded
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "answers.hpp"
#include "encoded.hpp"
#include "spec_examples.hpp"
#include "wirecall/registry.hpp"

// Every way to the heap passes through these four, operator new included.
namespace {
std::size_t allocations = 0;
}
extern "C" {
void* __libc_malloc(std::size_t) noexcept;
void* __libc_calloc(std::size_t, std::size_t) noexcept;
void* __libc_realloc(void*, std::size_t) noexcept;
void* malloc(std::size_t bytes) noexcept {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* block, std::size_t bytes) noexcept {
  ++allocations;
  return __libc_realloc(block, bytes);
}
}

namespace {

using bench::measure;
using bench::nanoseconds;
using bench::Text;

struct Point {
  double x;
  double y;
};

void add_methods(wirecall::Registry& registry) {
  registry.method("sum", [](const wirecall::Rest<long>& numbers) {
    long sum = 0;
    for (const long number : numbers) sum += number;
    return sum;
  });
  registry.method("get_data", [] { return std::tuple{"hello", 5}; });
  registry.method("update", [](const wirecall::Rest<int>&) {});
  registry.method("notify_sum", [](const wirecall::Rest<int>&) {});
  registry.method("notify_hello", [](int) {});
  registry.method("fib",
                  [](int n) {
                    long a = 0;
                    long b = 1;
                    for (; n > 0; --n) a = std::exchange(b, a + b);
                    return a;
                  },
                  {.params = {"n"}, .cache = {.entries = 10'000, .ttl = std::chrono::hours{1}}});
  registry.method("distance", [](const Point& a, const Point& b) { return std::hypot(a.x - b.x, a.y - b.y); },
                  {.params = {"a", "b"}, .cache = {.entries = 10'000}});
}

long peak_kib() {
  std::FILE* status = std::fopen("/proc/self/status", "r");
  char line[256];
  long kib = 0;
  while (status != nullptr && std::fgets(line, sizeof line, status) != nullptr) {
    if (std::strncmp(line, "VmHWM:", 6) == 0) kib = std::atol(line + 6);
  }
  if (status != nullptr) std::fclose(status);
  return kib;
}

bool within = true;

void row(const char* what, double figure, double bound, const char* unit) {
  std::printf("%-52s %10.1f %-6s", what, figure, unit);
  if (bound > 0) std::printf("  bound %7.1f  %s", bound, figure <= bound ? "ok" : "over");
  std::printf("\n");
  if (bound > 0 && figure > bound) within = false;
}

/// A message in two passes, as those that are no usual requests.
struct InSteps {
  bench::Encoded& encoded;
  bool answer(const Text& text, wirecall::Buffer& out) { return encoded.answer_in_steps(text, out); }
};

}  // namespace

int main(int argc, char** argv) {
  bench::Wirecall engine;
  wirecall::Registry& registry = engine.registry;
  add_methods(registry);
  std::vector<Text> plain = bench::plain_texts();
  std::vector<Text> varied = bench::varied_texts();
  std::vector<Text> spec;
  double entries = 0;
  for (const bench::Example& example : bench::kSpecExamples) {
    spec.emplace_back(example.request, example.reply);
    entries += example.entries;
  }

  bench::Ceiling ceiling;
  row("ceiling: copy in, fixed reply out, 62 bytes", measure(ceiling, plain), 0, "ns");
  row("62-byte subtract", measure(engine, plain), 50, "ns");
  row("64 varied requests, mean a text", measure(engine, varied), 110, "ns");
  const double text_ns = measure(engine, spec);
  row("the specification's 15 examples, mean a text", text_ns, 100, "ns");
  row("the specification's 15 examples, mean an entry", text_ns * static_cast<double>(spec.size()) / entries, 50, "ns");

  using wirecall::Encoding;
  struct Bound {
    Encoding encoding;
    double of_json;
  };
  for (const Bound bound :
       {Bound{Encoding::msgpack, 1.0}, Bound{Encoding::cbor, 1.1}, Bound{Encoding::protobuf, 1.2}}) {
    bench::Encoded encoded{registry, bound.encoding};
    std::vector<Text> texts = encoded.texts_of(plain);
    const std::string what = "the same in " + std::string{encoded.name()} + ", of JSON's ns";
    const double json_ns = measure(engine, plain);
    const double ns = measure(encoded, texts);
    row(("62-byte subtract in " + std::string{encoded.name()}).c_str(), ns, 0, "ns");
    row(what.c_str(), ns / json_ns, bound.of_json, "");
    const std::string packed = "the same packed in " + std::string{encoded.name()} + ", of JSON's ns";
    row(packed.c_str(), measure(encoded, encoded.texts_of(bench::packed_texts())) / json_ns, 0.8, "");
    if (!wirecall::message::codec_of(bound.encoding).is_native) continue;
    InSteps in_steps{encoded};
    row("the same, checked and read in two passes", measure(in_steps, texts) / json_ns, 0, "");
  }

  std::string in{plain[0].request()};
  std::string out;
  registry.handle(in, out);
  row("62-byte subtract, std::string in and out",
      nanoseconds(400'000,
                  [&] {
                    for (int i = 0; i < 400'000; ++i) registry.handle(in, out);
                  }),
      0, "ns");

  wirecall::Buffer reply;
  registry.handle_padded(spec[0].request(), reply);
  const std::size_t before = allocations;
  for (int i = 0; i < 10'000'000 / 80; ++i) {
    for (const auto* texts : {&plain, &varied, &spec}) {
      for (const Text& text : *texts) registry.handle_padded(text.request(), reply);
    }
  }
  const std::size_t after = allocations;
  std::printf("%-52s %10zu         bound       0  %s\n", "allocations in 10 million requests once warm", after - before,
              after == before ? "ok" : "over");
  row("peak memory of this process", static_cast<double>(peak_kib()) / 1024, 4, "MiB");

  std::vector<Text> hit{
      {R"({"jsonrpc":"2.0","method":"fib","params":[42],"id":1})", R"({"jsonrpc":"2.0","result":267914296,"id":1})"}};
  std::vector<Text> hit_of_structs{
      {R"({"jsonrpc":"2.0","method":"distance","params":{"a":{"x":0.5,"y":0},"b":{"x":3.5,"y":4}},"id":1})",
       R"({"jsonrpc":"2.0","result":5,"id":1})"}};
  row("a result that is kept: an integer, with a time to live", measure(engine, hit), 150, "ns");
  row("a result that is kept: two structs", measure(engine, hit_of_structs), 0, "ns");
  return argc > 1 && std::strcmp(argv[1], "--check") == 0 && (!within || after != before) ? 1 : 0;
}
